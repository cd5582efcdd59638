// What a chart is made of: words, clock, colours, columns, pixels. gantt.js puts it on the page.
// gantt.py makes one script of the two files, in a block, so nothing here is global.

const MINUTE = 60, HOUR = 3600, DAY = 86400;

// Words for numbers. duration() says the same as units.py.
const count = (n) => n.toLocaleString("en-US");
const jobs = (n) => `${count(n)} ${n === 1 ? "job" : "jobs"}`;
const two = (n) => String(Math.floor(n)).padStart(2, "0");

function duration(seconds) {
  const whole = Math.round(seconds);
  for (const [big, bigS, small, smallS] of [["d", DAY, "h", HOUR], ["h", HOUR, "m", MINUTE], ["m", MINUTE, "s", 1]]) {
    if (whole < bigS) continue;
    const rest = Math.floor((whole % bigS) / smallS);
    return `${Math.floor(whole / bigS)} ${big}` + (rest ? ` ${rest} ${small}` : "");
  }
  return `${whole} s`;
}

// 1, 2, 5, 10, 20, 50, ... times a unit: the first that will do.
function roundStep(unit, willDo) {
  let step = unit;
  for (let k = 0; !willDo(step); k++) step *= [2, 2.5, 2][k % 3];
  return step;
}

// Instants are seconds of the trace. With an epoch they are dates (UTC), else days since its beginning.
function clockOf(epoch) {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const WITHIN_DAY = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
  const date = (at) => new Date((at + epoch) * 1000);
  const year = (at) => String(date(at).getUTCFullYear());
  const month = (at) => MONTHS[date(at).getUTCMonth()];
  const dayOfMonth = (at) => `${date(at).getUTCDate()} ${month(at)}`;
  const day = (at) =>
    epoch ? `${WEEKDAYS[date(at).getUTCDay()]} ${dayOfMonth(at)} ${year(at)}` : `day ${count(Math.floor(at / DAY))}`;
  const minute = (at) => {
    const s = (((at + epoch) % DAY) + DAY) % DAY;
    return `${two(s / HOUR)}:${two((s % HOUR) / MINUTE)}`;
  };
  const second = (at) => `${minute(at)}:${two((((at + epoch) % MINUTE) + MINUTE) % MINUTE)}`;

  // Marks at all multiples of a step (plus an offset) from one instant to another.
  function every(step, from, to, text, offset = 0) {
    const marks = [];
    for (let k = Math.ceil((from + epoch - offset) / step); k * step + offset - epoch <= to; k++) {
      const at = k * step + offset - epoch;
      marks.push({ at, text: text(at) });
    }
    return marks;
  }
  function everyMonths(months, from, to, text) {
    const marks = [];
    const now = date(from).getUTCFullYear() * 12 + date(from).getUTCMonth();
    for (let k = Math.ceil(now / months) * months; ; k += months) {
      const at = Date.UTC(Math.floor(k / 12), k % 12) / 1000 - epoch;
      if (at > to) return marks;
      if (at >= from) marks.push({ at, text: text(at) });
    }
  }
  // At most about `most` marks for an axis, and the larger units around them; the first unit is cut by the view.
  function ticks(from, to, most) {
    const fits = (step) => (to - from) / step <= most;
    const within = WITHIN_DAY.find(fits);
    if (within) {
      const units = [{ at: from, text: day(from) }, ...every(DAY, from + 1, to, day)];
      return { marks: every(within, from, to, within < MINUTE ? second : minute), units };
    }
    if (!epoch) return { marks: every(roundStep(DAY, fits), from, to, day), units: [] };
    const units = [{ at: from, text: year(from) }, ...everyMonths(12, from + 1, to, year)];
    const days = [1, 2, 7].find((n) => fits(n * DAY));
    // Weeks begin on Mondays, and the first day of all Unix seconds was a Thursday.
    if (days) return { marks: every(days * DAY, from, to, dayOfMonth, days === 7 ? 4 * DAY : 0), units };
    const months = [1, 3, 6].find((n) => fits(n * 30 * DAY));
    if (months) return { marks: everyMonths(months, from, to, month), units };
    return { marks: everyMonths(roundStep(12, (n) => fits(n * 30 * DAY)), from, to, year), units: [] };
  }
  return { instant: (at) => `${day(at)} ${second(at)}`, ticks };
}

// Colours. Viridis for amounts: what stands out most from the paper is much, so on white its yellow is little (and paler
// here), on dark its violet (and brighter). The palette of Okabe and Ito for users. Both are safe for the colour-blind.
// A shade is a place in the shades of a theme.
const VIRIDIS = [
  [232, 230, 130], [139, 214, 70], [77, 194, 107], [38, 173, 129], [33, 145, 140], [44, 114, 142], [59, 82, 139],
  [71, 45, 123], [58, 4, 79],
];
const ON_DARK = [
  [86, 66, 142], [72, 92, 158], [55, 120, 160], [40, 143, 150], [42, 168, 133], [86, 194, 108], [144, 214, 74],
  [200, 224, 70], [253, 235, 110],
];
const USERS = [
  [0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0], [240, 228, 66],
];
const LEVELS = 64, OTHERS = LEVELS + USERS.length, FADED = OTHERS + 1, MARK = FADED + 1, PAPER = MARK + 1;
const shadesOf = (amounts, others, faded) => Array.from({ length: LEVELS }, (_, k) => {
  const at = (k / (LEVELS - 1)) * (amounts.length - 1), low = Math.min(Math.floor(at), amounts.length - 2);
  return amounts[low].map((c, i) => Math.round(c + (amounts[low + 1][i] - c) * (at - low)));
}).concat(USERS, [others, faded, [28, 36, 48], [255, 255, 255]]);
const THEMES = {
  light: {
    paper: [255, 255, 255], ink: "#1c2430", soft: "#5a6472", grid: "rgb(28 36 48 / 14%)", line: "rgb(28 36 48 / 45%)",
    strip: "#5f7fa8", overview: "#9aa7ba", frame: "#0b62c4", framed: "rgb(11 98 196 / 16%)", note: "rgb(255 255 255 / 88%)",
    shades: shadesOf(VIRIDIS, [176, 182, 190], [232, 234, 238]),
  },
  dark: {
    paper: [30, 34, 40], ink: "#e4e6e9", soft: "#a6acb5", grid: "rgb(228 230 233 / 14%)", line: "rgb(228 230 233 / 45%)",
    strip: "#6f92bf", overview: "#65748a", frame: "#74bdf0", framed: "rgb(116 189 240 / 20%)", note: "rgb(21 24 28 / 88%)",
    shades: shadesOf(ON_DARK, [128, 135, 145], [50, 55, 63]),
  },
};
// On paper, and for who has not asked for dark: light.
const asksForDark = matchMedia("screen and (prefers-color-scheme: dark)");
let theme = asksForDark.matches ? THEMES.dark : THEMES.light;
const css = (colour) => `rgb(${colour.join(" ")})`;
const userShade = (code) => (code >= 0 && code < USERS.length ? LEVELS + code : OTHERS);

// Where amounts stand on a scale from 0 to 1, the same for all charts: as logarithms, but linear below `unit`.
function scaleOf(columns, least, unit, marks, text) {
  const top = columns.reduce((most, column) => column.reduce((a, b) => Math.max(a, b), most), least + 1);
  const share = (amount) => Math.log1p((amount - least) / unit) / Math.log1p((top - least) / unit);
  return { top, marks: marks.filter((mark) => mark < top), text, share };
}

// The data of a figure: a header, and columns that it says the places of.
async function unpack(text) {
  const KINDS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array, i8: BigInt64Array };
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  data.column = ([kind, at, n]) => new KINDS[kind](buffer, 4 + length + at, n);
  return data;
}

function sums(differences) {
  const values = new Float64Array(differences.length);
  for (let i = 0, total = 0; i < values.length; i++) values[i] = total += differences[i];
  return values;
}

// The first place in a sorted array whose value is above the given one.
function placeAbove(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A step function from sorted ups and downs: value[i] holds from at[i] up to at[i + 1].
function stepsOf(up, upBy, down, downBy) {
  const at = [], value = [];
  for (let i = 0, j = 0, now = 0; i < up.length || j < down.length; ) {
    const instant = Math.min(up[i] ?? Infinity, down[j] ?? Infinity);
    while (up[i] === instant) now += upBy(i++);
    while (down[j] === instant) now -= downBy(j++);
    at.push(instant);
    value.push(now);
  }
  return { at, value, now: (instant) => value[placeAbove(at, instant) - 1] ?? 0 };
}

// Mean and peak of a step function in each of n equal parts of a stretch.
function sampled({ at, value }, from, to, n) {
  const mean = new Float64Array(n), peak = new Float64Array(n), part = (to - from) / n;
  let i = placeAbove(at, from) - 1;
  for (let c = 0; c < n; c++) {
    const stop = from + (c + 1) * part;
    let since = from + c * part, area = 0, now = value[i] ?? 0;
    peak[c] = now;
    while (i + 1 < at.length && at[i + 1] < stop) {
      i++;
      area += (at[i] - since) * now;
      since = at[i];
      now = value[i];
      peak[c] = Math.max(peak[c], now);
    }
    mean[c] = (area + (stop - since) * now) / part;
  }
  return { mean, peak };
}

// One chart, ready to draw. Rectangles are in the order of the jobs, and jobs in the order of their starts.
function chartOf(raw, column, machine) {
  const [id, wait, runtime, limit, size, user, name] =
    [raw.id, raw.wait, raw.runtime, raw.limit, raw.size, raw.user, raw.name].map(column);
  const start = sums(column(raw.start)), late = sums(column(raw.late));
  const arrive = start.map((at, j) => at - wait[j]), end = start.map((at, j) => at + runtime[j]);
  const arrivals = new Float64Array(start.length + late.length);
  arrivals.set(arrive);
  arrivals.set(late, start.length); // of jobs that wait and are not drawn, since they start later
  arrivals.sort();
  const one = () => 1, byEnd = Uint32Array.from(end.keys()).sort((a, b) => end[a] - end[b]);
  return {
    id, start, end, arrive, wait, runtime, limit, size, user, name,
    queue: stepsOf(arrivals, one, start, one),
    busy: stepsOf(start, (j) => size[j], Float64Array.from(byEnd, (j) => end[j]), (k) => size[byEnd[k]]),
    ...rectanglesOf(raw, column, start, end, machine),
  };
}

// Where nodes are known, `machine` says on which rows the lanes of the data are: a lane is then a place among the rows.
function rectanglesOf(raw, column, start, end, machine) {
  const BLOCK = 256; // rectangles that are passed over together when none of them is in view
  const job = sums(column(raw.rectangle_job)), cores = [column(raw.rectangle_lane), column(raw.rectangle_lanes)];
  const request = machine && column(raw.request), marked = new Uint8Array(job.length);
  const [lane, lanes] = machine ? cores.map((values) => new Float64Array(values.length)) : cores;
  for (let k = 0; machine && k < job.length; k++) {
    [lane[k], lanes[k]] = machine.place(cores[0][k], cores[1][k]);
    marked[k] = machine.marked(request[job[k]], cores[0][k]);
  }
  const latest = new Float64Array(Math.ceil(job.length / BLOCK)).fill(-Infinity); // the last end in each block
  for (let k = 0; k < job.length; k++) latest[(k / BLOCK) | 0] = Math.max(latest[(k / BLOCK) | 0], end[job[k]]);

  // Calls visit(job, lane, lanes, marked) for each rectangle of a job that runs between two instants.
  function each(from, to, visit) {
    for (let block = 0; block < latest.length; block++) {
      const first = block * BLOCK, stop = Math.min(first + BLOCK, job.length);
      if (start[job[first]] >= to) return;
      if (latest[block] <= from) continue;
      for (let k = first; k < stop; k++) {
        const j = job[k];
        if (start[j] < to && end[j] > from) visit(j, lane[k], lanes[k], marked[k]);
      }
    }
  }
  // The [lane, lanes] of one job; by core, those of the data.
  function pieces(j, byCore = false) {
    const found = [], [first, size] = byCore ? cores : [lane, lanes];
    for (let k = placeAbove(job, j - 1); job[k] === j; k++) found.push([first[k], size[k]]);
    return found;
  }
  return { each, pieces, request };
}

// What paint() works on, made anew only when the size changes: it is tens of megabytes.
let sheet = null;
function sheetOf(width, height) {
  if (sheet?.image.width !== width || sheet.image.height !== height) {
    const image = new ImageData(width, height);
    // `parts` is what a pixel lacks to the paper: red, green, blue.
    sheet = { image, pixels: new Uint32Array(image.data.buffer), parts: new Float32Array(3 * width * height) };
  }
  sheet.pixels.fill(0);
  sheet.parts.fill(0);
  return sheet;
}

// Jobs as pixels. A job that covers a pixel owns it; one that covers a part of it adds that part of its colour. Jobs
// never overlap, so this is exact at any zoom: a hundred jobs within a pixel give their mean. (fillRect would round
// each of them to 1/255 and lose the small ones.) Returns the picture and the number of jobs in it.
function paint(chart, shade, view, width, height, gap) {
  const { image, pixels, parts } = sheetOf(width, height), { shades } = theme, [paperR, paperG, paperB] = theme.paper;
  const owned = Uint32Array.from(shades, ([r, g, b]) => 0xff000000 | (b << 16) | (g << 8) | r);
  const acrossBy = width / (view.to - view.from), downBy = height / (view.high - view.low);
  const add = (pixel, share, colour) => {
    parts[3 * pixel] += share * (paperR - colour[0]);
    parts[3 * pixel + 1] += share * (paperG - colour[1]);
    parts[3 * pixel + 2] += share * (paperB - colour[2]);
  };
  function fill(left, right, y0, y1, which) {
    const x0 = Math.max(left, 0), x1 = Math.min(right, width);
    if (x1 <= x0) return;
    const colour = shades[which], own = owned[which], first = Math.floor(x0), final = Math.ceil(x1) - 1;
    for (let row = Math.floor(y0); row < y1; row++) {
      const share = Math.min(row + 1, y1) - Math.max(row, y0), begin = row * width;
      add(begin + first, share * (Math.min(first + 1, x1) - x0), colour);
      if (share === 1) for (let p = begin + first + 1; p < begin + final; p++) pixels[p] = own;
      else for (let p = begin + first + 1; p < begin + final; p++) add(p, share, colour);
      if (final > first) add(begin + final, share * (x1 - final), colour);
    }
  }
  let seen = 0, last = -1;
  chart.each(view.from, view.to, (j, lane, lanes, marked) => {
    if (j !== last) seen++;
    last = j;
    let x0 = (chart.start[j] - view.from) * acrossBy, x1 = (chart.end[j] - view.from) * acrossBy;
    let y0 = (view.high - lane - lanes) * downBy, y1 = (view.high - lane) * downBy;
    if (x1 - x0 > 4 * gap && y1 - y0 > 4 * gap) {
      x1 -= gap; // large enough to be told from its neighbours
      y0 += gap;
    }
    y0 = Math.max(y0, 0);
    y1 = Math.min(y1, height);
    if (marked && shade[j] !== FADED && x1 - x0 > 7 * gap) {
      // Dark, then white: one of them is seen beside any colour.
      fill(x0, x0 + 2 * gap, y0, y1, MARK);
      fill(x0 + 2 * gap, x0 + 3 * gap, y0, y1, PAPER);
      x0 += 3 * gap;
    }
    fill(x0, x1, y0, y1, shade[j]);
  });
  for (let p = 0; p < pixels.length; p++) {
    if (pixels[p]) continue;
    const red = paperR + 0.5 - parts[3 * p], green = paperG + 0.5 - parts[3 * p + 1];
    const blue = paperB + 0.5 - parts[3 * p + 2];
    pixels[p] = 0xff000000 | (blue << 16) | (green << 8) | red;
  }
  return { image, seen };
}

// Small things of the page and of a canvas.
function element(tag, text, parent) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

// A canvas as large as its place on the screen, in pixels of the screen; drawing is in CSS pixels.
function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d");
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  context.font = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  return [context, ratio];
}

function write(context, text, x, y, { align = "left", baseline = "alphabetic", colour = theme.soft } = {}) {
  context.textAlign = align;
  context.textBaseline = baseline;
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

function box(context, x, y, width, height, colour = theme.grid) {
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
}

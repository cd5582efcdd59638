// The figures of a page: one per <section data-gantt>, drawn on a canvas, with strips above it and tables around it.
// Names in the data are foreign text. They reach the page through textContent and fillText only.

const RIGHT = 16, STRIP = 52, QUEUE_TOP = 18, BUSY_TOP = 92, TOP = 166, AXIS = 40; // CSS pixels
const NARROW = 600; // CSS pixels: a picture that has no room for the names of kinds of nodes
const SHORTEST = 10; // seconds: the closest zoom
const SECOND = ["Name", "Submitted", "Started", "Limit"]; // columns of the list of jobs that a phone has no room for
const REACH = 3; // pixels around the pointer: jobs thinner than a pixel can be met too

const within = (value, low, high) => Math.max(Math.min(value, high), low);
const peakOf = (values) => values.reduce((a, b) => Math.max(a, b), 1);

function figureOf(root, data, key) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const picture = part("picture"), marks = part("marks"), overview = part("overview"), tip = part("tip");
  const plot = picture.parentElement, clock = clockOf(data.epoch), charts = [], machine = machineOf(data, data.column);
  const LEFT = 70 + (machine && picture.clientWidth > NARROW ? KINDS_WIDE - 20 : 0);
  const FEWEST = machine ? 1 : 4; // lanes: the closest zoom
  const waits = [0, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY];
  const decades = Array.from({ length: 10 }, (_, k) => 10 ** k);
  const scales = {
    wait: scaleOf(data.charts.map((raw) => data.column(raw.wait)), 0, 10 * MINUTE, waits, duration),
    size: scaleOf(data.charts.map((raw) => data.column(raw.size)), 1, 1, decades, count),
  };
  const [begin, final] = data.stretch;
  const whole = { from: begin, to: Math.max(final, begin + SHORTEST), low: 0, high: machine?.rows ?? data.lanes };
  const opening = { ...whole, from: data.opening[0], to: data.opening[1] };
  let chart, title, shade, view = whole, lastDrawMs = 0, drawWanted = false;
  let pointer = null; // where it is on the picture
  let hovered = -1; // the job under it
  let kept = null; // the job whose details stay, and the instant and lane at which they are shown
  let onlyUser = -1; // jobs of all others are faded
  let follow = () => {}; // lets the address follow, once the figure has opened

  const right = () => picture.clientWidth - RIGHT, bottom = () => picture.clientHeight - AXIS;
  const wide = () => Math.max(right() - LEFT, 1), tall = () => Math.max(bottom() - TOP, 1);
  const xOf = (at) => LEFT + ((at - view.from) / (view.to - view.from)) * wide();
  const yOf = (lane) => TOP + ((view.high - lane) / (view.high - view.low)) * tall();
  const atOf = (x) => view.from + ((x - LEFT) / wide()) * (view.to - view.from);
  const laneOf = (y) => view.high - ((y - TOP) / tall()) * (view.high - view.low);
  const called = (texts, code) => (code < 0 ? "unknown" : texts[code] || "(empty)");
  // What there is to say about a job. A log without users or names has no lines for them.
  const tells = {
    Job: (j) => String(chart.id[j]),
    Name: data.names.length && ((j) => called(data.names, chart.name[j])),
    User: data.users.length && ((j) => called(data.users, chart.user[j])),
    Processors: (j) => count(chart.size[j]),
    Nodes: machine && ((j) => machine.nodesText(chart.pieces(j, true))),
    Units: machine && ((j) => count(machine.unitsOf(chart.request[j]))),
    "Each unit": machine && ((j) => machine.unitText(chart.request[j], chart.pieces(j, true))),
    Submitted: (j) => clock.instant(chart.arrive[j]),
    Waited: (j) => duration(chart.wait[j]),
    Started: (j) => clock.instant(chart.start[j]),
    Ended: (j) => clock.instant(chart.end[j]),
    "Run time": (j) => duration(chart.runtime[j]),
    Limit: (j) => (chart.limit[j] > 0 ? duration(chart.limit[j]) : "unknown"),
  };

  // Moving about.

  function look(next) {
    const fit = (from, to, least, low, high) => {
      const span = within(to - from, Math.min(least, high - low), high - low);
      const first = within((from + to - span) / 2, low, high - span);
      return [first, first + span];
    };
    const [from, to] = fit(next.from, next.to, SHORTEST, whole.from, whole.to);
    const [low, high] = fit(next.low, next.high, FEWEST, whole.low, whole.high);
    view = Object.freeze({ from, to, low, high });
    redraw();
    follow();
  }
  // What stands at a share of the axis stays there.
  function zoom(factor, share = 0.5) {
    const span = within((view.to - view.from) * factor, SHORTEST, whole.to - whole.from);
    const from = view.from + (view.to - view.from - span) * share;
    look({ ...view, from, to: from + span });
  }
  function zoomLanes(factor, share = 0.5) {
    const span = within((view.high - view.low) * factor, Math.min(FEWEST, whole.high), whole.high);
    const low = view.low + (view.high - view.low - span) * share;
    look({ ...view, low, high: low + span });
  }
  function shift(across, up, from = view) {
    const by = across * (from.to - from.from), lift = up * (from.high - from.low);
    look({ from: from.from + by, to: from.to + by, low: from.low + lift, high: from.high + lift });
  }
  function goTo(j) {
    const room = 0.12 * (chart.end[j] - chart.arrive[j]);
    look({ ...whole, from: chart.arrive[j] - room, to: chart.end[j] + room });
    keepInside(j);
  }
  const actions = {
    in: () => zoom(1 / 1.6), out: () => zoom(1.6), left: () => shift(-0.25, 0), right: () => shift(0.25, 0),
    up: () => shift(0, 0.25), down: () => shift(0, -0.25), fewer: () => zoomLanes(1 / 1.6), more: () => zoomLanes(1.6),
    all: () => look(whole), worst: () => look(opening), release: () => keep(-1), link: copyLink,
  };

  // The address.

  // What of it is seen: whole seconds will do, and lanes only where not all are.
  function state() {
    const all = view.low <= whole.low && view.high >= whole.high, lane = (at) => (all ? undefined : Number(at.toFixed(2)));
    return {
      policy: title, from: Math.round(view.from), to: Math.round(view.to), low: lane(view.low), high: lane(view.high),
      colour: part("colour").value, job: kept ? String(chart.id[kept.job]) : undefined,
    };
  }
  // Shows what an address says; false where it says nothing of this figure.
  function restore(address) {
    const said = stateOf(key, address);
    if (!said) return false;
    const known = [...part("colour").options].some(({ value }) => value === said.colour);
    part("colour").value = known ? said.colour : "wait";
    const which = Math.max(data.charts.findIndex((raw) => raw.title === said.policy), 0);
    part("chart").selectedIndex = which;
    show(which);
    const { from = opening.from, to = opening.to, low = whole.low, high = whole.high } = said;
    look({ from, to, low, high });
    const j = said.job === null ? -1 : indexOf(said.job);
    if (j >= 0) keepInside(j);
    root.scrollIntoView();
    return true;
  }
  async function copyLink() {
    setAddress(addressOf(key, state()));
    const done = await copied(location.href), said = part("copied");
    said.textContent = done ? "Copied." : "The address of this page is the link: copy it from there.";
    setTimeout(() => (said.textContent = ""), 4000);
  }

  const indexOf = (id) => chart.id.findIndex((known) => String(known) === String(id));

  // The picture.

  function redraw() {
    if (drawWanted) return;
    drawWanted = true;
    requestAnimationFrame(() => {
      drawWanted = false;
      draw();
    });
  }
  function draw() {
    const clockStart = performance.now(), [context, ratio] = fitted(picture);
    const width = Math.round(wide() * ratio), height = Math.round(tall() * ratio);
    const { image, seen } = paint(chart, shade, view, width, height, ratio);
    context.putImageData(image, Math.round(LEFT * ratio), Math.round(TOP * ratio));
    const queue = sampled(chart.queue, view.from, view.to, width).peak;
    const busy = sampled(chart.busy, view.from, view.to, width).mean;
    drawStrip(context, "Jobs waiting", QUEUE_TOP, queue, peakOf(queue), count(peakOf(queue)));
    drawStrip(context, "Utilisation", BUSY_TOP, busy, data.processors, "100 %");
    write(context, `Running jobs, by ${machine ? "node" : "processor"}`, LEFT, TOP - 5, { colour: theme.ink });
    drawInstants(context);
    if (machine) drawRows(context, machine, view, yOf, LEFT, wide(), tall());
    else drawLanes(context);
    const begins = clock.instant(view.from), span = duration(view.to - view.from);
    part("shown").textContent = `In view: ${span} from ${begins}, ${jobs(seen)} running.`;
    drawOverview();
    if (kept) showTip(kept.job, xOf(kept.at), yOf(kept.lane));
    else if (pointer) hover();
    drawMarks();
    lastDrawMs = performance.now() - clockStart;
  }
  function drawArea(context, values, top, height, most, colour) {
    const by = wide() / values.length;
    context.fillStyle = colour;
    values.forEach((v, c) => context.fillRect(LEFT + c * by, top + height * (1 - v / most), by, (height * v) / most));
  }
  function drawStrip(context, text, top, values, most, label) {
    drawArea(context, values, top, STRIP, most, theme.strip);
    box(context, LEFT, top, wide(), 1);
    box(context, LEFT, top + STRIP, wide(), 1, theme.soft);
    write(context, text, LEFT, top - 5, { colour: theme.ink });
    write(context, label, LEFT - 8, top, { align: "right", baseline: "middle" });
    write(context, "0", LEFT - 8, top + STRIP, { align: "right", baseline: "middle" });
  }
  function drawInstants(context) {
    const { marks: ticks, units } = clock.ticks(view.from, view.to, wide() / 76);
    for (const { at, text } of ticks) {
      const x = Math.round(xOf(at));
      box(context, x, QUEUE_TOP, 1, STRIP);
      box(context, x, BUSY_TOP, 1, STRIP);
      box(context, x, TOP, 1, tall() + 5);
      const fits = x > LEFT + 12 && x < right() - 20;
      if (fits) write(context, text, x, bottom() + 8, { align: "center", baseline: "top" });
    }
    units.forEach(({ at, text }, k) => {
      const x = Math.round(xOf(at)), stop = k + 1 < units.length ? xOf(units[k + 1].at) : right();
      if (k) box(context, x, bottom() + 23, 1, AXIS - 23, theme.soft);
      if (context.measureText(text).width + 10 > stop - x) return; // no room: the pointer tells it
      write(context, text, x + (k ? 5 : 0), bottom() + 24, { baseline: "top", colour: theme.ink });
    });
    box(context, LEFT, bottom(), wide(), 1, theme.soft);
  }
  function drawLanes(context) {
    const most = Math.max(tall() / 44, 2), step = Math.ceil(roundStep(1, (n) => (view.high - view.low) / n <= most));
    for (let lane = Math.ceil(view.low / step) * step; lane <= view.high; lane += step) {
      box(context, LEFT - 5, Math.round(yOf(lane)), 5, 1, theme.soft);
      write(context, count(lane), LEFT - 8, yOf(lane), { align: "right", baseline: "middle" });
    }
    box(context, LEFT - 1, TOP, 1, tall(), theme.soft);
  }
  function drawOverview() {
    const [context] = fitted(overview), height = overview.clientHeight - 18;
    const across = (at) => LEFT + ((at - whole.from) / (whole.to - whole.from)) * wide();
    drawArea(context, chart.overview, 0, height, peakOf(chart.overview), theme.overview);
    box(context, LEFT, height, wide(), 1, theme.soft);
    write(context, "overview", LEFT - 8, height / 2, { align: "right", baseline: "middle" });
    for (const { at, text } of clock.ticks(whole.from, whole.to, wide() / 90).marks) {
      const x = across(at);
      if (x > LEFT + 14 && x < right() - 24) write(context, text, x, height + 4, { align: "center", baseline: "top" });
    }
    const x = across(view.from), width = Math.max(across(view.to) - x, 3);
    box(context, x, 0, width, height, theme.framed);
    context.strokeStyle = theme.frame;
    context.lineWidth = 2;
    context.strokeRect(x, 1, width, height - 1);
  }

  // What the pointer is on. This is drawn on a canvas of its own: the picture stays as it is.

  function jobAt(x, y) {
    if (x < LEFT || x > right() || y < TOP || y > bottom()) return -1;
    const perSecond = wide() / (view.to - view.from), perLane = tall() / (view.high - view.low);
    const at = atOf(x), lane = laneOf(y);
    let best = -1, nearest = REACH;
    chart.each(at - REACH / perSecond, at + REACH / perSecond, (j, low, lanes) => {
      const across = Math.max(chart.start[j] - at, at - chart.end[j], 0) * perSecond;
      const distance = Math.max(across, Math.max(low - lane, lane - low - lanes, 0) * perLane);
      if (distance < nearest) {
        nearest = distance;
        best = j;
      }
    });
    return best;
  }
  const largestPiece = (j) => chart.pieces(j).reduce((a, b) => (b[1] > a[1] ? b : a));
  // The middle of what is in view of a job's largest piece.
  function middleOf(j) {
    const [lane, lanes] = largestPiece(j), low = Math.max(lane, view.low), high = Math.min(lane + lanes, view.high);
    const from = Math.max(chart.start[j], view.from), to = Math.min(chart.end[j], view.to);
    return from < to && low < high ? [xOf((from + to) / 2), yOf((low + high) / 2)] : null;
  }
  function showTip(j, x, y) {
    tip.hidden = j < 0;
    if (j < 0) return;
    const list = element("dl");
    for (const [label, text] of Object.entries(tells).filter(([, text]) => text)) {
      element("dt", label, list);
      element("dd", text(j), list);
    }
    tip.replaceChildren(list);
    const left = x + 16 + tip.offsetWidth > plot.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
    tip.style.left = `${within(left, 0, plot.clientWidth - tip.offsetWidth)}px`;
    tip.style.top = `${within(y + 16, 0, plot.clientHeight - tip.offsetHeight)}px`;
  }
  function hover() {
    hovered = jobAt(...pointer);
    if (!kept) showTip(hovered, ...pointer);
  }
  function keep(j, at = 0, lane = 0) {
    kept = j < 0 ? null : { job: j, at, lane };
    onlyUser = j < 0 ? -1 : chart.user[j];
    tip.toggleAttribute("data-kept", j >= 0);
    if (j < 0) tip.hidden = true;
    recolour();
    follow();
  }
  function keepInside(j) {
    const [lane, lanes] = largestPiece(j);
    keep(j, (chart.start[j] + chart.end[j]) / 2, lane + lanes / 2);
  }
  function outline(context, j) {
    const x = xOf(chart.start[j]), arrived = xOf(chart.arrive[j]), [lowest, most] = largestPiece(j);
    for (const [lane, lanes] of chart.pieces(j)) {
      const y = yOf(lane + lanes);
      context.strokeRect(x, y, Math.max(xOf(chart.end[j]) - x, 2), Math.max(yOf(lane) - y, 2));
    }
    box(context, arrived, yOf(lowest + most / 2), x - arrived, 1, theme.ink); // a line for its wait
  }
  function drawMarks() {
    const [context] = fitted(marks), j = kept ? kept.job : hovered;
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, wide(), tall());
    context.clip();
    context.strokeStyle = theme.ink;
    context.lineWidth = 2;
    if (j >= 0) outline(context, j);
    context.restore();
    if (!pointer || pointer[0] < LEFT || pointer[0] > right()) return;
    const x = Math.round(pointer[0]), at = atOf(x);
    const note = (text, y) => {
      const room = context.measureText(text).width + 8, left = x + 6 + room > right() ? x - 6 - room : x + 6;
      box(context, left, y, room, 17, theme.note);
      write(context, text, left + 4, y + 13, { colour: theme.ink });
    };
    box(context, x, QUEUE_TOP, 1, bottom() - QUEUE_TOP, theme.line);
    note(`${jobs(chart.queue.now(at))} waiting`, QUEUE_TOP + 4);
    note(`${Math.round((100 * chart.busy.now(at)) / data.processors)} % in use`, BUSY_TOP + 4);
    const [, y] = pointer, node = machine && y > TOP && y < bottom() ? Math.floor(laneOf(y)) : -1;
    note(clock.instant(at) + (node < 0 ? "" : `, node ${count(node)} (${machine.kindOf(node).name})`), TOP - 20);
  }

  // What stands around the picture.

  function recolour() {
    const mode = part("colour").value, scale = scales[mode], amounts = chart[mode];
    const own = scale ? (j) => Math.round(scale.share(amounts[j]) * (LEVELS - 1)) : (j) => userShade(chart.user[j]);
    shade = Uint8Array.from(chart.user, (code, j) => (onlyUser >= 0 && code !== onlyUser ? FADED : own(j)));
    part("legend").replaceChildren(...(scale ? [scaleLegend(scale)] : usersLegend()), ...marksLegend());
    redraw();
  }
  function scaleLegend({ top, marks: [first, ...others], text, share }) {
    const legend = element("span"), colours = theme.shades.slice(0, LEVELS).map(css), taken = [];
    legend.className = "gantt-scale";
    element("b", undefined, legend).style.background = `linear-gradient(to right, ${colours})`;
    for (const mark of [top, first, ...others]) {
      if (taken.some((other) => Math.abs(other - share(mark)) < 0.19)) continue; // no room for its text
      taken.push(share(mark));
      element("span", text(mark), legend).style.left = `${100 * share(mark)}%`;
    }
    return legend;
  }
  function marksLegend() {
    const names = machine ? data.nodes.accelerators.map((r) => data.nodes.resources[r]) : [];
    if (!names.length) return [];
    const legend = element("span");
    legend.className = "gantt-mark";
    element("i", undefined, legend);
    legend.append(`has ${names.join(" or ")}`);
    return [legend];
  }
  function usersLegend() {
    const entry = (tag, text, shadeOf) => {
      const made = element(tag);
      element("i", undefined, made).style.background = css(theme.shades[shadeOf]);
      made.append(text);
      return made;
    };
    const entries = data.users.slice(0, USERS.length).map((_, code) => {
      const button = entry("button", called(data.users, code), userShade(code));
      button.type = "button";
      button.title = "Fade the jobs of all other users";
      button.setAttribute("aria-pressed", String(onlyUser === code));
      button.addEventListener("click", () => {
        const next = onlyUser === code ? -1 : code;
        keep(-1);
        onlyUser = next;
        recolour();
      });
      return button;
    });
    const others = chart.user.some((code) => userShade(code) === OTHERS);
    return others ? [...entries, entry("span", "others", OTHERS)] : entries;
  }
  function listLongest() {
    const labels = ["Job", "Waited", "Processors", "User", "Name", "Submitted", "Started", "Run time", "Limit"];
    const columns = labels.filter((label) => tells[label]), head = element("tr");
    const order = Uint32Array.from(chart.wait.keys()).sort((a, b) => chart.wait[b] - chart.wait[a] || a - b);
    const ranked = (cell, label) => (SECOND.includes(label) ? (cell.dataset.rank = "2") : undefined);
    for (const label of columns) ranked(element("th", label, head), label);
    part("caption").textContent = `Longest waits of the jobs that ran in this stretch, under ${title}`;
    root.querySelector("thead").replaceChildren(head);
    root.querySelector("tbody").replaceChildren(...Array.from(order.subarray(0, 10), (j) => {
      const row = element("tr");
      for (const label of columns) ranked(element("td", label === "Job" ? undefined : tells[label](j), row), label);
      const go = element("button", tells.Job(j), row.firstChild);
      go.type = "button";
      go.title = "Show this job";
      go.addEventListener("click", () => {
        goTo(j);
        picture.focus({ preventScroll: true });
        plot.scrollIntoView({ block: "nearest" });
      });
      return row;
    }));
  }
  function show(which) {
    chart = charts[which] ??= chartOf(data.charts[which], data.column, machine);
    chart.overview ??= sampled(chart.queue, whole.from, whole.to, 1200).peak;
    title = data.charts[which].title;
    hovered = -1;
    const drawn = chart.start.length, { started } = data.charts[which];
    const all = `All ${jobs(drawn)}` + (started < data.jobs ? ` that started, of ${count(data.jobs)}` : "");
    const some = `The stretch in which jobs waited most, ${count(drawn)} of ${jobs(data.jobs)}`;
    const what = !drawn ? "No job can be drawn" : drawn === started ? all : some;
    const when = `${duration(final - begin)} from ${clock.instant(begin)} to ${clock.instant(final)}`;
    const dates = data.epoch ? "Dates and hours are UTC." : "Days count from the beginning of the trace.";
    const processors = `${count(data.processors)} processors`, nodes = machine && `${count(machine.rows)} nodes with `;
    const about = `${data.trace} on ${nodes ?? ""}${processors} under ${title}`;
    part("about").textContent = `${about}. ${what}: ${when}. ${dates}`;
    const keys = "Arrow keys move, plus and minus zoom, 0 shows all.";
    picture.setAttribute("aria-label", `Gantt chart: ${about}, below jobs waiting and utilisation. ${keys}`);
    keep(-1);
    listLongest();
  }

  // Hands.

  function onPicture() {
    const local = (event) => {
      const { left, top } = picture.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    let drag = null;
    const drop = () => {
      drag = null;
      plot.classList.remove("gantt-drags");
    };
    picture.addEventListener("wheel", (event) => {
      if (event.ctrlKey) return; // the browser's own zoom
      const delta = (event.deltaY || event.deltaX) * (event.deltaMode ? 16 : 1), [x, y] = local(event);
      const factor = Math.exp(within(delta, -300, 300) * 0.002);
      // Where there is nothing left to zoom out of, the wheel scrolls the page.
      if (!event.shiftKey && delta > 0 && view.to - view.from >= whole.to - whole.from) return;
      event.preventDefault();
      if (event.shiftKey) zoomLanes(factor, within((bottom() - y) / tall(), 0, 1));
      else zoom(factor, within((x - LEFT) / wide(), 0, 1));
    }, { passive: false });
    picture.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      drag = { at: local(event), view, moved: false };
      picture.setPointerCapture(event.pointerId);
    });
    picture.addEventListener("pointermove", (event) => {
      pointer = local(event);
      const across = drag ? pointer[0] - drag.at[0] : 0, down = drag ? pointer[1] - drag.at[1] : 0;
      if (drag && (drag.moved ||= Math.hypot(across, down) > 3)) {
        plot.classList.add("gantt-drags");
        shift(-across / wide(), down / tall(), drag.view);
      } else {
        hover();
        drawMarks();
      }
    });
    picture.addEventListener("pointerup", () => {
      if (drag && !drag.moved) keep(jobAt(...drag.at), atOf(drag.at[0]), laneOf(drag.at[1]));
      drop();
    });
    picture.addEventListener("pointercancel", drop);
    picture.addEventListener("pointerleave", () => {
      pointer = null;
      hovered = -1;
      if (!kept) tip.hidden = true;
      drawMarks();
    });
  }
  function onKeys() {
    const keys = {
      "+": "in", "=": "in", "-": "out", 0: "all", w: "worst", Escape: "release",
      ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
    };
    const shifted = { ArrowUp: "fewer", ArrowDown: "more" };
    picture.addEventListener("keydown", (event) => {
      const action = (event.shiftKey && shifted[event.key]) || keys[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[action]();
    });
  }
  function onOverview() {
    let grip = null; // how far from the middle of the view it was taken
    const drive = (event) => {
      const x = event.clientX - overview.getBoundingClientRect().left, half = (view.to - view.from) / 2;
      const at = whole.from + ((x - LEFT) / wide()) * (whole.to - whole.from), off = at - view.from - half;
      grip ??= Math.abs(off) < half ? off : 0;
      look({ ...view, from: at - grip - half, to: at - grip + half });
    };
    overview.addEventListener("pointerdown", (event) => {
      overview.setPointerCapture(event.pointerId);
      drive(event);
    });
    overview.addEventListener("pointermove", (event) => grip !== null && drive(event));
    for (const done of ["pointerup", "pointercancel"]) overview.addEventListener(done, () => (grip = null));
  }

  for (const raw of data.charts) element("option", raw.title, part("chart"));
  part("chart").parentElement.hidden = data.charts.length < 2;
  part("chart").addEventListener("change", (event) => show(event.target.selectedIndex));
  part("colour").addEventListener("change", () => {
    recolour();
    follow();
  });
  for (const button of root.querySelectorAll("[data-do]")) button.addEventListener("click", actions[button.dataset.do]);
  show(0);
  look(opening);
  restore(location.hash);
  follow = addressKeeper(key, state);
  window.addEventListener("hashchange", () => restore(location.hash));
  onPicture();
  onKeys();
  onOverview();
  new ResizeObserver(redraw).observe(picture);

  const corner = () => picture.getBoundingClientRect();
  return Object.freeze({
    view: () => view,
    // Draws in the colours of the theme.
    restyle() {
      recolour();
      draw();
    },
    // What the strips show at an instant: jobs waiting and processors in use.
    now: (at) => ({ waiting: chart.queue.now(at), busy: chart.busy.now(at) }),
    // The id of the job at a point of the window, null if there is none.
    jobAt(x, y) {
      const j = jobAt(x - corner().left, y - corner().top);
      return j < 0 ? null : String(chart.id[j]);
    },
    // The point of the window where a job is, null if it is not in view.
    where(id) {
      const j = indexOf(id), at = j < 0 ? null : middleOf(j);
      return at && { x: at[0] + corner().left, y: at[1] + corner().top };
    },
    get lastDrawMs() {
      return lastDrawMs;
    },
  });
}

async function open(root, at) {
  try {
    const data = await unpack(root.querySelector('[data-part="data"]').textContent);
    const figure = figureOf(root, data, at ? `gantt${at + 1}` : "gantt");
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))); // drawn and shown
    return figure;
  } catch (error) {
    root.querySelector('[data-part="about"]').textContent = `This browser could not draw the chart: ${error.message}`;
    throw error;
  }
}

async function openAll() {
  const loaded = new Promise((done) => document.addEventListener("DOMContentLoaded", done));
  if (document.readyState === "loading") await loaded;
  const figures = await Promise.all(Array.from(document.querySelectorAll("[data-gantt]"), open));
  const take = (dark) => {
    theme = dark ? THEMES.dark : THEMES.light;
    for (const figure of figures) figure.restyle();
  };
  asksForDark.addEventListener("change", () => take(asksForDark.matches));
  window.addEventListener("beforeprint", () => take(false));
  window.addEventListener("afterprint", () => take(asksForDark.matches));
  return figures;
}

// For tests, and read-only: `ready` gives the figures of the page once they are drawn.
window.dovetailGantt = Object.freeze({ ready: openAll() });

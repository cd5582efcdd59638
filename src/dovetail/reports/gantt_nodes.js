// Nodes as rows, where a cluster's nodes are known. Row r is node r, the lowest is 0. The lanes of the data are cores,
// those of node 0 first: a job has as much of a row as it has of the node's cores.

const KINDS_WIDE = 92; // CSS pixels left of the numbers of nodes, for the names of their kinds
const MOST_RUNS = 8; // stretches of nodes that a tooltip lists

// The nodes of a figure; null where they are not known.
function machineOf({ nodes: raw }, column) {
  if (!raw) return null;
  const kinds = [];
  let row = 0, core = 0;
  for (const [name, nodes, capacity] of raw.kinds) {
    kinds.push({ name, nodes, capacity, row, core });
    row += nodes;
    core += nodes * capacity[0];
  }
  const units = column(raw.requests.units), exclusive = column(raw.requests.exclusive);
  const share = column(raw.requests.share), need = raw.requests.need.map(column);
  const firstRows = kinds.map((kind) => kind.row), firstCores = kinds.map((kind) => kind.core);
  const kindOf = (node) => kinds[placeAbove(firstRows, node) - 1];
  const kindAt = (lane) => kinds[placeAbove(firstCores, lane) - 1]; // every rectangle lies within one kind
  const has = (request, kind, r) => (exclusive[request] ? kind.capacity[r] : need[r][request]);

  // Where a rectangle of cores stands, in rows.
  function place(lane, lanes) {
    const kind = kindAt(lane), [cores] = kind.capacity;
    return [kind.row + (lane - kind.core) / cores, lanes / cores];
  }
  // Its first and its last node.
  function nodesOf([lane, lanes]) {
    const kind = kindAt(lane), nodeAt = (one) => kind.row + Math.floor((one - kind.core) / kind.capacity[0]);
    return [nodeAt(lane), nodeAt(lane + lanes - 1)];
  }
  const marked = (request, lane) => raw.accelerators.some((r) => has(request, kindAt(lane), r) > 0);

  // In words: the nodes of a job, by kind.
  function nodesText(pieces) {
    const runs = [];
    for (const [first, last] of pieces.map(nodesOf).sort((a, b) => a[0] - b[0])) {
      const before = runs[runs.length - 1];
      if (before && first <= before[1] + 1 && kindOf(first) === kindOf(before[1])) before[1] = Math.max(before[1], last);
      else runs.push([first, last]);
    }
    const listed = runs.slice(0, MOST_RUNS).map(([first, last], k) => {
      const kind = kindOf(first), said = k && kindOf(runs[k - 1][0]) === kind;
      return (said ? "" : `${kind.name} `) + (first === last ? count(first) : `${count(first)} to ${count(last)}`);
    });
    const all = runs.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    return listed.join(", ") + (runs.length > MOST_RUNS ? `, and others: ${count(all)} nodes` : "");
  }
  // In words: what each unit of a job has. One that is alone on its node has all of it.
  function unitText(request, pieces) {
    const texts = pieces.map(([lane]) => {
      const held = raw.resources.map((name, r) => {
        const amount = has(request, kindAt(lane), r), part = r === raw.shared && !exclusive[request] ? share[request] : 1000;
        const partly = part < 1000 ? ` (${part / 10} % of each)` : "";
        return amount ? `${count(amount)} ${name}${partly}` : "";
      });
      return (exclusive[request] ? "a whole node: " : "") + held.filter(Boolean).join(", ");
    });
    return [...new Set(texts)].join("; ");
  }
  return { kinds, rows: row, kindOf, place, marked, nodesText, unitText, unitsOf: (request) => units[request] };
}

// A text that is no wider than the room for it.
function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return `${text.slice(0, length)}…`;
}

// The axis of nodes: lines between rows where there is room, numbers in the middle of rows, and the kinds beside them.
function drawRows(context, machine, view, yOf, left, wide, tall) {
  const height = tall / (view.high - view.low), top = yOf(view.high), bottom = yOf(view.low);
  if (height >= 10) {
    for (let row = Math.ceil(view.low); row <= view.high; row++) box(context, left, Math.round(yOf(row)), wide, 1);
  }
  const step = Math.ceil(roundStep(1, (n) => n * height >= 18));
  for (let row = Math.ceil(Math.max(view.low - 0.5, 0) / step) * step; row + 0.5 <= view.high; row += step) {
    box(context, left - 5, Math.round(yOf(row + 0.5)), 5, 1, theme.soft);
    write(context, count(row), left - 8, yOf(row + 0.5), { align: "right", baseline: "middle" });
  }
  box(context, left - 1, top, 1, tall, theme.soft);
  for (const kind of machine.kinds) {
    const high = Math.max(yOf(kind.row + kind.nodes), top), low = Math.min(yOf(kind.row), bottom);
    if (low <= high) continue;
    if (high > top) {
      if (left > KINDS_WIDE) box(context, 2, Math.round(high), KINDS_WIDE - 8, 1);
      box(context, left, Math.round(high), wide, 1, theme.line);
    }
    if (left > KINDS_WIDE) labelKind(context, kind, KINDS_WIDE - 8, (low + high) / 2, low - high);
  }
}

function labelKind(context, { name, nodes }, room, y, height) {
  const style = { align: "left", baseline: "middle" }, many = `${count(nodes)} ${nodes === 1 ? "node" : "nodes"}`;
  if (height >= 34) {
    write(context, shortened(context, name, room), 2, y - 8, { ...style, colour: theme.ink });
    write(context, many, 2, y + 8, style);
  } else if (height >= 14) {
    const short = ` × ${count(nodes)}`, fits = shortened(context, name, room - context.measureText(short).width);
    write(context, fits + short, 2, y, { ...style, colour: theme.ink });
  }
}

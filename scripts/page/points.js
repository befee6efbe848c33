// The points of the plot: one metric of the chosen cells against a column or another metric, one point per cell.

// A cost from another cell counts only if that cell did the same work: these columns must agree.
const WORK = ["method", "nq", "n", "d", "dv", "causal", "heads"];

// The places of a cell along x: [x, machine, words], one per machine that measured the cost of the same work.
function placesAlong(store, form) {
  const x = form.elements.x.value;
  const {cells, rows, rowOf} = store;
  if (!x.startsWith("metric:"))
    return cell => typeof cells[x]?.[cell] === "number" ? [[cells[x][cell], cells.machine[cell], ""]] : [];
  const metric = x.slice("metric:".length);
  const centre = rows[centreOf(store, form, metric)];
  const work = cell => WORK.map(name => cells[name][cell]).join("|");
  const elsewhere = new Map();  // work to machine to values
  for (let cell = 0; cell < store.count; ++cell) {
    const row = rowOf.get(`${cell} ${metric}`);
    if (row === undefined) continue;
    const machines = elsewhere.get(work(cell)) ?? new Map();
    machines.set(cells.machine[cell], [...(machines.get(cells.machine[cell]) ?? []), centre[row]]);
    elsewhere.set(work(cell), machines);
  }
  return cell => {
    const own = rowOf.get(`${cell} ${metric}`);
    if (own !== undefined) return [[centre[own], cells.machine[cell], ""]];
    const of = cells.machine[cell];
    return [...(elsewhere.get(work(cell)) ?? [])].filter(([machine]) => !of || machine === of)
      .map(([machine, values]) => [median(values), machine, `, of ${plural(values.length, "cell")} of the same work`]);
  };
}

function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  return (ordered[(ordered.length - 1) >> 1] + ordered[ordered.length >> 1]) / 2;
}

function seriesOf(store, form, cell) {
  const {series, x} = form.elements;
  const {cells} = store;
  if (series.value === "name") return nameOf(cells.method[cell]);
  if (series.value !== "method") return `${series.value}=${cells[series.value]?.[cell] ?? "none"}`;
  return withoutParameter(cells.method[cell], x.value);
}

// Returns the points {cell, row, x, y, low, high, series, facet, words}, marks of cells that are not done, and
// the numbers of cells that are in neither.
function pointsOf(store, form, cells) {
  const {y, x, facet, find} = form.elements;
  const {rows, cells: columns} = store;
  const agrees = filterOf(store, find.value);
  const places = placesAlong(store, form);
  const centre = centreOf(store, form, y.value);
  const ends = centre === "median" ? ["median_low", "median_high"] : ["low", "high"];
  const facetOf = (name, cell) => {
    if (!columns[name]) return "";  // none
    const value = columns[name][cell] ?? "none";
    return `${name}=${name === "input" ? withoutParameter(value, x.value) : value}`;
  };
  const points = [], marks = [];
  let placeless = 0, gaps = 0, elsewhere = 0;
  for (const cell of cells) {
    if (!agrees(cell, y.value)) continue;
    const of = {cell, series: seriesOf(store, form, cell), facet: facetOf(facet.value, cell)};
    const row = store.rowOf.get(`${cell} ${y.value}`);
    const along = places(cell);
    if (columns.other[cell]) {
      if (along.length && !x.value.startsWith("metric:")) marks.push({...of, x: along[0][0]});
      else if (row === undefined) ++placeless;
    }
    if (row === undefined) continue;
    if (rows.replicates[row] < columns.done[cell]) {  // the mean of the others would be biased
      ++gaps;
      continue;
    }
    elsewhere += !along.length;
    for (const [value, machine, words] of along)
      points.push({...of, row, machine, words, x: value, y: rows[centre][row], low: rows[ends[0]][row],
        high: rows[ends[1]][row]});
  }
  // Timings of two machines are not one sample.
  if (new Set(points.map(point => point.machine).filter(Boolean)).size > 1)
    for (const point of points) if (point.machine) point.series += ` on ${point.machine}`;
  // Unless the reader decides: points of several inputs are not one curve.
  const input = point => facetOf("input", point.cell);
  const different = of => new Set(points.map(of)).size;
  if (!facet.value && different(point => `${input(point)} ${point.series}`) > different(point => point.series))
    for (const point of [...points, ...marks]) point.facet = input(point);
  return {points, marks, placeless, gaps, elsewhere};
}

// A text for Plotly, which reads tags such as <b> and <a href> in everything that it draws.
const plotText = text => String(text).replace(/[&<>]/g, sign => ({"&": "&amp;", "<": "&lt;", ">": "&gt;"})[sign]);

function hoverOf(store, form, point) {
  const {cells, rows} = store;
  const {y, x} = form.elements;
  const centre = centreOf(store, form, y.value);
  const short = spec => spec.length > 90 ? spec.slice(0, 90) + "…" : spec;
  const of = name => `${name} = ${cells[name][point.cell]}`;
  const problem = [of("n"), of("d"), cells.causal[point.cell] ? "causal" : "", cells.machine[point.cell]];
  const lines = [short(cells.method[point.cell]), short(`${cells.experiment[point.cell]}, ${cells.input[point.cell]}`),
    problem.filter(Boolean).join(", ")];
  if (point.row === undefined) return [...lines, cells.other[point.cell]].map(plotText).join("<br>");
  const theory = store.rowOf.get(`${point.cell} ${y.value}_theory`);
  const interval = Number.isNaN(point.low) ? "" : `  [${number(point.low)}, ${number(point.high)}]`;
  lines.push(`${x.value.replace("metric:", "")} = ${number(point.x)}${point.words}`,
    `${labelOf(store, form, y.value)}, ${centre} = ${number(point.y)}${interval}`,
    `${plural(rows.replicates[point.row], "replicate")}, ${plural(rows.samples[point.row], "sample")}`);
  if (theory !== undefined) lines.push(`closed form = ${number(rows[centre][theory])}`);
  if (cells.other[point.cell]) lines.push(`not done: ${short(cells.other[point.cell])}`);
  return lines.map(plotText).join("<br>");
}

// Whether logarithmic axes can show the point.
const drawable = ({elements: {logx, logy}}, point) => (!logx.checked || point.x > 0) && (!logy.checked || point.y > 0);

// The points that no other point beats in both coordinates: least x, and least or greatest y.
function paretoFront(points, direction) {
  const sign = direction === "least" ? 1 : -1;
  const front = [];
  for (const point of [...points].sort((a, b) => a.x - b.x || sign * (a.y - b.y)))
    if (!front.length || sign * (point.y - front[front.length - 1].y) < 0) front.push(point);
  return front;
}

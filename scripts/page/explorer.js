// The explorer: one metric of the chosen cells against a column or another metric, a point a cell.

const DASHES = ["solid", "dash", "dashdot", "longdash", "dot"];
const DASH_ARRAYS = ["", "6 3", "6 2 1 2", "9 3", "2 2"];
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "star"];
const SIGNS = ["●", "■", "▲", "◆", "▼", "✚", "★"];  // the same in words' type, for the legend
const COLOURS = 8;
const MOST_FACETS = 12;
const COST_UNITS = ["FLOP", "B", "s"];
// Of another cell, a cost is only that of the same work.
const WORK = ["method", "nq", "n", "d", "dv", "causal", "heads"];

function fill(select, groups) {
  const before = select.value;
  select.replaceChildren(...groups.flatMap(([label, names]) => {
    const options = names.map(([value, text]) => new Option(text, value));
    if (!label) return options;
    const group = document.createElement("optgroup");
    group.label = label;
    group.append(...options);
    return options.length ? [group] : [];
  }));
  if ([...select.options].some(option => option.value === before)) select.value = before;
}

function fillCells(store, select) {
  const names = column => [...new Set(store.cells[column].map(nameOf))].sort();
  const options = (kind, list) => list.map(name => [`${kind}:${name}`, name]);
  fill(select, [["", [["all", "all"]]], ["Recipes", options("recipe", Object.keys(store.recipes))],
    ["Experiments", options("experiment", names("experiment"))], ["Methods", options("method", names("method"))]]);
}

// Names with those first that figures draw: of the chosen recipe, then of any, the most frequent first.
function ranked(store, form, axis, names) {
  const recipe = form.elements.cells.value.replace(/^recipe:/, "");
  const uses = new Map();
  for (const [of, x, y] of store.panels)
    for (const name of axis === "y" ? [y] : x) uses.set(name, (uses.get(name) ?? 0) + (of === recipe ? 1000 : 1));
  return [...names].sort(([a], [b]) => (uses.get(b) ?? 0) - (uses.get(a) ?? 0));
}

// Choices that the chosen cells have.
function fillAxes(store, form, cells) {
  const chosen = new Set(cells);
  const counts = new Map();
  store.rows.cell.forEach((cell, row) => {
    const metric = store.metrics[store.rows.metric[row]];
    if (chosen.has(cell) && !metric[0].endsWith("_theory")) counts.set(metric[0], [(counts.get(metric[0])?.[0] ?? 0) + 1, metric[1]]);
  });
  const metrics = [...counts].sort(([, [a]], [, [b]]) => b - a)
    .map(([name, [, unit]]) => [name, unit === "1" ? name : `${name} (${unit})`, COST_UNITS.includes(unit)]);
  const values = name => new Set(cells.map(cell => store.cells[name][cell]));
  const sizes = store.varying.filter(name => name !== "seed" && values(name).size > 1 &&
    cells.some(cell => typeof store.cells[name][cell] === "number")).map(name => [name, name]);
  const columns = store.varying.filter(name => values(name).size > 1).map(name => [name, name]);
  const along = costs => metrics.filter(([, , cost]) => cost === costs).map(([name, text]) => [`metric:${name}`, text]);
  const {y, x, series, facet} = form.elements;
  fill(y, [["", ranked(store, form, "y", metrics)]]);
  fill(x, [["Sizes and parameters", sizes.length ? ranked(store, form, "x", sizes) : [["n", "n"]]], ["Costs", along(true)], ["Other metrics", along(false)]]);
  fill(series, [["", [["method", "method"], ["name", "method's name"]]], ["Columns", columns.filter(([name]) => name !== "method")]]);
  fill(facet, [["", [["", "none"]]], ["Columns", columns.filter(([name]) => values(name).size <= MOST_FACETS)]]);
}

// The places of a cell along x: [x, machine, words], as many as machines that measured that cost of the same work.
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
    return [...(elsewhere.get(work(cell)) ?? [])].filter(([machine]) => !cells.machine[cell] || machine === cells.machine[cell])
      .map(([machine, values]) => {
        const ordered = [...values].sort((a, b) => a - b);
        return [ordered[ordered.length >> 1], machine, ` of ${plural(values.length, "cell")} of the same work`];
      });
  };
}

function seriesOf(store, form, cell) {
  const {series, x} = form.elements;
  const {cells} = store;
  if (series.value === "name") return nameOf(cells.method[cell]);
  if (series.value !== "method") return `${series.value}=${cells[series.value][cell] ?? "none"}`;
  return withoutParameter(cells.method[cell], x.value);
}

// What is drawn: points {cell, row, x, y, low, high, series, facet, words}, and marks of cells that are not done.
function pointsOf(store, form, cells) {
  const {y, x, facet, find} = form.elements;
  const {rows, cells: columns} = store;
  const agrees = filterOf(store, find.value);
  const places = placesAlong(store, form);
  const centre = centreOf(store, form, y.value);
  const ends = centre === "median" ? ["median_low", "median_high"] : ["low", "high"];
  const points = [], marks = [];
  let placeless = 0, gaps = 0;
  for (const cell of cells) {
    if (!agrees(cell, y.value)) continue;
    const of = {cell, series: seriesOf(store, form, cell), facet: facet.value ? `${facet.value}=${columns[facet.value][cell] ?? "none"}` : ""};
    const row = store.rowOf.get(`${cell} ${y.value}`);
    const along = places(cell);
    if (columns.other[cell]) {
      if (along.length && !x.value.startsWith("metric:")) marks.push({...of, x: along[0][0]});
      else if (row === undefined) ++placeless;
    }
    if (row === undefined) continue;
    if (rows.replicates[row] < columns.done[cell]) {  // the mean of the others is not its mean
      ++gaps;
      continue;
    }
    for (const [value, machine, words] of along)
      points.push({...of, row, machine, words, x: value, y: rows[centre][row], low: rows[ends[0]][row], high: rows[ends[1]][row]});
  }
  if (new Set(points.map(point => point.machine).filter(Boolean)).size > 1)  // timings of two machines are no sample of one
    for (const point of points) if (point.machine) point.series += ` on ${point.machine}`;
  return {points, marks, placeless, gaps};
}

function hoverOf(store, form, point) {
  const {cells, rows} = store;
  const {y, x} = form.elements;
  const centre = centreOf(store, form, y.value);
  const short = spec => spec.length > 90 ? spec.slice(0, 90) + "…" : spec;
  const of = name => `${name} = ${cells[name][point.cell]}`;
  const lines = [short(cells.method[point.cell]), short(`${cells.experiment[point.cell]}, ${cells.input[point.cell]}`),
    [of("n"), of("d"), ...(cells.causal[point.cell] ? ["causal"] : []), ...(cells.machine[point.cell] ? [cells.machine[point.cell]] : [])].join(", ")];
  if (point.row === undefined) return [...lines, cells.other[point.cell]].join("<br>");
  const theory = store.rowOf.get(`${point.cell} ${y.value}_theory`);
  lines.push(`${x.value.replace("metric:", "")} = ${number(point.x)}${point.words}`,
    `${centre} of ${y.value} = <b>${number(point.y)}</b>` + (Number.isNaN(point.low) ? "" : `  [${number(point.low)}, ${number(point.high)}]`),
    `${plural(rows.replicates[point.row], "replicate")}, ${plural(rows.samples[point.row], "sample")}`);
  if (theory !== undefined) lines.push(`closed form = ${number(rows[centre][theory])}`);
  if (cells.other[point.cell]) lines.push(`not done: ${short(cells.other[point.cell])}`);
  return lines.join("<br>");
}

// Whether logarithmic axes have a place for it.
const drawable = ({elements: {logx, logy}}, point) => (!logx.checked || point.x > 0) && (!logy.checked || point.y > 0);

// The points that no other is better than in both: least x, and least or greatest y.
function paretoFront(points, direction) {
  const sign = direction === "least" ? 1 : -1;
  const front = [];
  for (const point of [...points].sort((a, b) => a.x - b.x || sign * (a.y - b.y)))
    if (!front.length || sign * (point.y - front[front.length - 1].y) < 0) front.push(point);
  return front;
}

// The look of every series, by its place among all, so that hiding one changes no other.
function looksOf(names) {
  const style = getComputedStyle(document.documentElement);
  return new Map(names.map((name, i) => [name, {
    colour: style.getPropertyValue(`--series-${i % COLOURS}`).trim(), dash: DASHES[i % DASHES.length], symbol: SYMBOLS[i % SYMBOLS.length],
    dashes: DASH_ARRAYS[i % DASHES.length], sign: SIGNS[i % SYMBOLS.length]}]));
}

function tracesOf(store, form, drawn, looks, facets) {
  const {intervals, pareto, logy} = form.elements;
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const hidden = new Set(form.elements.hide.value.split("|"));
  const shown = drawn.points.filter(point => !hidden.has(point.series));
  const lowest = Math.min(...shown.map(point => point.y).filter(y => !logy.checked || y > 0));
  const greatest = Math.max(...shown.map(point => point.y));
  const bottom = Number.isFinite(lowest) ? (logy.checked ? lowest / 1.5 : lowest - 0.05 * (greatest - lowest || 1)) : 1;
  const traces = [];
  facets.forEach((facet, i) => {
    const axes = {xaxis: `x${i ? i + 1 : ""}`, yaxis: `y${i ? i + 1 : ""}`};
    for (const [name, look] of looks) {
      const points = shown.filter(point => point.series === name && point.facet === facet).sort((a, b) => a.x - b.x);
      if (!points.length) continue;
      const joined = new Set(points.map(point => point.x)).size === points.length;
      const below = logy.checked ? point => Math.max(point.low, bottom) : point => point.low;
      traces.push({...axes, type: "scatter", name, mode: joined ? "lines+markers" : "markers",
        x: points.map(point => point.x), y: points.map(point => point.y),
        text: points.map(point => hoverOf(store, form, point)), customdata: points.map(point => store.cells.key[point.cell]),
        hovertemplate: "%{text}<extra></extra>",
        line: {color: look.colour, width: 1.6, dash: look.dash}, marker: {color: look.colour, symbol: look.symbol, size: 7},
        error_y: intervals.checked ? {type: "data", symmetric: false, thickness: 1.1, width: 3, color: look.colour,
          array: points.map(point => point.high - point.y), arrayminus: points.map(point => point.y - below(point))} : undefined});
    }
    const marks = drawn.marks.filter(mark => mark.facet === facet && !hidden.has(mark.series));
    if (marks.length)
      traces.push({...axes, type: "scatter", name: "not done", mode: "markers", x: marks.map(mark => mark.x), y: marks.map(() => bottom),
        text: marks.map(mark => hoverOf(store, form, mark)), customdata: marks.map(mark => store.cells.key[mark.cell]),
        hovertemplate: "%{text}<extra></extra>", marker: {color: ink, symbol: "x-thin", size: 9, line: {color: ink, width: 1.6}}});
    const front = pareto.value ? paretoFront(shown.filter(point => point.facet === facet && drawable(form, point)), pareto.value) : [];
    if (front.length)
      traces.push({...axes, type: "scatter", name: "Pareto front", mode: "lines", hoverinfo: "skip", x: front.map(point => point.x),
        y: front.map(point => point.y), line: {color: ink, width: 2.4, dash: "dot", shape: "hv"}});
  });
  return traces;
}

// Ticks of an axis: at the numbers themselves where they are few, such as sizes; of a logarithmic one else powers of ten
// where there are two or more, or digits.
function scaleOf(log, numbers) {
  const type = log ? "log" : "linear";
  const values = [...new Set(numbers)].sort((a, b) => a - b).filter(value => !log || value > 0);
  const decades = Math.log10(values[values.length - 1] / values[0]);
  if (values.length && values.length <= 8 && values.every(Number.isInteger) && (!log || decades > 0.1 * (values.length - 1)))
    return {type, tickmode: "array", tickvals: values, ticktext: values.map(String)};
  if (!log) return {type};
  return {type, tickmode: "linear", tick0: 0, dtick: decades < 0.7 ? "D1" : decades < 2 ? "D2" : Math.max(1, Math.ceil(decades / 6)) || 1};
}

function layoutOf(store, form, traces, facets, width) {
  const {x, y, logx, logy} = form.elements;
  const style = getComputedStyle(document.documentElement);
  const [ink, rule, faint, paper] = ["ink", "rule", "faint", "paper"].map(name => style.getPropertyValue(`--${name}`).trim());
  const columns = Math.min(facets.length, width < 600 ? 1 : 3);
  const rows = Math.ceil(facets.length / columns);
  const layout = {height: Math.max(rows * (facets.length > 1 ? 260 : 0) + 60, width < 600 ? 380 : 460), showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: {family: "system-ui, sans-serif", size: 13, color: ink},
    margin: {l: 10, r: 10, t: facets.length > 1 ? 60 : 36, b: 10}, modebar: {bgcolor: "rgba(0,0,0,0)", color: faint, activecolor: ink}, hovermode: "closest", annotations: [],
    hoverlabel: {bgcolor: paper, bordercolor: faint, font: {color: ink, size: 12}, align: "left"}};
  const [gapX, gapY] = [0.09, Math.min(0.16, 0.5 / rows)];
  facets.forEach((facet, i) => {
    const [column, row, end] = [i % columns, Math.floor(i / columns), i ? i + 1 : ""];
    const [w, h] = [(1 - gapX * (columns - 1)) / columns, (1 - gapY * (rows - 1)) / rows];
    const left = column * (w + gapX), top = 1 - row * (h + gapY);
    const axis = {gridcolor: rule, linecolor: faint, zeroline: false, automargin: true, exponentformat: "power"};
    const scale = (log, of) => scaleOf(log.checked, traces.flatMap(trace => trace[of]));
    const lowest = i + columns >= facets.length;
    layout[`xaxis${end}`] = {...axis, ...scale(logx, "x"), domain: [left, left + w], anchor: `y${end}`, matches: i ? "x" : undefined,
      title: lowest ? {text: x.value.replace("metric:", "")} : undefined};
    layout[`yaxis${end}`] = {...axis, ...scale(logy, "y"), domain: [Math.max(0, top - h), top], anchor: `x${end}`, matches: i ? "y" : undefined,
      title: column === 0 ? {text: `${centreOf(store, form, y.value)} of ${y.value}`} : undefined};
    if (facet) layout.annotations.push({text: facet, xref: "paper", yref: "paper", x: left, y: top, xanchor: "left", yanchor: "bottom", showarrow: false});
  });
  return layout;
}

function drawLegend(form, looks, redraw) {
  const hidden = new Set(form.elements.hide.value.split("|").filter(Boolean));
  const list = document.getElementById("legend");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.series : null;
  list.replaceChildren(...[...looks].map(([name, look]) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.series = name;
    button.ariaPressed = String(!hidden.has(name));
    button.innerHTML = `<svg viewBox="0 0 36 12" aria-hidden="true"><path d="M0 6H36" stroke="${look.colour}" stroke-width="2"
      stroke-dasharray="${look.dashes}"/><text x="18" y="10" text-anchor="middle" fill="${look.colour}">${look.sign}</text></svg>`;
    button.append(name);
    button.onclick = () => {
      if (!hidden.delete(name)) hidden.add(name);
      form.elements.hide.value = [...hidden].join("|");
      redraw();
    };
    item.append(button);
    return item;
  }));
  if (focused !== null) [...list.querySelectorAll("button")].find(button => button.dataset.series === focused)?.focus();
}

async function drawPlot(store, form) {
  await loadPlotly();
  const place = document.getElementById("plot");
  const cells = cellsOf(store, form.elements.cells.value);
  const drawn = pointsOf(store, form, cells);
  const order = (a, b) => a.localeCompare(b, "en", {numeric: true});
  const names = [...new Set(drawn.points.map(point => point.series))].sort(order);
  const facets = [...new Set([...drawn.points, ...drawn.marks].map(point => point.facet))].sort(order).slice(0, MOST_FACETS);
  const looks = looksOf(names);
  const traces = tracesOf(store, form, drawn, looks, facets.length ? facets : [""]);
  await Plotly.react(place, traces, layoutOf(store, form, traces, facets.length ? facets : [""], place.clientWidth),
    {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"]});
  place.removeAllListeners?.("plotly_click");
  place.on("plotly_click", ({points: [point]}) => {
    if (point.customdata) location.hash = `cells=key:${point.customdata}`;
  });
  drawLegend(form, looks, () => form.elements.hide.dispatchEvent(new Event("change", {bubbles: true})));
  document.getElementById("plot-words").textContent = wordsOf(form, drawn, names, traces);
}

function wordsOf(form, {points, marks, placeless, gaps}, names, traces) {
  const words = [`${plural(points.length, "point")} in ${names.length} series`];
  const lost = points.filter(point => !drawable(form, point)).length;
  if (!points.length && form.elements.x.value.startsWith("metric:"))
    words.push("none of these cells has both, nor was the other measured of the same method and shape");
  if (lost) words.push(`${lost} not above zero, which a logarithmic axis does not show`);
  if (marks.length + placeless) words.push(`${plural(marks.length + placeless, "cell")} not (all) done: ${marks.length ? "crosses" : "without a place along x"}`);
  if (gaps) words.push(`${plural(gaps, "cell")} not drawn, of which a replicate has no ${form.elements.y.value}`);
  const several = traces.filter(trace => trace.mode === "markers" && trace.name !== "not done").length;
  if (several) words.push("series with several cells at an x are not joined: a filter, a facet or other series tell them apart");
  return words.join("; ") + ".";
}

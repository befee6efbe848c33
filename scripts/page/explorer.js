// The explorer: its controls, and the points for Plotly.

const DASHES = ["solid", "dash", "dashdot", "longdash", "dot"];
const DASH_ARRAYS = ["", "6 3", "6 2 1 2", "9 3", "2 2"];
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "star"];
const SIGNS = ["●", "■", "▲", "◆", "▼", "✚", "★"];  // the same as characters, for the legend
const COLOURS = 8;
const MOST_FACETS = 12;
const COST_UNITS = ["FLOP", "B", "s"];

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

// Sorts names: first those that figures of the chosen recipe draw, then those of any recipe, the most frequent first.
function ranked(store, form, axis, names) {
  const recipe = form.elements.cells.value.replace(/^recipe:/, "");
  const uses = new Map();
  for (const [of, x, y] of store.panels)
    for (const name of axis === "y" ? [y] : x) uses.set(name, (uses.get(name) ?? 0) + (of === recipe ? 1000 : 1));
  return [...names].sort(([a], [b]) => (uses.get(b) ?? 0) - (uses.get(a) ?? 0));
}

// The options that the chosen cells allow.
function fillAxes(store, form, cells) {
  const chosen = new Set(cells);
  const counts = new Map();
  store.rows.cell.forEach((cell, row) => {
    const [name, unit] = store.metrics[store.rows.metric[row]];
    if (chosen.has(cell) && !name.endsWith("_theory")) counts.set(name, [(counts.get(name)?.[0] ?? 0) + 1, unit]);
  });
  const metrics = [...counts].sort(([, [a]], [, [b]]) => b - a)
    .map(([name, [, unit]]) => [name, unit === "1" ? name : `${name} (${unit})`, COST_UNITS.includes(unit)]);
  const values = new Map(store.varying.map(name => [name, new Set(cells.map(cell => store.cells[name][cell]))]));
  const sizes = store.varying.filter(name => name !== "seed" && values.get(name).size > 1 &&
    [...values.get(name)].some(value => typeof value === "number")).map(name => [name, name]);
  const columns = store.varying.filter(name => values.get(name).size > 1).map(name => [name, name]);
  const along = costs => metrics.filter(([, , cost]) => cost === costs).map(([name, text]) => [`metric:${name}`, text]);
  const {y, x, series, facet} = form.elements;
  fill(y, [["", ranked(store, form, "y", metrics)]]);
  fill(x, [["Sizes and parameters", sizes.length ? ranked(store, form, "x", sizes) : [["n", "n"]]],
    ["Costs", along(true)], ["Other metrics", along(false)]]);
  fill(series, [["", [["method", "method"], ["name", "method's name"]]],
    ["Columns", columns.filter(([name]) => name !== "method")]]);
  fill(facet, [["", [["", "as needed"], ["none", "none"]]], ["Columns", columns.filter(([name]) => values.get(name).size <= MOST_FACETS)]]);
}

// Methods have the names, hues and markers that they have in figures; of those that would look the same, the later ones
// take the next marker or dash. The look of another series follows from its place. Hiding one changes no other.
function looksOf(store, form, points) {
  const style = getComputedStyle(document.documentElement);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const {series, x} = form.elements;
  const cells = new Map(points.map(point => [point.series, point.cell]));
  const taken = new Set();
  return new Map(inOrder(cells.keys()).map((name, i) => {
    const known = ["method", "name"].includes(series.value) ? store.looks[store.cells.method[cells.get(name)]] : undefined;
    const colour = known ? (dark ? known.dark : known.colour) : style.getPropertyValue(`--series-${i % COLOURS}`).trim();
    let [dash, symbol] = known ? [DASHES.indexOf(known.dash), Math.max(0, SYMBOLS.indexOf(known.symbol))] : [i, i];
    for (let shift = 0; shift < DASHES.length * SYMBOLS.length && taken.has(`${colour} ${dash} ${symbol}`); ++shift) {
      symbol = (symbol + 1) % SYMBOLS.length;
      if (shift % SYMBOLS.length === SYMBOLS.length - 1) dash = (dash + 1) % DASHES.length;
    }
    taken.add(`${colour} ${dash} ${symbol}`);
    return [name, {
      name: known && series.value === "method" ? printedName(store, known, cells.get(name), name, x.value) : name, colour,
      dash: DASHES[dash % DASHES.length], dashes: DASH_ARRAYS[dash % DASHES.length],
      symbol: SYMBOLS[symbol % SYMBOLS.length], sign: SIGNS[symbol % SYMBOLS.length],
    }];
  }));
}

// The printed name of a series without the parameter that is the axis: "Performer, m = 64" along m is "Performer". Words
// after the method's spec in the name of the series, such as the machine, stay.
function printedName(store, known, cell, series, axis) {
  const spec = withoutParameter(store.cells.method[cell], axis);
  const argument = new RegExp(`, ${axis.replace(/\W/g, "\\$&")} = [^,;)]+`, "g");
  return series.startsWith(spec) ? known.name.replaceAll(argument, "") + series.slice(spec.length) : series;
}

function inOrder(names) {
  return [...new Set(names)].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
}

// Plotly's traces: in every facet one per series, the crosses, and the front.
function tracesOf(store, form, drawn, looks, facets) {
  const {intervals, pareto, logy, hide} = form.elements;
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const hidden = new Set(hide.value.split("|"));
  const shown = drawn.points.filter(point => !hidden.has(point.series));
  const bottom = bottomOf(shown.map(point => point.y), logy.checked);
  const of = (points, y) => ({
    type: "scatter", x: points.map(point => point.x), y: points.map(y), hovertemplate: "%{text}<extra></extra>",
    text: points.map(point => hoverOf(store, form, point)), customdata: points.map(point => store.cells.key[point.cell]),
  });
  const traces = [];
  facets.forEach((facet, i) => {
    const axes = {xaxis: `x${i ? i + 1 : ""}`, yaxis: `y${i ? i + 1 : ""}`};
    const here = shown.filter(point => point.facet === facet);
    for (const [name, look] of looks) {
      const points = here.filter(point => point.series === name).sort((a, b) => a.x - b.x);
      if (!points.length) continue;
      const joined = new Set(points.map(point => point.x)).size === points.length;
      const below = point => point.y - (logy.checked ? Math.max(point.low, bottom) : point.low);
      traces.push({...of(points, point => point.y), ...axes, name: look.name, mode: joined ? "lines+markers" : "markers",
        line: {color: look.colour, width: 1.6, dash: look.dash}, marker: {color: look.colour, symbol: look.symbol, size: 7},
        error_y: {visible: intervals.checked, type: "data", symmetric: false, thickness: 1.1, width: 3, color: look.colour,
          array: points.map(point => point.high - point.y), arrayminus: points.map(below)}});
    }
    const marks = drawn.marks.filter(mark => mark.facet === facet && !hidden.has(mark.series));
    if (marks.length)
      traces.push({...of(marks, () => bottom), ...axes, name: "not done", mode: "markers",
        marker: {color: ink, symbol: "x-thin", size: 9, line: {color: ink, width: 1.6}}});
    const front = pareto.value ? paretoFront(here.filter(point => drawable(form, point)), pareto.value) : [];
    if (front.length)
      traces.push({...axes, type: "scatter", name: "Pareto front", mode: "lines", hoverinfo: "skip",
        x: front.map(point => point.x), y: front.map(point => point.y), line: {color: ink, width: 2.4, dash: "dot", shape: "hv"}});
  });
  return traces;
}

// A place below all points, for crosses, and for the ends of intervals that reach zero on a logarithmic axis.
function bottomOf(values, log) {
  const drawn = values.filter(value => !log || value > 0);
  if (!drawn.length) return 1;
  // Not Math.min(...drawn): a million arguments are more than a call takes.
  const [lowest, greatest] = drawn.reduce(([low, high], y) => [Math.min(low, y), Math.max(high, y)], [drawn[0], drawn[0]]);
  return log ? lowest / 1.5 : lowest - 0.05 * (greatest - lowest || 1);
}

// Ticks of an axis: at the numbers themselves if they are few, such as sizes. Otherwise a logarithmic axis has ticks at
// powers of ten if it includes at least two, or at digits.
function scaleOf(log, numbers) {
  const type = log ? "log" : "linear";
  const values = [...new Set(numbers)].sort((a, b) => a - b).filter(value => !log || value > 0);
  const decades = Math.log10(values[values.length - 1] / values[0]);
  const apart = !log || decades > 0.1 * (values.length - 1);
  if (values.length && values.length <= 8 && values.every(Number.isInteger) && apart)
    return {type, tickmode: "array", tickvals: values, ticktext: values.map(String)};
  if (!log) return {type};
  const dtick = decades < 0.7 ? "D1" : decades < 2 ? "D2" : Math.ceil(decades / 6) || 1;
  return {type, tickmode: "linear", tick0: 0, dtick};
}

// A text for Plotly in lines of at most so many characters.
function broken(text, most) {
  const lines = [];
  for (const word of text.split(" "))
    if (lines.length && lines[lines.length - 1].length + word.length < most) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  return lines.map(plotText).join("<br>");
}

function layoutOf(store, form, traces, facets, width) {
  const {x, y, logx, logy} = form.elements;
  const style = getComputedStyle(document.documentElement);
  const [ink, rule, faint, paper] = ["ink", "rule", "faint", "paper"].map(name => style.getPropertyValue(`--${name}`).trim());
  const columns = Math.min(facets.length, width < 600 ? 1 : 3);
  const rows = Math.ceil(facets.length / columns);
  const layout = {
    height: Math.max(rows * (facets.length > 1 ? 260 : 0) + 60, width < 600 ? 380 : 460), showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: {family: "system-ui, sans-serif", size: 13, color: ink},
    margin: {l: 10, r: 10, t: facets.length > 1 ? 60 : 36, b: 10},
    modebar: {bgcolor: "rgba(0,0,0,0)", color: faint, activecolor: ink}, hovermode: "closest", annotations: [],
    hoverlabel: {bgcolor: paper, bordercolor: faint, font: {color: ink, size: 12}, align: "left"},
  };
  const [gapX, gapY] = [0.09, Math.min(0.16, 0.5 / rows)];
  const [w, h] = [(1 - gapX * (columns - 1)) / columns, (1 - gapY * (rows - 1)) / rows];
  const scale = (log, of) => scaleOf(log.checked, traces.flatMap(trace => trace[of]));
  const axis = {gridcolor: rule, linecolor: faint, zeroline: false, automargin: true, exponentformat: "power"};
  const [alongX, alongY] = [{...axis, ...scale(logx, "x")}, {...axis, ...scale(logy, "y")}];
  facets.forEach((facet, i) => {
    const [column, end] = [i % columns, i ? i + 1 : ""];
    const [left, top] = [column * (w + gapX), 1 - Math.floor(i / columns) * (h + gapY)];
    layout[`xaxis${end}`] = {...alongX, domain: [left, left + w], anchor: `y${end}`, matches: i ? "x" : undefined,
      title: {text: i + columns >= facets.length ? plotText(x.value.startsWith("metric:") ? labelOf(store, form, x.value.slice("metric:".length)) : x.value) : ""}};
    layout[`yaxis${end}`] = {...alongY, domain: [Math.max(0, top - h), top], anchor: `x${end}`, matches: i ? "y" : undefined,
      title: {text: column === 0 && y.value ? broken(`${labelOf(store, form, y.value)}, ${centreOf(store, form, y.value)}`, h * layout.height / 10) : ""}};
    if (facet)
      layout.annotations.push({text: plotText(facet), xref: "paper", yref: "paper", x: left, y: top, xanchor: "left", yanchor: "bottom",
        showarrow: false});
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
    button.append(look.name);
    button.title = name;
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
  const drawn = pointsOf(store, form, cellsOf(store, form.elements.cells.value));
  const sizes = new Map();
  for (const {facet} of [...drawn.points, ...drawn.marks]) sizes.set(facet, (sizes.get(facet) ?? 0) + 1);
  const largest = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a)).slice(0, MOST_FACETS);
  const facets = largest.length ? inOrder(largest) : [""];
  const looks = looksOf(store, form, drawn.points);
  const traces = tracesOf(store, form, drawn, looks, facets);
  await Plotly.react(place, traces, layoutOf(store, form, traces, facets, place.clientWidth),
    {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"]});
  place.removeAllListeners("plotly_click");
  place.on("plotly_click", ({points: [point]}) => point.customdata && showCell(form, point.customdata));
  drawLegend(form, looks, () => form.elements.hide.dispatchEvent(new Event("change", {bubbles: true})));
  const unknown = unknownsOf(store, form);
  sayUnknown(unknown, form.closest("section"));
  document.getElementById("plot-words").textContent = 
    wordsOf(store, form, drawn, unknown, looks.size, Math.max(0, sizes.size - facets.length));
}

// Names in the view that these cells do not have, such as a misspelt metric in a link, with those that there are.
function unknownsOf(store, form) {
  const {cells, y, x, series, facet} = form.elements;
  const chosen = cellsOf(store, cells.value);
  const isMetric = name => chosen.some(cell => store.rowOf.has(`${cell} ${name}`));
  const isColumn = name => store.columns.includes(name);
  const isSize = name => chosen.some(cell => typeof store.cells[name]?.[cell] === "number");
  const known = chosen.length ? [
    [y, !y.value || isMetric(y.value)],
    [x, x.value.startsWith("metric:") ? store.metrics.some(([name]) => `metric:${name}` === x.value) : isSize(x.value)],
    [series, series.value === "name" || isColumn(series.value)],
    [facet, ["", "none"].includes(facet.value) || isColumn(facet.value)],
  ] : [[cells, Object.keys(store.recipes).some(name => `recipe:${name}` === cells.value)]];
  return known.filter(([, isKnown]) => !isKnown).map(([select]) => unknownWords(select.value, select.name,
    [...select.options].map(option => option.value).filter(value => value && value !== select.value)));
}

// Counts what the plot shows and what it leaves out, so that nothing is missing silently.
function wordsOf(store, form, {points, marks, placeless, gaps, elsewhere}, unknown, series, facetsLeft) {
  const {x, y} = form.elements;
  if (!points.length && unknown.length) return "Nothing to draw, as said above.";
  const words = [`${plural(points.length, "point")} in ${series} series`];
  const lost = points.filter(point => !drawable(form, point)).length;
  if (!points.length && x.value.startsWith("metric:"))
    words.push("none of these cells has both, nor was the other measured of the same method and shape");
  if (lost) words.push(`${lost} not above zero, which a logarithmic axis does not show`);
  if (facetsLeft > 0) words.push(`${facetsLeft} facets more, which are not drawn`);
  if (marks.length) words.push(`${plural(marks.length, "cell")} not (all) done: crosses`);
  if (placeless) words.push(`${plural(placeless, "cell")} not done, without a place along x`);
  if (points.length && elsewhere) words.push(`${plural(elsewhere, "cell")} without ${x.value.replace("metric:", "")}, in the table alone`);
  if (gaps) words.push(`${plural(gaps, "cell")} not drawn, of which a replicate has no ${y.value}`);
  const apart = differencesOf(store, points);
  const [least, more] = [apart.slice(0, 3).join(", "), apart.length - 3];
  if (apart.length)
    words.push(`series with several cells at an x, which differ in ${least}${more > 0 ? ` and ${more} more` : ""}, are not joined`);
  return words.join("; ") + ".";
}

// The columns in which cells differ that are at one place of one series.
function differencesOf(store, points) {
  const first = new Map();
  const names = new Set();
  for (const {facet, series, x, cell} of points) {
    const place = [facet, series, x].join("\n");
    if (!first.has(place)) first.set(place, cell);
    for (const name of store.varying) if (store.cells[name][cell] !== store.cells[name][first.get(place)]) names.add(name);
  }
  return [...names];
}

// The cells of the results: selection, filters and rows of numbers.

const loadCells = once(async () => {
  await loadScript("cells.js");
  const store = JSON.parse(await unpacked(packedCells));
  for (const name of ["mean", "low", "high", "median", "median_low", "median_high"])
    store.rows[name] = Float64Array.from(store.rows[name], value => value === null ? NaN : Number(value));
  const {columns, cells} = store;
  store.count = cells.key.length;
  store.rowOf = new Map();  // "cell metric" to its row
  store.rowsOf = new Map();  // a cell to all its rows
  store.rows.cell.forEach((cell, row) => {
    store.rowOf.set(`${cell} ${store.metrics[store.rows.metric[row]][0]}`, row);
    if (!store.rowsOf.has(cell)) store.rowsOf.set(cell, []);
    store.rowsOf.get(cell).push(row);
  });
  store.text = cells.key.map((key, i) =>
    [cells.experiment[i], cells.method[i], cells.input[i], cells.machine[i], cells.other[i], key].join(" ").toLowerCase());
  store.medians = new Set(store.panels.filter(([, , , interval]) => interval === "median").map(([, , y]) => y));
  // Columns that vary, and that do not repeat an earlier one (nq mostly equals n).
  const order = [...new Set(["experiment", "method", "input", "n", ...columns])];
  const equal = (a, b) => cells[a].every((value, cell) => value === cells[b][cell]);
  store.varying = order.filter((name, i) => cells[name].some(value => value !== cells[name][0]) &&
    !order.slice(0, i).some(before => equal(before, name)));
  return store;
});

const nameOf = spec => spec.split(":")[0];

// Name and arguments of a spec. Commas inside brackets do not separate arguments.
function splitSpec(spec) {
  const colon = spec.indexOf(":");
  if (colon < 0) return [spec, []];
  const parts = [""];
  let depth = 0;
  for (const character of spec.slice(colon + 1)) {
    depth += (character === "[") - (character === "]");
    if (character === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += character;
  }
  return [spec.slice(0, colon), parts];
}

// The spec without the argument of that name, also in its parts. A spec that is the value of a parameter keeps it.
function withoutParameter(spec, parameter) {
  const [name, parts] = splitSpec(spec);
  const kept = parts.filter(part => !part.startsWith(`${parameter}=`)).map(part => {
    if (/^[\w-]+=/.test(part)) return part;
    const inner = withoutParameter(part.replace(/^\[(.*)\]$/, "$1"), parameter);
    return /[,[\]]/.test(inner) ? `[${inner}]` : inner;
  });
  return kept.length ? `${name}:${kept.join(",")}` : name;
}

// The cells for "all", "recipe:NAME", "experiment:NAME", "method:NAME" or "key:KEY".
function cellsOf(store, chosen) {
  const colon = chosen.indexOf(":");
  const [kind, name] = [chosen.slice(0, colon), chosen.slice(colon + 1)];
  if (kind === "recipe") return store.recipes[name] || [];
  const all = store.cells.key.map((_, i) => i);
  if (chosen === "all") return all;
  if (kind === "experiment" || kind === "method") return all.filter(i => nameOf(store.cells[kind][i]) === name);
  return kind === "key" ? all.filter(i => store.cells.key[i] === name) : [];
}

// Returns a function of a cell and a metric's name that says whether the cell matches every word of the filter: name=value
// compares a column (or metric=NAME), and any other word must occur in the cell's text.
function filterOf(store, text) {
  const words = text.match(/\S+/g) || [];
  const tests = words.map(word => {
    const equals = word.indexOf("=");
    const [name, value] = [word.slice(0, equals), word.slice(equals + 1)];
    if (name === "metric") return (_, metric) => metric === value;
    if (equals > 0 && store.columns.includes(name)) return cell => String(store.cells[name][cell] ?? "") === value;
    const part = word.toLowerCase();
    return (cell, metric) => store.text[cell].includes(part) || metric.toLowerCase().includes(part);
  });
  return (cell, metric) => tests.every(test => test(cell, metric));
}

function number(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "" : String(value);
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(3) : String(Number(value.toPrecision(4)));
}

// "mean" or "median": the user's choice, or the centre that figures draw of that metric.
const centreOf = (store, form, metric) => form.elements.centre.value || (store.medians.has(metric) ? "median" : "mean");

// The label of a metric in figures, those of the chosen recipe first, or else its name in words; with its unit.
function labelOf(store, form, metric) {
  const recipe = form.elements.cells.value.replace(/^recipe:/, "");
  const labels = store.panels.filter(([, , y, , label]) => y === metric && label);
  const label = (labels.find(([of]) => of === recipe) ?? labels[0])?.[4] ?? metric.replaceAll("_", " ");
  const unit = store.metrics.find(([name]) => name === metric)?.[1] ?? "1";
  return ["1", "B"].includes(unit) || label.includes(`(${unit})`) ? label : `${label} (${unit})`;
}

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// The table of cells: one row per cell and metric, and one for a cell without metrics. Sorting, and download as CSV.

const ROWS_AT_ONCE = 100;
const PROBLEM = ["input", "n", "nq", "d", "dv", "causal", "precision", "heads", "logit_scale",
  "seed", "threads", "machine"];

// [cell, row]; row is -1 if the cell has no number. The metric of the plot comes first.
function chosenEntries(store, form) {
  const chosen = new Set(cellsOf(store, form.elements.cells.value));
  const agrees = filterOf(store, form.elements.find.value);
  const withRows = new Set();
  const entries = [];
  store.rows.cell.forEach((cell, row) => {
    if (!chosen.has(cell)) return;
    withRows.add(cell);
    if (agrees(cell, store.metrics[store.rows.metric[row]][0])) entries.push([cell, row]);
  });
  for (const cell of chosen) if (!withRows.has(cell) && agrees(cell, "")) entries.push([cell, -1]);
  const isOther = ([, row]) => row >= 0 && store.metrics[store.rows.metric[row]][0] !== form.elements.y.value;
  return entries.sort((a, b) => isOther(a) - isOther(b));
}

// Columns as [name, function from an entry to its value]; numbers stay numbers.
function tableColumns(store, form) {
  const {cells} = store;
  const problem = name => [name, ([cell]) => cells[name][cell]];
  const [metric, value, low, high, ...others] = numberColumns(store, form);
  return [
    problem("method"), value, low, high, metric, ...others, ["not done", ([cell]) => cells.other[cell]], problem("experiment"),
    ...PROBLEM.filter(name => store.varying.includes(name)).map(problem),
  ];
}

function numberColumns(store, form) {
  const {rows, metrics} = store;
  const metric = r => metrics[rows.metric[r]][0];
  const of = ends => ([_, r]) => r < 0 ? NaN : rows[ends[centreOf(store, form, metric(r))]][r];
  return [
    ["metric", ([_, r]) => r < 0 ? "" : metric(r)],
    ["value", of({mean: "mean", median: "median"})],
    ["low", of({mean: "low", median: "median_low"})], ["high", of({mean: "high", median: "median_high"})],
    ["unit", ([_, r]) => r < 0 ? "" : metrics[rows.metric[r]][1]],
    ["centre", ([_, r]) => r < 0 ? "" : centreOf(store, form, metric(r))],
    ["replicates", ([_, r]) => r < 0 ? NaN : rows.replicates[r]],
  ];
}

function sorted(entries, columns, sort) {
  const column = columns.find(([name]) => name === sort.replace(/^-/, ""));
  if (!column) return entries;
  const direction = sort.startsWith("-") ? -1 : 1;
  const absent = value => value === null || value === "" || Number.isNaN(value);
  const values = new Map(entries.map(entry => [entry, column[1](entry)]));
  return [...entries].sort((a, b) => {
    const [x, y] = [values.get(a), values.get(b)];
    if (absent(x) || absent(y)) return absent(x) - absent(y);  // absent values come last in both orders
    return direction * (typeof x === "number" && typeof y === "number" ? x - y :
      String(x).localeCompare(String(y), "en", {numeric: true}));
  });
}

function csvOf(store, entries) {
  const {cells, rows, metrics, columns} = store;
  const numbers = ["mean", "low", "high", "median", "median_low", "median_high", "replicates", "samples"];
  // Spreadsheets compute a cell that begins like a formula (scripts/tables.py).
  const asText = value => /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
  const quoted = value => /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  const plain = value => value === null || Number.isNaN(value) ? "" : quoted(asText(String(value)));
  const lines = [["cell", ...columns, "metric", "unit", ...numbers, "done", "not_done"].join(",")];
  for (const [cell, row] of entries)
    lines.push([cells.key[cell], ...columns.map(name => cells[name][cell]),
      ...(row < 0 ? ["", ""] : metrics[rows.metric[row]]), ...numbers.map(name => row < 0 ? "" : rows[name][row]),
      cells.done[cell], cells.other[cell]].map(plain).join(","));
  return lines.join("\n") + "\n";
}

function drawTable(store, form) {
  const place = document.getElementById("table");
  const sort = form.elements.sort.value;
  const columns = tableColumns(store, form);
  const entries = sorted(chosenEntries(store, form), columns, sort);
  place.hidden = false;
  drawHead(place.querySelector("thead tr"), columns, sort, form);
  const body = place.querySelector("tbody");
  body.replaceChildren();
  const more = document.getElementById("more");
  const show = () => {
    const next = entries.slice(body.rows.length, body.rows.length + ROWS_AT_ONCE);
    body.append(...next.map(entry => rowOf(store, form, columns, entry)));
    more.hidden = body.rows.length >= entries.length;
    document.getElementById("table-words").textContent =
      `${plural(entries.length, "row")} of ${plural(new Set(entries.map(([cell]) => cell)).size, "cell")}` +
      (more.hidden ? "." : `; ${body.rows.length} are shown.`);
  };
  more.onclick = show;
  show();
  const download = document.getElementById("download");
  download.onclick = () => {  // makes the CSV only on a click
    URL.revokeObjectURL(download.href);
    download.href = URL.createObjectURL(new Blob([csvOf(store, entries)], {type: "text/csv"}));
  };
}

function drawHead(head, columns, sort, form) {
  const focused = head.contains(document.activeElement) ? document.activeElement.textContent : null;
  const names = ["cell", ...columns.map(([name]) => name)];
  head.replaceChildren(...names.map(name => {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (name === "cell") {
      cell.textContent = name;
      return cell;
    }
    cell.ariaSort = sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.onclick = () => {
      form.elements.sort.value = sort === name ? `-${name}` : name;
      form.elements.sort.dispatchEvent(new Event("change", {bubbles: true}));
    };
    cell.append(button);
    return cell;
  }));
  if (focused) [...head.querySelectorAll("button")].find(button => button.textContent === focused)?.focus();
}

function rowOf(store, form, columns, entry) {
  const row = document.createElement("tr");
  const link = document.createElement("a");
  const key = store.cells.key[entry[0]];
  link.href = `#cells=key:${key}`;
  link.textContent = key.slice(0, 8);
  link.title = key;
  link.onclick = event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showCell(form, key);
  };
  row.insertCell().append(link);
  row.append(...columns.map(column => valueCell(column, entry)));
  return row;
}

function valueCell([, value], entry) {
  const cell = document.createElement("td");
  const found = value(entry);
  if (typeof found === "number") cell.className = "number";
  cell.textContent = typeof found === "number" ? number(found) : found ?? "";
  return cell;
}

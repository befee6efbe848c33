// The cell that a reader pressed in the plot or in the table: what it is and all its numbers, between the two.

function drawCell(store, form) {
  const place = document.getElementById("cell");
  const key = form.elements.cell.value;
  const cell = store.cells.key.indexOf(key);
  place.hidden = !key;
  if (!key) return;
  const words = place.querySelector("p"), body = place.querySelector("tbody");
  place.querySelector("h3 span").textContent = cell < 0 ? "Unknown cell" : store.cells.method[cell];
  place.querySelector("a").href = `#cells=key:${key}`;
  body.replaceChildren();
  place.querySelector("table").hidden = cell < 0;
  if (cell < 0) {
    words.textContent = `“${key}” is the key of none of these ${plural(store.count, "cell")}.`;
    return;
  }
  const facts = store.columns.filter(name => name !== "method" && (store.cells[name][cell] ?? "") !== "")
    .map(name => `${name} = ${store.cells[name][cell]}`);
  words.textContent = [...facts, store.cells.other[cell] && `not done: ${store.cells.other[cell]}`].filter(Boolean).join("; ");
  const isChosen = row => store.metrics[store.rows.metric[row]][0] === form.elements.y.value;
  const entries = [...store.rowsOf.get(cell) ?? []].sort((a, b) => isChosen(b) - isChosen(a));
  const columns = numberColumns(store, form);
  place.querySelector("thead tr").replaceChildren(...columns.map(([name]) => {
    const head = document.createElement("th");
    head.scope = "col";
    head.textContent = name;
    return head;
  }));
  body.append(...entries.map(row => {
    const line = document.createElement("tr");
    line.append(...columns.map(column => valueCell(column, [cell, row])));
    return line;
  }));
}

// Shows the cell of that key without a change of the plot.
function showCell(form, key) {
  form.elements.cell.value = key;
  form.elements.cell.dispatchEvent(new Event("change", {bubbles: true}));
}

// Shows the rows of all tables whose method, or its authors, have the words that a reader types.

function addFilter() {
  const form = document.getElementById("filter");
  if (!form) return;
  form.hidden = false;
  const rows = [...document.querySelectorAll("table.compared tbody tr")];
  const show = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
    const shown = rows.filter(row => !row.hidden).length;
    form.querySelector("p").textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  show();
}

// Sorts the table of methods by the column whose header is pressed: first the least, then the greatest on top.

function addCompared() {
  for (const table of document.querySelectorAll("table.compared")) {
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => {
      const descending = header.ariaSort === "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.ariaSort = descending ? "descending" : "ascending";
      const value = row => column ? Number(row.cells[column].dataset.value ?? NaN) : row.cells[0].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);  // those without a number last
        return (descending ? -1 : 1) * (column ? x - y : x.localeCompare(y, "en", {numeric: true}));
      });
      table.tBodies[0].append(...rows);
    }));
  }
}

// Starts the page's scripts. The plot is drawn only when it scrolls into view, so that the page loads fast.

function addCells() {
  const form = document.getElementById("cells-form");
  if (!form) return;
  const section = form.closest("section");
  let shown = false;
  const fillOnce = once(store => {
    const before = form.elements.cells.value;
    fillCells(store, form.elements.cells);
    setControl(form.elements.cells, before);
    return true;
  });
  const update = async name => {
    shown = true;
    const store = await loadCells();
    fillOnce(store);
    if (name === "cells" || name === "" || !form.elements.y.value) {
      const selects = controlsOf(form).filter(control => control.tagName === "SELECT");
      const before = selects.map(control => [control, control.value]);
      fillAxes(store, form, cellsOf(store, form.elements.cells.value));
      for (const [control, value] of before) if (name === "" && value) setControl(control, value);
    }
    drawCell(store, form);
    if (name === "cell") {
      const place = document.getElementById("cell");
      place.focus({preventScroll: true});
      place.scrollIntoView({block: "nearest"});
      return;
    }
    drawTable(store, form);
    if (name !== "sort") await drawPlot(store, form);
  };
  addView(form, section, update);
  document.querySelector("#cell button").addEventListener("click", () => showCell(form, ""));
  new IntersectionObserver((entries, observer) => {
    if (!entries.some(entry => entry.isIntersecting)) return;
    observer.disconnect();
    if (!shown) update("");
  }, {rootMargin: "400px"}).observe(section);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && update("colours"));
}

addVerdicts();
addFinding();
addFigures();
addCompared();
addCells();
addEventListener("hashchange", restoreFragment);
// Runs after the browser has gone to the fragment, which takes the focus.
addEventListener("load", () => setTimeout(restoreFragment));

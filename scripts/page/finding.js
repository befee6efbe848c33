// The search over figures. Words are those of a figure, of its recipe, and of its curves and axes, which are in its picture.

function addFinding() {
  const form = document.getElementById("figure-form");
  if (!form) return;
  const figures = [...document.querySelectorAll("figure")];
  const recipeOf = new Map(figures.map(figure => [figure, figure.closest(".recipe").querySelector("h3").textContent]));
  addView(form, form.closest("section"), () => {
    const wanted = wordsIn(form.elements.figure.value);
    for (const figure of figures) {
      const content = `${figure.id} ${recipeOf.get(figure)} ${figure.textContent} ${figure.dataset.words}`.toLowerCase();
      figure.hidden = !wanted.every(word => content.includes(word));
    }
    for (const place of document.querySelectorAll(".recipe, .topic"))
      place.hidden = wanted.length > 0 && !place.querySelector("figure:not([hidden])");
    const shown = figures.filter(figure => !figure.hidden).length;
    document.getElementById("figure-words").textContent = wanted.length ? `${shown} of ${figures.length} shown` : "";
  });
}

// The filters of the table of verdicts.

function addVerdicts() {
  const form = document.getElementById("verdict-form");
  if (!form) return;
  const rows = [...document.querySelectorAll("table.verdicts tbody tr")];
  const words = document.getElementById("verdict-words");
  addView(form, form.closest("section"), () => {
    const {outcome, source, tested, text} = form.elements;
    const any = (list, wanted) => !wanted || list.split("|").includes(wanted);
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const content = row.textContent.toLowerCase();
      row.hidden = !(any(row.dataset.outcome, outcome.value) && any(row.dataset.tested, tested.value) &&
        (!source.value || row.dataset.source === source.value) && wanted.every(word => content.includes(word)));
      shown += !row.hidden;
    }
    words.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  });
}

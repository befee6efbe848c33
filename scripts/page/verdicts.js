// The filters of the literature's statements. A paper with a match opens, and one without is hidden.

function addVerdicts() {
  const form = document.getElementById("verdict-form");
  if (!form) return;
  const claims = [...document.querySelectorAll(".claim")];
  const papers = [...document.querySelectorAll(".paper")];
  const words = document.getElementById("verdict-words");
  const titles = new Map(papers.map(paper => [paper, paper.querySelector(".name").textContent.toLowerCase()]));
  const selects = [...form.querySelectorAll("select")].map(select => [select, [...select.options].map(option => option.value)]);
  addView(form, form.closest("section"), () => {
    const {outcome, source, tested, text} = form.elements;
    const any = (list, wanted) => !wanted || list.split("|").includes(wanted);
    const wanted = wordsIn(text.value);
    let shown = 0;
    for (const claim of claims) {
      const content = `${claim.textContent} ${titles.get(claim.parentElement)}`.toLowerCase();
      claim.hidden = !(any(claim.dataset.outcome, outcome.value) && any(claim.dataset.tested, tested.value) &&
        (!source.value || claim.dataset.source === source.value) && wanted.every(word => content.includes(word)));
      shown += !claim.hidden;
    }
    const filtered = shown < claims.length;
    for (const paper of papers) {
      paper.hidden = !paper.querySelector(".claim:not([hidden])");
      paper.open = filtered && !paper.hidden;
    }
    const unknown = selects.filter(([select, values]) => !values.includes(select.value));
    sayUnknown(unknown.map(([select, values]) => unknownWords(select.value, select.name, values.filter(Boolean))), form.closest("section"));
    words.textContent = filtered ? `${shown} of ${claims.length} shown` : "";
  });
}

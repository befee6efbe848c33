// The view in the URL's fragment: the controls that are not at their defaults, as #name=value&name=value. The fragment
// holds all state of the forms. The form that was used last comes first, and a link to the view leads to it.

const forms = [];
const MOST_KNOWN = 12;  // names in an answer to an unknown one

function isDefault(control) {
  if (control.type === "checkbox") return control.checked === control.defaultChecked;
  if (control.tagName === "SELECT") return control.selectedIndex <= 0;
  return control.value === (control.type === "hidden" ? "" : control.defaultValue);
}

function controlsOf(form) {
  return [...form.elements].filter(control => control.name);
}

function stateOf(form) {
  return controlsOf(form)
    .filter(control => !isDefault(control))
    .map(control => [control.name, control.type === "checkbox" ? (control.checked ? "on" : "off") : control.value]);
}

function writeFragment(form) {
  const state = [form, ...forms.map(view => view.form).filter(other => other !== form)].flatMap(stateOf);
  const readable = value => encodeURIComponent(value).replaceAll("%3A", ":").replaceAll("%2C", ",");
  const words = state.map(([name, value]) => `${name}=${readable(value)}`);
  history.replaceState(null, "", words.length ? "#" + words.join("&") : "#");
}

// A form whose state is in the fragment. update(name) is called after the control `name` has changed ("": several).
function addView(form, section, update) {
  forms.push({form, section, update});
  const changed = name => {
    update(name);
    writeFragment(form);
  };
  form.hidden = false;
  form.addEventListener("change", event => event.target.type !== "search" && changed(event.target.name));
  let typed;
  form.addEventListener("input", event => {
    if (event.target.type !== "search") return;
    clearTimeout(typed);
    typed = setTimeout(() => changed(event.target.name), 150);  // not at every keystroke
  });
  form.addEventListener("submit", event => event.preventDefault());
  form.querySelector("[data-reset]").addEventListener("click", () => {
    resetControls(form);
    changed("");
  });
}

function resetControls(form) {
  form.reset();  // does not change hidden controls, nor what the last view filled in
  for (const select of form.querySelectorAll("[data-filled]")) select.replaceChildren();
  for (const control of controlsOf(form)) if (control.type === "hidden") control.value = "";
}

const wordsIn = text => text.toLowerCase().split(/\s+/).filter(Boolean);

// A word of a fragment that the page does not know, and what it knows instead.
function unknownWords(value, name, known) {
  const more = known.length > MOST_KNOWN ? ` and ${known.length - MOST_KNOWN} more` : "";
  return `“${value}” is unknown here as ${name}; there is ${known.slice(0, MOST_KNOWN).join(", ")}${more}`;
}

// Says so at the top of that part of the page.
function sayUnknown(words, place) {
  place.querySelector(":scope > .unknown")?.remove();
  if (!words.length) return;
  const notice = document.createElement("p");
  notice.className = "notice unknown";
  notice.role = "alert";
  notice.textContent = `${words.join("; ")}.`;
  place.prepend(notice);
}

function setControl(control, value) {
  if (control.type === "checkbox") {
    control.checked = value !== "off";
    return;
  }
  if (control.tagName === "SELECT" && ![...control.options].some(option => option.value === value))
    control.add(new Option(value, value));  // such as a single cell, which is in no list; or an unknown one
  control.value = value;
}

// Shows the view of the fragment. A fragment without "=" is a place on the page, which the browser finds itself.
async function restoreFragment() {
  const text = location.hash.slice(1);
  for (const notice of document.querySelectorAll(".unknown")) notice.remove();
  if (!text.includes("=")) return;
  const state = text.split("&").map(part => {
    const equals = part.indexOf("=");
    return [part.slice(0, equals), decodeURIComponent(part.slice(equals + 1))];
  });
  const named = state.map(([name]) => forms.find(view => view.form.elements[name]));
  for (const view of new Set(named.filter(Boolean))) {
    resetControls(view.form);
    const values = new Map(state);
    for (const control of controlsOf(view.form))
      if (values.has(control.name)) setControl(control, values.get(control.name));
    await view.update("");
  }
  const target = document.getElementById(decodeURIComponent(text));
  const place = named.find(Boolean)?.section ?? target ?? document.getElementById("main");
  const unknown = state.filter((_, i) => !named[i] && !target).map(([name, value]) => name === "method" ?
    unknownWords(value, "a method", [...document.querySelectorAll(".methods summary code")].map(code => code.textContent)) :
    unknownWords(name, "a name of the link", forms.flatMap(view => controlsOf(view.form)).map(control => control.name)));
  if (unknown.length) sayUnknown(unknown, place);
  if (place.tagName === "DETAILS") place.open = true;
  place.scrollIntoView();
  (place.querySelector("[tabindex], summary") || place).focus({preventScroll: true});
}

// The page's data lie in files beside it (the points of figures, the summaries of cells, and Plotly), which are loaded once,
// on first use.

const once = make => {
  let made;
  return (...words) => (made ??= make(...words));
};

// Loads a script from the page's folder. A page that was moved without its folder says which file is missing.
function loadScript(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = resolve;
    script.onerror = () => {
      const words = `${name} is not beside this page; keep the report's folder together.`;
      for (const place of document.querySelectorAll(".plot-words")) place.textContent = words;
      reject(new Error(`${name} is missing`));
    };
    document.head.append(script);
  });
}

const loadPlotly = once(() => loadScript("plotly.js"));

// Text from base64 of gzip.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// Unpacks the page's data (base64 of gzip: the summaries of cells, and Plotly) once, on first use.

async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(text, character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const once = make => {
  let made;
  return (...words) => (made ??= make(...words));
};

const loadPlotly = once(async () => {
  const script = document.createElement("script");
  script.textContent = await unpacked("packed-plotly");
  document.head.append(script);
});

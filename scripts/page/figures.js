// A press on a figure shows it as large as the window, first as the picture and then, if the reader asks, as a plot with
// values under the pointer and a legend that hides series. Without JavaScript the same link opens the SVG file.

const loadFigures = once(async () => {
  await loadScript("figures.js");
  return JSON.parse(await unpacked(packedFigures));
});

function addFigures() {
  const dialog = document.createElement("dialog");
  dialog.className = "zoom";
  dialog.setAttribute("aria-label", "Figure");
  dialog.innerHTML = `<p><button type="button" name="plot" aria-pressed="false">Values and legend</button>
    <a>Explore its cells</a> <button type="button" name="close" aria-label="Close">×</button></p><img alt=""><div class="plots" hidden></div>
    <p class="plot-words" role="status"></p>`;
  const [plot, close] = dialog.querySelectorAll("button");
  const image = dialog.querySelector("img"), plots = dialog.querySelector(".plots"), words = dialog.querySelector(".plot-words");
  const explore = dialog.querySelector("a");
  explore.addEventListener("click", () => {
    dialog.close();
    if (explore.hash === location.hash) restoreFragment();  // no hashchange tells it
  });
  const show = asPlot => {
    plot.ariaPressed = String(asPlot);
    image.hidden = asPlot;
    plots.hidden = !asPlot;
    words.textContent = "";
  };
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  plot.addEventListener("click", async () => {
    const asPlot = plot.ariaPressed === "false";
    show(asPlot);
    if (!asPlot) return;
    const [panels] = [(await loadFigures())[dialog.dataset.figure] ?? [], await loadPlotly()];
    plots.replaceChildren(...panels.map(() => document.createElement("div")));
    panels.forEach((panel, i) => drawPanel(plots.children[i], panel));
    if (!panels.length) words.textContent = "This figure has no curves; its numbers are in the CSV file.";
  });
  document.body.append(dialog);
  for (const link of document.querySelectorAll("a.picture"))
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      image.src = link.href;
      image.alt = link.querySelector("img").alt;
      explore.href = link.dataset.view;
      explore.hidden = !link.dataset.view || !document.getElementById("cells-form");
      dialog.dataset.figure = link.getAttribute("href").replace(/\.svg$/, "");
      show(false);
      dialog.showModal();
    });
}

function drawPanel(place, panel) {
  const style = getComputedStyle(document.documentElement);
  const [ink, rule, faint, paper] = ["ink", "rule", "faint", "paper"].map(name => style.getPropertyValue(`--${name}`).trim());
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const traces = panel.series.map(series => {
    const colour = dark ? series.dark : series.colour;
    // A level has no x: it spans the axis as a line through two points far apart.
    const level = series.x.length === 1 && series.x[0] === null;
    const xs = level ? extent(panel.series.flatMap(other => other.x)) : series.x;
    const of = column => (level ? xs.map(() => series[column][0]) : series[column]);
    const points = series.symbol && !level;
    const lines = level || !points || panel.joined;
    return {
      type: "scatter", name: plotText(series.name), x: xs, y: of("y"), text: of("text").map(lines => lines.map(plotText).join("<br>")),
      hovertemplate: "%{text}", mode: [lines && "lines", points && "markers"].filter(Boolean).join("+"),
      line: {color: colour, width: series.thin ? 1 : 1.8, dash: series.dash}, marker: {color: colour, symbol: series.symbol, size: 8},
      error_y: {type: "data", symmetric: false, thickness: 1.2, width: 3, color: colour,
        array: of("high").map((high, i) => (high === null ? 0 : high - of("y")[i])),
        arrayminus: of("low").map((low, i) => (low === null ? 0 : of("y")[i] - Math.max(low, panel.y.log ? of("y")[i] / 1e3 : low)))},
    };
  });
  const axis = ({label, log}, numbers) => ({...scaleOf(log, numbers.filter(number => number !== null)),
    title: {text: plotText(label)}, gridcolor: rule, linecolor: faint, zeroline: false, automargin: true, exponentformat: "power"});
  const layout = {
    title: {text: plotText(panel.title), font: {size: 15}}, height: 440, showlegend: true, hovermode: "closest",
    xaxis: axis(panel.x, traces.flatMap(trace => trace.x)), yaxis: axis(panel.y, traces.flatMap(trace => trace.y)),
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: {family: "system-ui, sans-serif", size: 13, color: ink},
    margin: {l: 10, r: 10, t: 40, b: 10}, legend: {orientation: "h", y: -0.25},
    modebar: {bgcolor: "rgba(0,0,0,0)", color: faint, activecolor: ink},
    hoverlabel: {bgcolor: paper, bordercolor: faint, font: {color: ink, size: 12}, align: "left"},
  };
  Plotly.react(place, traces, layout, {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"]});
}

// The least and the greatest of the numbers.
function extent(numbers) {
  const there = numbers.filter(number => number !== null);
  return there.length ? [Math.min(...there), Math.max(...there)] : [0, 1];
}

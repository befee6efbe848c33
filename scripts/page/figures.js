// A press on a figure shows it as large as the window. Without JavaScript the same link opens the SVG file.

function addFigures() {
  const dialog = document.createElement("dialog");
  dialog.className = "zoom";
  dialog.innerHTML = '<button type="button" aria-label="Close">×</button><img alt="">';
  const [button, image] = dialog.children;
  button.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  document.body.append(dialog);
  for (const link of document.querySelectorAll("a.picture"))
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      image.src = link.href;
      image.alt = link.querySelector("img").alt;
      dialog.showModal();
    });
}

// The keys of the page of a fleet.

const kFleetKeys = [
  ["w, s", "zoom in, out", "matrix"],
  ["a, d", "move left, right", "matrix"],
  ["wheel", "zoom at the pointer; sideways it moves", ""],
  ["Shift + wheel", "scroll through the ranks", ""],
  ["drag", "move", ""],
  ["arrows", "go from cell to cell", "when the matrix has the focus; Home, End and Page Up, Page Down go further"],
  ["click, Enter", "show the rank and step, and how to open them", ""],
  ["0", "the whole matrix", ""],
  ["1 … 3", "sections", ""],
  ["t", "light or dark", ""],
  ["Esc", "close what is open", ""],
];

const kFleetActions = {
  w: () => Matrix.zoom(1.5),
  s: () => Matrix.zoom(1 / 1.5),
  a: () => Matrix.pan(-Matrix.columns.length * 0.12, 0),
  d: () => Matrix.pan(Matrix.columns.length * 0.12, 0),
  0: () => Matrix.fit(),
};

function startFleetKeys() {
  document.getElementById("help").addEventListener("click", () => showKeys(kFleetKeys));
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
    if (event.key === "Escape") return FleetSide.close();
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return undefined;
    if (event.key === "t") return Theme.toggle();
    if (event.key === "?") return showKeys(kFleetKeys);
    const section = /^[1-9]$/.test(event.key) && Sections.list[event.key - 1];
    if (section) return Sections.open(section.name);
    const action = kFleetActions[event.key.toLowerCase()];
    if (!action || Sections.current !== "matrix") return undefined;
    event.preventDefault();
    return action();
  });
}

// The keys, as timeline viewers have them.

const kKeys = [
  ["w, s", "zoom in, out", "timeline and graph"],
  ["a, d", "move left, right", "timeline and graph"],
  ["wheel", "zoom at the pointer; sideways it moves", ""],
  ["Shift + wheel", "scroll through threads and streams", ""],
  ["drag", "move", ""],
  ["Shift + drag, drag on the ruler", "select an area of the timeline and sum it up", ""],
  ["e", "sum up what is visible", "timeline"],
  ["m, [, ]", "set or remove a mark at the pointer; previous, next mark", "timeline"],
  ["r", "rows and marks: hide, pin, reorder", "timeline"],
  ["o", "open or fold the start-up and idle times", "timeline and memory"],
  ["click", "show a call", ""],
  ["double click", "zoom to a call", ""],
  ["0", "the whole trace, or the whole graph", ""],
  ["/", "search", "step:3, op:aten::mm, 100-200, stream:1, line:train.py:41, joined by /, or any text"],
  ["n, N", "next, previous call found", ""],
  ["1 … 9", "sections", ""],
  ["t", "light or dark", ""],
  ["Esc", "close what is open", ""],
];

function canvasInView() {
  return Sections.current === "timeline"
    ? Timeline
    : Sections.current === "graph" && StepGraph.width
      ? StepGraph
      : null;
}

const kActions = {
  w: () => zoomView(1.5),
  s: () => zoomView(1 / 1.5),
  a: () => panView(-1),
  d: () => panView(1),
  ArrowLeft: () => panView(-1),
  ArrowRight: () => panView(1),
  "+": () => zoomView(1.5),
  "-": () => zoomView(1 / 1.5),
  0: () => canvasInView()?.fit(true),
  n: () => Search.go(1),
  N: () => Search.go(-1),
  t: () => Theme.toggle(),
  "?": () => showKeys(kKeys),
  e: () => onTimeline(() => Timeline.selectVisible()),
  m: () => onTimeline(() => Timeline.mark()),
  r: () => onTimeline(() => Lanes.show()),
  o: () => Folds.toggle(),
  "[": () => onTimeline(() => Timeline.goToMark(-1)),
  "]": () => onTimeline(() => Timeline.goToMark(1)),
  f: () => {
    if (Detail.call >= 0) Detail.show(Detail.call, {zoom: true});
  },
};

function onTimeline(act) {
  if (Sections.current === "timeline") act();
}
function zoomView(factor) {
  const view = canvasInView();
  if (view === Timeline) Timeline.zoomBy(factor);
  else if (view) d3.select(view.canvas).call(view.zoom.scaleBy, factor);
}
function panView(way) {
  const view = canvasInView();
  if (view === Timeline) Timeline.pan(way * Timeline.width * 0.12);
  else if (view) d3.select(view.canvas).call(view.zoom.translateBy, (-way * 120) / view.transform.k, 0);
}

function startKeys() {
  document.getElementById("help").addEventListener("click", () => showKeys(kKeys));
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const input = document.getElementById("search-text");
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (document.getElementById("keys").open) return; // the browser closes it
      event.preventDefault(); // the field would empty itself, and the search with it
      if (typing) event.target.blur();
      if (document.getElementById("side").hidden && Search.text) setSearch("");
      else if (!document.getElementById("side").hidden) Detail.close();
      return;
    }
    if (typing) return;
    if (event.key === "/") {
      event.preventDefault();
      input.focus();
      input.select();
      return;
    }
    if (/^[1-9]$/.test(event.key) && !event.shiftKey) {
      const entry = Sections.list[event.key - 1];
      if (entry) Sections.open(entry.name);
      return;
    }
    const action = kActions[event.key] || (/^[WASDF]$/.test(event.key) && kActions[event.key.toLowerCase()]);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

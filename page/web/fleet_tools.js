// What is above the matrix, and how the pointer and the keys move it.

function drawMatrixTools(matrix) {
  const run = Fleet.run;
  const known = kFigures.filter(figure => Figures.known(run, figure));
  const order = make(
    "select",
    {
      "aria-label": "Order of the ranks",
      on: {
        change: event => {
          matrix.orderBy = event.target.value;
          matrix.sort();
          matrix.dirty();
        },
      },
    },
    kOrders.map(([value, text]) => make("option", {value, selected: value === matrix.orderBy}, text)),
  );
  const figures = choice(
    kFigures.map(figure => [figure.name, figure.title]),
    matrix.figure.name,
    name => {
      matrix.figure = kFigures.find(one => one.name === name);
      matrix.recolour();
    },
  );
  kFigures.forEach((figure, index) => {
    figures.children[index].disabled = !known.includes(figure);
    figures.children[index].title = known.includes(figure) ? figure.what : `Not known: ${figure.lacking}`;
  });
  matrix.tools.replaceChildren(
    figures,
    choice(
      [
        [true, "Against the median"],
        [false, "Absolute"],
      ],
      matrix.relative,
      relative => {
        matrix.relative = relative;
        matrix.recolour();
      },
    ),
    make("label", {}, "Ranks by ", order),
    make("span", {class: "legend"}, ...(matrix.scale ? legendOf(matrix.scale) : [])),
    make("p", {class: "matrix-words"}, matrixWords(matrix, run, known)),
  );
}

function matrixWords(matrix, run, known) {
  const words = [matrix.figure.what];
  if (matrix.relative) words.push("The median is that of the ranks of the same label in the same step.");
  if (run.each > 1) words.push(`A column is ${run.each} steps, and has the greatest figure of them.`);
  words.push("Where cells are smaller than a pixel, it shows the greatest of them.");
  for (const figure of kFigures) {
    if (!known.includes(figure)) words.push(`${figure.title}: not known, as ${figure.lacking}.`);
  }
  return words.join(" ");
}

function listenToMatrix(matrix) {
  const {canvas} = matrix;
  const placeOf = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;
  canvas.addEventListener(
    "wheel",
    event => {
      event.preventDefault();
      hideTip();
      const [x, y] = placeOf(event);
      if (event.shiftKey) matrix.pan(0, event.deltaY || event.deltaX);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) matrix.pan(event.deltaX, 0);
      else matrix.zoom(1.0025 ** -event.deltaY, x - kGutter.left, y - kGutter.top);
    },
    {passive: false},
  );
  canvas.addEventListener("pointerdown", event => {
    drag = {x: event.clientX, y: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (drag) {
      const [x, y] = [drag.x - event.clientX, drag.y - event.clientY];
      drag.moved = drag.moved || Math.abs(x) + Math.abs(y) > 3;
      if (!drag.moved) return;
      matrix.pan(x, y);
      drag.x = event.clientX;
      drag.y = event.clientY;
      hideTip();
      return;
    }
    const under = matrix.cellsUnder(...placeOf(event));
    if (!under) return hideTip();
    const [title, ...lines] = cellLines(Fleet.run, matrix.order[under.row], under.column);
    const all = under.cells > 1 ? `The greatest of ${countText(under.cells)} cells under the pointer` : "";
    return showTip(event, title, ...lines, all);
  });
  canvas.addEventListener("pointerup", event => {
    const clicked = drag && !drag.moved;
    drag = null;
    const under = clicked && matrix.cellsUnder(...placeOf(event));
    if (!under) return;
    hideTip();
    matrix.moveTo(under.row, under.column);
    matrix.open();
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", event => {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    const far = {Home: -1e9, End: 1e9}[event.key];
    const page = {PageUp: -1, PageDown: 1}[event.key];
    const {row, column} = matrix.cursor || {row: Math.ceil(matrix.rows.start), column: Math.ceil(matrix.columns.start)};
    if (event.key === "Enter") matrix.open();
    else if (moves[event.key]) {
      const [down, right] = matrix.cursor ? moves[event.key] : [0, 0];
      matrix.moveTo(row + down, column + right);
    } else if (far) matrix.moveTo(row, column + far);
    else if (page) matrix.moveTo(row + page * Math.max(1, Math.floor(matrix.rows.length / matrix.rows.scale)), column);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

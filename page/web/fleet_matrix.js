// The matrix: ranks are rows, steps are columns, and a colour is a figure.

const kGutter = {left: 112, top: 26, right: 8, bottom: 8};
const kOrders = [
  ["number", "number"],
  ["time", "total time"],
  ["waits", "waits"],
  ["label", "label"],
];

const Matrix = {
  figure: kFigures[0],
  relative: true,
  orderBy: "number",
  order: null, // the ranks in the order of their rows
  rows: new MatrixAxis(24),
  columns: new MatrixAxis(64),
  cursor: null, // {row, column}
  canvas: null,
  scale: null,
  values: null,
  pending: false,

  make(section) {
    this.section = section;
    this.tools = make("div", {class: "toolbar"});
    this.canvas = make("canvas", {id: "matrix-canvas", tabIndex: 0, role: "img"});
    this.box = make("div", {class: "canvasbox"}, this.canvas);
    this.status = make("div", {class: "status", role: "status"});
    section.append(this.tools, this.box, this.status);
    Fleet.listeners.push(() => this.choose());
    Theme.listeners.push(() => this.recolour());
    Sections.onShow.matrix = () => this.resize();
    new ResizeObserver(() => this.resize()).observe(this.box);
    listenToMatrix(this);
    this.choose();
  },

  // Another run.
  choose() {
    const run = Fleet.run;
    this.cursor = null;
    this.rows.count = run.ranks.length;
    this.columns.count = run.columns;
    if (!Figures.known(run, this.figure)) this.figure = kFigures.find(one => Figures.known(run, one)) || kFigures[0];
    this.rows.fit();
    this.columns.fit();
    this.sort();
    this.recolour();
    this.resize();
  },
  sort() {
    const run = Fleet.run;
    const sum = name => row =>
      Figures.sum(
        run,
        kFigures.find(one => one.name === name),
        row,
      ) ?? -1;
    const keys = {time: sum("wall"), waits: sum("waits")};
    const order = Array.from(run.ranks, (_, row) => row);
    if (keys[this.orderBy]) {
      const key = order.map(keys[this.orderBy]);
      order.sort((a, b) => key[b] - key[a] || a - b);
    } else if (this.orderBy === "label") order.sort((a, b) => run.roleOf[a] - run.roleOf[b] || a - b);
    this.order = Int32Array.from(order);
  },
  // Another figure, comparison or theme.
  recolour() {
    const run = Fleet.run;
    this.values = Figures.known(run, this.figure) ? Figures.shown(run, this.figure, this.relative) : null;
    this.scale = this.values && scaleOf(this.figure, this.values, this.relative);
    this.canvas.setAttribute(
      "aria-label",
      `${this.figure.title} of ${plural(run.ranks.length, "rank")} in ${plural(run.steps.length, "step")}. ` +
        "Arrows move, Enter opens a rank.",
    );
    drawMatrixTools(this);
    this.dirty();
  },

  resize() {
    const width = this.box.clientWidth;
    const height = this.box.clientHeight;
    if (!width || !height) return;
    this.ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.rows.resize(height - kGutter.top - kGutter.bottom);
    this.columns.resize(width - kGutter.left - kGutter.right);
    this.draw();
  },
  dirty() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  },

  draw() {
    const run = Fleet.run;
    if (!this.ratio) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = Theme.word("paper");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.font = "11.5px system-ui, sans-serif";
    if (!this.values) {
      context.fillStyle = Theme.word("soft");
      context.fillText(`${this.figure.title} of this run is not known.`, 24, 40);
      return;
    }
    const image = context.createImageData(
      Math.max(1, Math.round(this.columns.length * this.ratio)),
      Math.max(1, Math.round(this.rows.length * this.ratio)),
    );
    const colour = word => pixelOf(partsOf(Theme.word(word)));
    imageOfCells(image, {
      values: this.values,
      ranks: run.ranks.length,
      order: this.order,
      rows: this.rows.bins(this.ratio),
      columns: this.columns.bins(this.ratio),
      scale: this.scale,
      ground: colour("paper"),
      unknown: [colour("sunk"), colour("strong-line")],
    });
    context.putImageData(image, Math.round(kGutter.left * this.ratio), Math.round(kGutter.top * this.ratio));
    drawMatrixFrame(context, this, run);
    document.documentElement.dataset.drawn ??= String(Math.round(performance.now()));
  },

  // The cells under a place of the canvas, and of these the one with the greatest value; null outside.
  cellsUnder(x, y) {
    const [left, top] = [x - kGutter.left, y - kGutter.top];
    const pixel = 1 / this.ratio;
    if (left < 0 || top < 0 || left >= this.columns.length || top >= this.rows.length) return null;
    const rows = this.rows.cellsOf(Math.floor(top * this.ratio) / this.ratio, pixel);
    const columns = this.columns.cellsOf(Math.floor(left * this.ratio) / this.ratio, pixel);
    if (rows[0] >= this.rows.count || columns[0] >= this.columns.count) return null;
    const greatest = this.values && greatestCellOf(this.values, Fleet.run.ranks.length, this.order, rows, columns);
    return {
      cells: (rows[1] - rows[0]) * (columns[1] - columns[0]),
      row: greatest?.row ?? rows[0],
      column: greatest?.column ?? columns[0],
    };
  },

  moveTo(row, column) {
    if (!this.columns.count) return;
    this.cursor = {
      row: Math.max(0, Math.min(this.rows.count - 1, row)),
      column: Math.max(0, Math.min(this.columns.count - 1, column)),
    };
    this.rows.reveal(this.cursor.row);
    this.columns.reveal(this.cursor.column);
    this.status.textContent = cellLines(Fleet.run, this.order[this.cursor.row], this.cursor.column).join(" · ");
    this.dirty();
  },
  open() {
    if (this.cursor) FleetSide.show(Fleet.run, this.order[this.cursor.row], this.cursor.column);
  },
  // Goes to a rank, wherever its row is.
  find(row) {
    this.moveTo(this.order.indexOf(row), this.cursor?.column ?? 0);
  },

  zoom(factor, x = this.columns.length / 2, y = this.rows.length / 2) {
    this.columns.zoom(factor, x);
    this.rows.zoom(factor, y);
    this.dirty();
  },
  pan(x, y) {
    this.columns.pan(x);
    this.rows.pan(y);
    this.dirty();
  },
  fit() {
    this.columns.fit();
    this.rows.fit();
    this.dirty();
  },
};

// The figures of a rank in a column, as texts.
function cellLines(run, row, column) {
  return [
    `${capital(run.rankText(row))}, ${run.stepText(column)}`,
    ...kFigures.map(figure => {
      const value = Figures.value(run, figure, row, column);
      const median = Figures.median(run, figure, row, column);
      if (value === null || median === null) return `${figure.title}: ${Figures.text(figure, value)}`;
      const over = figure.byDifference ? value - median : median > 0 ? value / median - 1 : 0;
      return (
        `${figure.title}: ${figure.text(value)} ` +
        `(${Figures.differenceText(figure, over)} against the median ${figure.text(median)})`
      );
    }),
  ];
}

// Names of rows and columns, the visible part, and the cursor.
function drawMatrixFrame(context, matrix, run) {
  const {rows, columns, order, cursor} = matrix;
  context.fillStyle = Theme.word("soft");
  context.textBaseline = "middle";
  context.textAlign = "right";
  const everyRow = Math.ceil(roundUp(15 / rows.scale));
  const firstRow = Math.ceil(rows.start / everyRow) * everyRow;
  for (let row = firstRow; row < rows.count && rows.pixel(row) < rows.length; row += everyRow) {
    const label = run.labels[order[row]];
    const text = `${label ? `${label.length > 10 ? `${label.slice(0, 9)}…` : label} ` : ""}${run.ranks[order[row]]}`;
    const y = kGutter.top + rows.pixel(row) + Math.max(7, Math.min(rows.scale / 2, 12));
    if (y >= kGutter.top) context.fillText(text, kGutter.left - 8, y, kGutter.left - 12);
  }
  context.textAlign = "center";
  const widest = String(run.steps.at(-1)).length * 7 + 14;
  const everyColumn = Math.ceil(roundUp(widest / columns.scale));
  const firstColumn = Math.ceil(columns.start / everyColumn) * everyColumn;
  for (
    let column = firstColumn;
    column < columns.count && columns.pixel(column) < columns.length;
    column += everyColumn
  ) {
    const x = kGutter.left + columns.pixel(column) + Math.min(columns.scale / 2, 30);
    if (x >= kGutter.left) context.fillText(String(run.stepsOf(column)[0]), x, kGutter.top - 11);
  }
  context.textAlign = "right";
  context.fillStyle = Theme.word("faint");
  context.fillText("rank \\ step", kGutter.left - 8, kGutter.top - 11);
  drawVisiblePart(context, rows, columns);
  if (!cursor) return;
  context.strokeStyle = Theme.word("ink");
  context.lineWidth = 1.5;
  const [x, y] = [kGutter.left + columns.pixel(cursor.column), kGutter.top + rows.pixel(cursor.row)];
  context.save();
  context.beginPath();
  context.rect(kGutter.left - 2, kGutter.top - 2, columns.length + 4, rows.length + 4);
  context.clip();
  context.strokeRect(x - 1, y - 1, Math.max(columns.scale, 3) + 1, Math.max(rows.scale, 3) + 1);
  context.restore();
}

// A line at each side says which part is visible, if it is not all.
function drawVisiblePart(context, rows, columns) {
  context.fillStyle = Theme.word("accent");
  if (!columns.isWhole()) {
    const all = columns.count * columns.scale;
    const share = columns.length / all;
    context.fillRect(
      kGutter.left + (columns.start / columns.count) * columns.length,
      kGutter.top + rows.length + 2,
      Math.max(8, share * columns.length),
      3,
    );
  }
  if (!rows.isWhole()) {
    const share = rows.length / (rows.count * rows.scale);
    context.fillRect(
      kGutter.left + columns.length + 2,
      kGutter.top + (rows.start / rows.count) * rows.length,
      3,
      Math.max(8, share * rows.length),
    );
  }
}

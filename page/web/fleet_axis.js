// An axis of a matrix: which of its cells are visible, and where.

class MatrixAxis {
  // largest: the most pixels that a cell takes.
  constructor(largest) {
    this.largest = largest;
    this.count = 0;
    this.length = 1; // pixels
    this.scale = 1; // pixels of a cell
    this.start = 0; // the cell that is first, with its fraction
  }
  least() {
    return Math.min(this.largest, this.length / Math.max(this.count, 1));
  }
  fit() {
    this.scale = this.least();
    this.start = 0;
  }
  // Keeps what is visible.
  resize(length) {
    const all = this.scale <= this.least();
    this.length = Math.max(1, length);
    if (all) this.fit();
    else this.zoom(1, 0);
  }
  zoom(factor, pixel) {
    const cell = this.start + pixel / this.scale;
    this.scale = Math.max(this.least(), Math.min(this.largest, this.scale * factor));
    this.start = cell - pixel / this.scale;
    this.bound();
  }
  pan(pixels) {
    this.start += pixels / this.scale;
    this.bound();
  }
  bound() {
    this.start = Math.max(0, Math.min(this.start, this.count - this.length / this.scale));
  }
  reveal(cell) {
    const shown = this.length / this.scale;
    if (cell < this.start) this.start = cell;
    else if (cell + 1 > this.start + shown) this.start = cell + 1 - shown;
    this.bound();
  }
  pixel(cell) {
    return (cell - this.start) * this.scale;
  }
  isWhole() {
    return this.length / this.scale >= this.count - 1e-6;
  }

  // The visible cells as bins: cells from `from` to before `to`, pixels from `begin` to before `end`. A bin is a cell,
  // or the cells of one pixel. ratio: pixels of the device in one of the page.
  bins(ratio) {
    const scale = this.scale * ratio;
    const length = Math.round(this.length * ratio);
    const bins = {from: [], to: [], begin: [], end: []};
    const add = (from, to, begin, end) => {
      bins.from.push(from);
      bins.to.push(to);
      bins.begin.push(begin);
      bins.end.push(end);
    };
    if (scale < 1) {
      for (let pixel = 0; pixel < length; ++pixel) {
        const [from, to] = this.cellsOf(pixel / ratio, 1 / ratio);
        if (from < this.count) add(from, to, pixel, pixel + 1);
      }
      return bins;
    }
    const gap = scale >= 6 * ratio ? Math.round(ratio) : 0;
    for (let cell = Math.floor(this.start); cell < this.count; ++cell) {
      const begin = Math.max(0, Math.round(this.pixel(cell) * ratio));
      const end = Math.min(length, Math.round(this.pixel(cell + 1) * ratio) - gap);
      if (begin >= length) break;
      add(cell, cell + 1, begin, Math.max(begin, end));
    }
    return bins;
  }
  // The cells from one to before another that a few pixels show.
  cellsOf(pixel, pixels) {
    const from = Math.floor(this.start + pixel / this.scale);
    const to = this.scale >= pixels ? from + 1 : Math.floor(this.start + (pixel + pixels) / this.scale);
    return [from, Math.min(this.count, Math.max(from + 1, to))];
  }
}

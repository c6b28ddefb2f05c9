// The cells of a matrix as pixels.

// The greatest of the cells that a bin of rows and one of columns have together; NaN if none is known.
function greatestOf(values, ranks, order, rows, columns) {
  let greatest = NaN;
  for (let column = columns[0]; column < columns[1]; ++column) {
    const first = column * ranks;
    for (let row = rows[0]; row < rows[1]; ++row) {
      const value = values[first + order[row]];
      if (!(value <= greatest) && !Number.isNaN(value)) greatest = value;
    }
  }
  return greatest;
}

// Rank and column of that cell; null if none is known.
function greatestCellOf(values, ranks, order, rows, columns) {
  let greatest = null;
  for (let column = columns[0]; column < columns[1]; ++column) {
    for (let row = rows[0]; row < rows[1]; ++row) {
      const value = values[column * ranks + order[row]];
      if (!Number.isNaN(value) && (greatest === null || value > greatest.value)) greatest = {row, column, value};
    }
  }
  return greatest;
}

// Draws the bins of two axes. paint: a colour for a value; unknown: two colours, hatched.
function imageOfCells(image, {values, ranks, order, rows, columns, scale, ground, unknown}) {
  const {width, height} = image;
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(ground);
  const shades = new Uint32Array(columns.from.length);
  for (let i = 0; i < rows.from.length; ++i) {
    let holes = false;
    for (let k = 0; k < shades.length; ++k) {
      const value = greatestOf(values, ranks, order, [rows.from[i], rows.to[i]], [columns.from[k], columns.to[k]]);
      shades[k] = Number.isNaN(value) ? 0 : shadeOf(scale, value);
      holes = holes || shades[k] === 0;
    }
    const first = rows.begin[i] * width;
    for (let y = rows.begin[i]; y < rows.end[i]; ++y) {
      // Rows of pixels differ only where they are hatched.
      if (y > rows.begin[i] && !holes) {
        pixels.copyWithin(y * width, first, first + width);
        continue;
      }
      for (let k = 0; k < shades.length; ++k) {
        const [begin, end] = [y * width + columns.begin[k], y * width + columns.end[k]];
        if (shades[k] !== 0) pixels.fill(shades[k], begin, end);
        else for (let p = begin; p < end; ++p) pixels[p] = unknown[(p - y * width + y) % 7 < 2 ? 1 : 0];
      }
    }
  }
  return height;
}

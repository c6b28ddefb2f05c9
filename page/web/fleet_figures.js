// The figures of ranks in steps, and how they differ from the median of the ranks of one role.

const kFigures = [
  {
    name: "wall",
    title: "Step time",
    text: timeText,
    what: "Time from the first to the last call of the step, on the host.",
    lacking: "the traces have no steps: `acltape steps` finds them in a trace before it is added",
  },
  {
    name: "waits",
    title: "Waits",
    text: timeText,
    byDifference: true,
    what:
      "Time that the rank waited in collectives until the last rank came. " +
      "A rank that waits less than the others is the one that they wait for, as the figure Waited for shows.",
    lacking: "several ranks need the times of the device for their collectives: `acltape record --device-times`",
  },
  {
    name: "caused",
    title: "Waited for",
    text: timeText,
    byDifference: true,
    what: "Time that all others waited in collectives to which this rank came last.",
    lacking: "several ranks need the times of the device for their collectives: `acltape record --device-times`",
  },
  {
    name: "memory",
    title: "Memory",
    text: bytesText,
    what: "The most bytes alive at once in the step: on the devices of the rank, or on the host if it uses none.",
    lacking: "the traces have no times of allocations and steps",
  },
];

const Figures = {
  kept: new Map(),

  known(run, figure) {
    return run.figures[figure.name]?.known === true;
  },
  // In units; -1 is not known. The rows of a column follow each other.
  cells(run, figure) {
    return Data.columns.get(`${run.index}.${figure.name}.figure`);
  },
  value(run, figure, row, column) {
    const cell = this.known(run, figure) ? this.cells(run, figure)[column * run.ranks.length + row] : -1;
    return cell < 0 ? null : cell * run.figures[figure.name].unit;
  },
  sum(run, figure, row) {
    return run.figures[figure.name]?.sums[row] ?? null;
  },
  text(figure, value) {
    return value === null || Number.isNaN(value) ? "not known" : figure.text(value);
  },

  // In units, for each role in each column; NaN where no rank of the role has the figure.
  medians(run, figure) {
    return this.keep(`medians ${run.index} ${figure.name}`, () => {
      const ranks = run.ranks.length;
      const cells = this.cells(run, figure);
      const medians = new Float64Array(run.roles.length * run.columns).fill(NaN);
      const room = new Float64Array(ranks);
      run.roles.forEach((_, role) => {
        const rows = [];
        for (let row = 0; row < ranks; ++row) if (run.roleOf[row] === role) rows.push(row);
        for (let column = 0; column < run.columns; ++column) {
          let count = 0;
          for (const row of rows) {
            const cell = cells[column * ranks + row];
            if (cell >= 0) room[count++] = cell;
          }
          if (!count) continue;
          const sorted = room.subarray(0, count).sort();
          medians[role * run.columns + column] = (sorted[(count - 1) >> 1] + sorted[count >> 1]) / 2;
        }
      });
      return medians;
    });
  },
  median(run, figure, row, column) {
    if (!this.known(run, figure)) return null;
    const median = this.medians(run, figure)[run.roleOf[row] * run.columns + column];
    return Number.isNaN(median) ? null : median * run.figures[figure.name].unit;
  },

  // The cells that are coloured, NaN where they are not known: the figure itself, its share over the median (0.1 is
  // 10 % more), or what it has more than the median.
  shown(run, figure, relative) {
    return this.keep(`shown ${run.index} ${figure.name} ${relative}`, () => {
      const ranks = run.ranks.length;
      const cells = this.cells(run, figure);
      const {unit} = run.figures[figure.name];
      const medians = relative ? this.medians(run, figure) : null;
      const shown = new Float64Array(cells.length);
      for (let column = 0, index = 0; column < run.columns; ++column) {
        for (let row = 0; row < ranks; ++row, ++index) {
          const cell = cells[index];
          const median = relative && cell >= 0 ? medians[run.roleOf[row] * run.columns + column] : 0;
          if (cell < 0) shown[index] = NaN;
          else if (!relative) shown[index] = cell * unit;
          else if (figure.byDifference) shown[index] = (cell - median) * unit;
          else shown[index] = median > 0 ? cell / median - 1 : cell > 0 ? Infinity : 0;
        }
      }
      return shown;
    });
  },
  differenceText(figure, value) {
    if (value === null || Number.isNaN(value)) return "";
    if (value === Infinity) return "the others have none";
    const sign = value > 0 ? "+" : value < 0 ? "−" : "";
    const size = Math.abs(value);
    return `${sign}${figure.byDifference ? figure.text(size) : `${threeDigits(size * 100)} %`}`;
  },

  // Few are kept, because each has the size of the matrix.
  keep(key, compute) {
    if (!this.kept.has(key)) {
      if (this.kept.size > 12) this.kept.clear();
      this.kept.set(key, compute());
    }
    return this.kept.get(key);
  },
};

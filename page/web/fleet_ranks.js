// The ranks of the chosen run as a table.

function fleetRanks(section) {
  const draw = () => {
    const run = Fleet.run;
    const rows = run.ranks.map((rank, row) => ({rank, row}));
    const steps = row => {
      const [wall] = kFigures;
      let count = 0;
      for (let column = 0; column < run.columns; ++column) count += Figures.value(run, wall, row, column) !== null;
      return count;
    };
    const summed = name => {
      const figure = kFigures.find(one => one.name === name);
      return {
        title: figure.title,
        hint: `${figure.what} The sum of all steps.`,
        value: ({row}) => Figures.sum(run, figure, row) ?? -1,
        text: ({row}) => Figures.text(figure, Figures.sum(run, figure, row)),
        right: true,
      };
    };
    section.replaceChildren(
      make("h1", {}, `Ranks of ${run.name}`),
      make("p", {class: "lead"}, "Sums over all steps. A click shows a rank."),
      dataTable({
        columns: [
          {title: "Rank", value: one => one.rank, right: true},
          {title: "Label", value: ({row}) => run.labels[row], optional: true},
          {title: "Host", value: ({row}) => run.hosts[row], optional: true},
          {title: run.each > 1 ? "Columns" : "Steps", value: ({row}) => steps(row), right: true},
          summed("wall"),
          summed("waits"),
          summed("caused"),
          {title: "Trace", value: ({row}) => run.traces[row], optional: true, mono: true},
        ],
        rows,
        onRow: ({row}) => FleetSide.show(run, row),
        placeholder: "Filter ranks",
      }),
    );
  };
  Fleet.listeners.push(draw);
  draw();
}

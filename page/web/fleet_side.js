// The panel of a rank: what is known of it, and how to open its trace.

const FleetSide = {
  // column: null for the rank alone.
  show(run, row, column = null) {
    const side = document.getElementById("side");
    const trace = run.traces[row];
    const fact = (name, value) => (value ? [make("dt", {}, name), make("dd", {}, value)] : []);
    side.replaceChildren(
      make(
        "div",
        {class: "head"},
        make("h2", {}, capital(`rank ${run.ranks[row]}`) + (column === null ? "" : `, ${run.stepText(column)}`)),
        make(
          "button",
          {type: "button", class: "icon", title: "Close (Esc)", "aria-label": "Close", on: {click: () => this.close()}},
          "✕",
        ),
      ),
      make(
        "dl",
        {},
        fact("Run", run.name),
        fact("Label", run.labels[row]),
        fact("Host", run.hosts[row]),
        fact("Recorded", run.recorded[row]),
        fact("Trace", trace),
        fact("Lacks", run.lacks[row] ? `${plural(run.lacks[row], "thing")}, see the overview` : ""),
      ),
      this.figures(run, row, column),
      make("h3", {}, "Open it"),
      ...this.ways(run, row, column),
    );
    side.hidden = false;
  },
  close() {
    document.getElementById("side").hidden = true;
  },

  figures(run, row, column) {
    const cells = figure => {
      const sum = Figures.text(figure, Figures.sum(run, figure, row));
      // The most memory of several steps is no sum.
      const all = figure.name === "memory" ? "" : sum;
      if (column === null) return [all];
      const value = Figures.value(run, figure, row, column);
      return [Figures.text(figure, value), Figures.text(figure, Figures.median(run, figure, row, column)), all];
    };
    const heads = ["", ...(column === null ? [] : ["here", "median"]), "all steps"];
    return make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          heads.map(head => make("th", {class: "right", scope: "col"}, head)),
        ),
      ),
      make(
        "tbody",
        {},
        kFigures.map(figure =>
          make(
            "tr",
            {},
            make("td", {title: figure.what}, figure.title),
            cells(figure).map(text => make("td", {class: "right"}, text)),
          ),
        ),
      ),
    );
  },

  ways(run, row, column) {
    const trace = run.traces[row];
    if (!trace) return [make("p", {class: "soft"}, "The folder does not say where the trace of this rank is.")];
    // A name that begins with "-" is no option.
    const word = shellWord(trace.startsWith("-") ? `./${trace}` : trace);
    const report = run.reports[row];
    const link =
      report.startsWith("./") && make("p", {}, make("a", {href: report, rel: "noreferrer"}, "The report of this rank"));
    const commands = [commandLine(`acltape report ${word}`)];
    if (column !== null) {
      const [first, last] = run.stepsOf(column);
      const calls = `step:${first}${last === first ? "" : `-${last}`}`;
      commands.push(
        commandLine(`acltape query ${word} --calls ${calls} --name top_ops`),
        commandLine(`acltape query ${word} --calls ${calls} --name host_waits`),
      );
    }
    return [link || null, ...commands].filter(Boolean);
  },
};

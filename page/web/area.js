// An area of the timeline that was selected, with its sums: calls and time by operator, line, module
// and stream.

const Area = {
  chosen: null, // {from, to, lines}: times, and the lines of calls; null: none
  kind: "operator",

  kinds: {
    operator: {word: "Operator", of: i => Calls.name(i)},
    line: {word: "Line", of: i => Calls.placeText(i)},
    module: {word: "Module", of: i => Calls.moduleOf(i)},
    stream: {word: "Stream", of: i => (Calls.stream[i] ? `stream ${Calls.stream[i]}` : "")},
  },

  // The calls of the area, each once: a call has a line of its thread and perhaps one of its stream.
  calls() {
    const {from, to, lines} = this.chosen;
    const seen = new Uint8Array(Calls.count);
    const found = [];
    for (const line of lines) {
      if (line.kind !== "call") continue;
      const end = line.row.firstAt(Folds.shown(to));
      for (let k = line.row.firstAlive(Folds.shown(from)); k < end; ++k) {
        const i = line.row.items[k];
        if (seen[i]) continue;
        seen[i] = 1;
        found.push(i);
      }
    }
    return found;
  },

  // The part of the call's own time that lies in the area.
  timeOf(i) {
    const {from, to} = this.chosen;
    const length = Calls.duration[i];
    if (length <= 0) return 0;
    const inside = Math.min(to, Calls.end(i)) - Math.max(from, Calls.begin[i]);
    return Calls.own[i] * Math.min(1, Math.max(0, inside / length));
  },

  sums(calls, of) {
    const sums = new Map();
    for (const i of calls) {
      const key = of(i);
      if (!key) continue;
      let sum = sums.get(key);
      if (!sum) sums.set(key, (sum = {key, calls: 0, time: 0}));
      ++sum.calls;
      sum.time += this.timeOf(i);
    }
    return [...sums.values()].sort((a, b) => b.time - a.time);
  },

  choose(from, to, lines) {
    this.chosen = {from: Math.min(from, to), to: Math.max(from, to), lines};
    this.show();
  },
  clear() {
    this.chosen = null;
    Timeline.dirty();
  },

  show() {
    const {from, to} = this.chosen;
    const calls = this.calls();
    const leaves = calls.filter(i => Calls.isLeaf(i));
    const table = make("div");
    const total = d3.sum(calls, i => this.timeOf(i));
    const draw = () => {
      const {word, of} = this.kinds[this.kind];
      const rows = this.sums(calls, of);
      table.replaceChildren(
        rows.length
          ? dataTable({
              columns: [
                {title: word, value: row => row.key},
                {title: "Calls", value: row => row.calls, text: row => countText(row.calls), right: true},
                {
                  title: "Own time",
                  value: row => row.time,
                  text: row => timeText(row.time),
                  right: true,
                  share: row => row.time / Math.max(total, 1),
                },
              ],
              rows,
              sort: 2,
              shown: 40,
            })
          : make("p", {class: "empty"}, "No call here has one."),
      );
    };
    draw();
    Detail.call = -1;
    Detail.showsList = false;
    Detail.open(
      Detail.head(`${timeText(to - from)} selected`),
      make(
        "p",
        {class: "soft", role: "status"},
        `From ${timeText(from)} to ${timeText(to)}: ${plural(calls.length, "call")}, ` +
          `${plural(leaves.length, "leaf", "leaves")}; ${timeText(total)} on the host without the calls inside.`,
      ),
      choice(
        Object.entries(this.kinds).map(([kind, {word}]) => [kind, word]),
        this.kind,
        kind => {
          this.kind = kind;
          draw();
        },
      ),
      table,
      make(
        "button",
        {type: "button", class: "plain-button", on: {click: () => Timeline.zoomTo(from, to, 0)}},
        "Zoom to it",
      ),
    );
    Timeline.dirty();
  },
};

// Two traces side by side.

function againstSection(section) {
  const view = Data.json.get("against");
  const {word} = Data.json.get("facts");
  section.append(make("h1", {}, "Against another trace"));
  if (!view) {
    section.append(
      make("p", {class: "empty"}, "This page shows one trace; this command puts another one beside it:"),
      commandLine(`acltape report ${word} --against OTHER.db --force`),
    );
    return;
  }
  const {a, b, diff} = view;
  section.append(make("p", {class: "lead"}, `A is ${a.facts.file}, B is ${b.facts.file}.`));
  const total = side => d3.sum(side.totals.operators, row => row.total_ns);
  const median = side => (side.step_times.length ? d3.median(side.step_times, row => row[1]) : null);
  const ratio = (x, y) => (x > 0 && y > 0 ? (y / x).toFixed(2) : "");
  const facts = [
    ["Command", commandText(a.facts.meta), commandText(b.facts.meta), ""],
    ["PyTorch", a.facts.meta.torch_version, b.facts.meta.torch_version, ""],
    ["Host", a.facts.meta.host, b.facts.meta.host, ""],
    ["Calls", countText(a.totals.calls), countText(b.totals.calls), ratio(a.totals.calls, b.totals.calls)],
    ["Leaves", countText(a.totals.leaves), countText(b.totals.leaves), ratio(a.totals.leaves, b.totals.leaves)],
    [
      "Steps",
      countText(a.step_times.length),
      countText(b.step_times.length),
      ratio(a.step_times.length, b.step_times.length),
    ],
    ["Median step", timeText(median(a)), timeText(median(b)), ratio(median(a), median(b))],
    ["Time in leaves", timeText(total(a)), timeText(total(b)), ratio(total(a), total(b))],
  ];
  section.append(
    dataTable({
      filter: false,
      columns: [
        {title: "", value: row => row[0]},
        {title: "A", value: row => row[1]},
        {title: "B", value: row => row[2]},
        {title: "B / A", value: row => row[3], right: true},
      ],
      rows: facts,
    }),
  );
  section.append(make("h2", {}, "Results"));
  if (diff.note) {
    section.append(make("p", {class: "empty"}, diff.note), commandLine(`acltape diff ${word} ${b.facts.word}`));
  } else {
    const compared = diff.equal + diff.within + diff.different;
    section.append(
      make(
        "p",
        {},
        `${plural(diff.aligned, "call")} were aligned by dataflow; ` +
          `${countText(diff.changed)} changed, ${countText(diff.inserted)} inserted, ` +
          `${countText(diff.deleted)} deleted. ` +
          (compared
            ? `Of ${plural(compared, "result")} compared (${diff.standard}), ` +
              `${countText(diff.equal)} are equal, ${countText(diff.within)} within tolerance ` +
              `and ${countText(diff.different)} different.`
            : "There were no results to compare."),
      ),
    );
    if (diff.first) {
      const {first} = diff;
      section.append(
        make(
          "article",
          {class: "finding"},
          make(
            "header",
            {},
            make("span", {class: "tag different"}, first.cause || "different"),
            make("b", {}, "First difference"),
          ),
          make(
            "p",
            {},
            first.a_calls.length
              ? callLink(first.a_calls[first.a_calls.length - 1], `call ${first.a_calls.join(" ")} ${first.a_op} of A`)
              : "nothing in A",
            ", ",
            first.b_calls.length ? `call ${first.b_calls.join(" ")} ${first.b_op} of B` : "nothing in B",
          ),
          first.change ? make("p", {}, first.change) : null,
          first.reason ? make("p", {class: "soft"}, `${first.output ? `${first.output}: ` : ""}${first.reason}`) : null,
          commandLine(`acltape diff ${word} ${b.facts.word}`),
        ),
      );
    } else if (compared) {
      section.append(make("p", {class: "soft"}, "No call has a difference of its own."));
    }
  }
  section.append(make("h2", {}, "Times of steps"));
  const place = make("div");
  const rows = [
    ["A", a],
    ["B", b],
  ]
    .filter(([, side]) => side.step_times.length)
    .map(([name, side], index) => ({
      title: `${name}, ${side.facts.file}`,
      colour: index,
      values: side.step_times.map(row => row[1]),
    }));
  if (rows.length) {
    section.append(place);
    const draw = () => distributionChart(place, rows);
    Sections.onShow.against = draw;
    Theme.listeners.push(() => {
      if (Sections.current === "against") draw();
    });
    new ResizeObserver(() => {
      if (Sections.current === "against") draw();
    }).observe(section);
  } else {
    section.append(
      make("p", {class: "empty"}, "Neither trace has steps; `acltape record --steps-from NAME` names them."),
    );
  }
  section.append(make("h2", {}, "Operators"));
  const operators = new Map();
  for (const [side, name] of [
    [a, "a"],
    [b, "b"],
  ]) {
    for (const row of side.totals.operators) {
      if (!operators.has(row.op)) operators.set(row.op, {op: row.op, a: 0, b: 0, a_calls: 0, b_calls: 0});
      operators.get(row.op)[name] = row.total_ns;
      operators.get(row.op)[`${name}_calls`] = row.calls;
    }
  }
  section.append(
    dataTable({
      columns: [
        {title: "Operator", value: row => row.op},
        {title: "Calls of A", value: row => row.a_calls, text: row => countText(row.a_calls), right: true},
        {title: "of B", value: row => row.b_calls, text: row => countText(row.b_calls), right: true},
        {title: "Time of A", value: row => row.a, text: row => timeText(row.a), right: true},
        {title: "of B", value: row => row.b, text: row => timeText(row.b), right: true},
        {
          title: "B / A",
          value: row => (row.a > 0 ? row.b / row.a : Infinity),
          text: row => (row.a > 0 ? (row.b / row.a).toFixed(2) : "only in B"),
          right: true,
        },
        {
          title: "B − A",
          value: row => row.b - row.a,
          text: row => `${row.b < row.a ? "−" : "+"}${timeText(Math.abs(row.b - row.a))}`,
          right: true,
        },
      ],
      rows: [...operators.values()],
      sort: 6,
      placeholder: "Filter operators",
    }),
  );
}

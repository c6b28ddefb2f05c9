// Two traces side by side.

const kDiffCauses = {
  origin: "same inputs, another result",
  structural: "the programs differ here",
  input: "other contents were given",
};

// The verdict, in the words that `acltape diff` has for it, then how much of both traces it is about.
function diffSentences(diff) {
  const compared = diff.equal + diff.within + diff.different;
  const parts = [
    [diff.changed, "changed"],
    [diff.inserted, "only in B"],
    [diff.deleted, "only in A"],
  ].filter(([count]) => count);
  return [
    make("p", {"data-verdict": diff.verdict}, make("b", {}, `${capital(diff.verdict)}.`)),
    make(
      "p",
      {},
      `${plural(diff.aligned, "pair")} of calls were aligned by dataflow, ` +
        `of ${plural(diff.a_calls, "call")} of A and ${countText(diff.b_calls)} of B that touch memory` +
        (parts.length ? `; ${parts.map(([count, word]) => `${countText(count)} ${word}`).join(", ")}` : "") +
        ". " +
        (compared
          ? `Results of ${plural(compared, "pair")} were compared (${diff.standard}): ` +
            `${countText(diff.equal)} equal, ${countText(diff.within)} within tolerance, ` +
            `${countText(diff.different)} different. `
          : "") +
        (diff.not_comparable ? `${countText(diff.not_comparable)} have no result that could be compared.` : ""),
    ),
    make("p", {}, `${capital(diff.coverage_words)}: ${diff.coverage}.`),
    ...(diff.notes || []).map(note => make("p", {class: "soft"}, note)),
  ];
}

function firstDifference(first, command) {
  const side = (calls, op, line, name, link) =>
    make(
      "p",
      {},
      `${name}: `,
      calls.length ? make("b", {}, op, " ") : "no such call",
      calls.length && line ? `at ${Calls.shortFile(line)} ` : "",
      calls.length ? link(calls) : "",
    );
  return make(
    "article",
    {class: "finding"},
    make(
      "header",
      {},
      make("span", {class: "tag different"}, kDiffCauses[first.cause] || first.cause || "different"),
      make("b", {}, "First difference"),
    ),
    side(first.a_calls, first.a_op, first.a_line, "A", calls =>
      callLink(calls[calls.length - 1], `(call ${calls.join(" ")})`),
    ),
    side(first.b_calls, first.b_op, first.b_line, "B", calls => `(call ${calls.join(" ")})`),
    first.change ? make("p", {}, first.change) : null,
    first.reason ? make("p", {class: "soft"}, `${first.output ? `${first.output}: ` : ""}${first.reason}`) : null,
    command ? commandLine(command) : null,
  );
}

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
  const processes = [
    ["A", a],
    ["B", b],
  ].filter(([, side]) => side.process && side.facts.processes.length > 1);
  section.append(make("p", {class: "lead"}, `A is ${a.facts.file}, B is ${b.facts.file}.`));
  if (processes.length)
    section.append(
      make(
        "p",
        {class: "soft"},
        `Steps and results are those of ${processes
          .map(([name, side]) => `process ${side.process} of ${name}`)
          .join(" and ")}; calls and operators are those of all processes.`,
      ),
    );
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
    section.append(...diffSentences(diff));
    if (diff.first)
      section.append(
        firstDifference(
          diff.first,
          a.facts.processes.length + b.facts.processes.length > 2 ? null : `acltape diff ${word} ${b.facts.word}`,
        ),
      );
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

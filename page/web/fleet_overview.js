// The overview: what the folder holds, what it lacks, and the answers of the prepared questions.

function fleetOverview(section) {
  const {facts, runs} = Fleet;
  const parts = d => runs.reduce((sum, run) => sum + d(run), 0);
  const card = (figure, what, more = "") =>
    make(
      "div",
      {class: "card"},
      make("div", {class: "figure"}, figure),
      make("div", {class: "what"}, what),
      more ? make("div", {class: "more"}, more) : null,
    );
  const hosts = new Set(runs.flatMap(run => run.hosts).filter(Boolean)).size;
  const roles = new Set(runs.flatMap(run => run.roles).filter(Boolean)).size;
  section.append(
    make("h1", {}, "Overview"),
    make("p", {class: "lead mono"}, facts.folder),
    make(
      "div",
      {class: "cards"},
      card(
        countText(runs.length),
        runs.length === 1 ? "run" : "runs",
        runs
          .slice(0, 4)
          .map(run => run.name)
          .join(", "),
      ),
      card(countText(parts(run => run.ranks.length)), "ranks of runs", roles ? plural(roles, "label") : "no labels"),
      card(countText(Math.max(0, ...runs.map(run => run.steps.length))), "steps of a run at most"),
      hosts ? card(countText(hosts), hosts === 1 ? "host" : "hosts") : null,
      card(countText(facts.left_out.length), "left out", facts.left_out.length ? "see below" : "everything was read"),
    ),
    ...leftOutTable(facts.left_out),
    ...lackingTable(facts.lacking),
    make("h2", {}, "Prepared questions"),
    ...facts.answers.map(answerCard),
  );
}

function leftOutTable(rows) {
  if (!rows.length) return [];
  return [
    make("h2", {}, "Left out"),
    make("p", {class: "note"}, "The answers and the matrix are not about these."),
    dataTable({
      columns: [
        {title: "Part", value: row => row[0]},
        {title: "Why", value: row => row[1]},
      ],
      rows,
      shown: 20,
    }),
  ];
}

function lackingTable(rows) {
  if (!rows.length) return [];
  return [
    make("h2", {}, "What the traces lack"),
    dataTable({
      columns: [
        {title: "Lacking", value: row => row[0]},
        {title: "Parts", value: row => row[1]},
      ],
      rows,
      shown: 20,
    }),
  ];
}

const kKinds = {finding: ["bad", "finding"], none: ["good", "nothing found"], unknown: ["", "not known"]};

function answerCard(answer) {
  const [colour, text] = kKinds[answer.kind] || kKinds.unknown;
  return make(
    "article",
    {class: "finding", "data-question": answer.name},
    make(
      "header",
      {},
      make("b", {}, answer.question),
      make("span", {class: `tag ${colour}`}, text),
      make("span", {class: "faint mono"}, answer.name),
    ),
    make("p", {}, answer.answer),
    answer.next ? commandLine(answer.next) : null,
  );
}

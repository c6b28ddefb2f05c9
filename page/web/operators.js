// Operators, lines of the program and modules as tables, over the whole trace or what was searched.

const kSubjects = {
  operators: {word: "Operator", of: i => Calls.name(i), find: key => `op:${key}`},
  lines: {
    word: "Line",
    of: i => Calls.placeText(i),
    find: key => `line:${key.replace(/ \([^(]*\)$/, "").replace(/^.*\//, "")}`,
    none: "The trace holds no lines of the program; `acltape record --stacks top` records them.",
  },
  modules: {
    word: "Module",
    of: i => Calls.moduleOf(i),
    find: key => key,
    none: "The trace holds no modules; `acltape record --modules` records them.",
  },
};

// Sums over calls by what `of` gives: [{key, calls, total, own, leaves, worst, first}].
function sumBy(of) {
  const sums = new Map();
  const {mask} = Search;
  for (let i = 0; i < Calls.count; ++i) {
    if (mask && !mask[i]) continue;
    const key = of(i);
    if (!key) continue;
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = {key, calls: 0, leaves: 0, total: 0, own: 0, worst: i}));
    ++sum.calls;
    sum.own += Calls.own[i];
    if (Calls.isLeaf(i)) ++sum.leaves;
    // A call inside another one of the same key would count twice.
    const around = Calls.encloser[i];
    if (around < 0 || of(around) !== key) sum.total += Calls.duration[i];
    if (Calls.duration[i] > Calls.duration[sum.worst]) sum.worst = i;
  }
  return [...sums.values()];
}

function operatorsSection(section) {
  let subject = "operators";
  const place = make("div");
  const draw = () => {
    const {word, of, find, none} = kSubjects[subject];
    const rows = sumBy(of);
    const own = d3.sum(rows, row => row.own);
    const scope = Search.mask ? `of the ${plural(Search.found.length, "call")} found` : "of the whole trace";
    if (!rows.length) {
      place.replaceChildren(
        make("p", {class: "empty"}, Search.mask ? "What was searched has none." : none || "The trace holds no calls."),
      );
      return;
    }
    place.replaceChildren(
      make(
        "p",
        {class: "soft"},
        `Host time ${scope}. Own time leaves out the calls inside; all own times together are the time in calls.`,
      ),
      dataTable({
        columns: [
          {title: word, value: row => row.key},
          {title: "Calls", value: row => row.calls, text: row => countText(row.calls), right: true},
          {title: "Leaves", value: row => row.leaves, text: row => countText(row.leaves), right: true},
          {
            title: "Own time",
            value: row => row.own,
            text: row => timeText(row.own),
            right: true,
            share: row => row.own / d3.max(rows, other => other.own),
          },
          {title: "Share", value: row => row.own, text: row => shareText(row.own / own), right: true},
          {title: "Total time", value: row => row.total, text: row => timeText(row.total), right: true},
          {
            title: "Mean",
            value: row => row.total / row.calls,
            text: row => timeText(row.total / row.calls),
            right: true,
          },
          {
            title: "Longest",
            value: row => Calls.duration[row.worst],
            right: true,
            text: row => timeText(Calls.duration[row.worst]),
            element: row =>
              make(
                "button",
                {
                  type: "button",
                  class: "link",
                  title: "Show this call",
                  on: {click: () => Detail.show(row.worst, {zoom: true})},
                },
                timeText(Calls.duration[row.worst]),
              ),
          },
        ],
        rows,
        sort: 3,
        placeholder: `Filter ${word.toLowerCase()}s`,
        onRow: row => {
          setSearch(find(row.key));
        },
      }),
    );
  };
  section.append(
    make("h1", {}, "Operators, lines and modules"),
    make("p", {class: "lead"}, "A click on a row finds its calls; what is searched for limits the tables."),
    choice(
      [
        ["operators", "Operators"],
        ["lines", "Lines"],
        ["modules", "Modules"],
      ],
      subject,
      value => {
        subject = value;
        draw();
      },
    ),
    place,
  );
  Search.listeners.push(() => {
    if (Sections.current === "operators") draw();
    else section.dataset.stale = "1";
  });
  Sections.onShow.operators = () => {
    if (section.dataset.stale) {
      delete section.dataset.stale;
      draw();
    }
  };
  draw();
}

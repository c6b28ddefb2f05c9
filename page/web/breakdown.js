// Where the time of a step goes: one step as bars of its parts, which add up to it.

const kHostParts = [
  ["loading_ns", "Loading data", "in the program's DataLoader"],
  ["waiting_ns", "Waiting for the device", "in calls that return when the device is done"],
  ["copying_ns", "Copying", "between host and device"],
  ["host_operators_ns", "Operators on the host", "computed by the processor"],
  ["issuing_ns", "Issuing work", "in calls that hand work to the device"],
  ["place_not_known_ns", "Operators somewhere", "the trace does not say whether on the host or on a device"],
  ["program_ns", "", "between the recorded calls"],
];
const kDeviceParts = [
  ["device_compute_ns", "Computing", "in operators and executed graphs"],
  ["device_copy_ns", "Copying alone", "while nothing computed"],
  ["device_idle_host_late_ns", "Idle: the host was late", "the next work was issued after all before it had ended"],
  ["device_idle_waiting_ns", "Idle: work had been issued", "it waited for an event, or for its launch"],
];

// The step in the middle of all by its time from the first call to the last one, so that its parts add up.
function middleStep(rows) {
  const order = rows.slice().sort((a, b) => a.wall_ns - b.wall_ns);
  return order[Math.floor((order.length - 1) / 2)];
}

function partsTable(row, parts, whole, caption) {
  const table = make("div", {class: "parts", role: "table", "aria-label": caption});
  for (const [key, title, more] of parts) {
    if (!row[key]) continue;
    const bar = make("i");
    bar.style.width = `${Math.min(100, (row[key] / Math.max(1, whole)) * 100)}%`;
    table.append(
      make(
        "div",
        {class: "share still", role: "row", title: more, "data-part": key, "data-ns": String(row[key])},
        make("span", {class: "name", role: "cell"}, title),
        make("span", {class: "number", role: "cell"}, timeText(row[key])),
        make("span", {class: "number", role: "cell"}, shareText(row[key] / Math.max(1, whole))),
        make("span", {class: "bar", "aria-hidden": "true"}, bar),
      ),
    );
  }
  return table;
}

function breakdownBlock(facts, word) {
  const {rows, why_none} = Data.json.get("breakdown");
  const title = make("h2", {}, "Where the time of a step goes");
  const command = `acltape query ${facts.word} --name step_breakdown`;
  if (!rows.length) {
    if (!facts.steps.length) return []; // the card of the steps says so
    return [title, make("p", {class: "empty"}, why_none), commandLine(command)];
  }
  const torch = usesTorch();
  const box = make("div", {class: "breakdown"});
  const draw = row => {
    const host = kHostParts.map(([key, name, more]) => [
      key,
      name || (torch ? "Python and framework" : "The program's own code"),
      more,
    ]);
    const device = d3.sum(kDeviceParts, ([key]) => row[key] || 0);
    const lines = [
      make(
        "p",
        {class: "soft"},
        `Step ${row.step} takes ${timeText(row.wall_ns)} from its first call to its last one` +
          (row.before_ns ? `, and ${timeText(row.before_ns)} before them: ${timeText(row.step_ns)} in all. ` : ". ") +
          "The host, each moment once:",
      ),
      partsTable(row, host, row.step_ns, `Step ${row.step} on the host`),
    ];
    if (row.launching_beside_ns)
      lines.push(
        make(
          "p",
          {class: "faint"},
          `Beside Python, another thread of the framework launches for ${timeText(row.launching_beside_ns)}.`,
        ),
      );
    if (torch && row.loading_ns === null)
      lines.push(
        make(
          "p",
          {class: "faint"},
          "No range of PyTorch's DataLoader was recorded; time spent on loading data counts as the program's own.",
        ),
      );
    if (row.device_compute_ns !== null) {
      lines.push(
        make("p", {class: "soft"}, `The device, from the end of the work before it (${timeText(device)}):`),
        partsTable(row, kDeviceParts, device, `Step ${row.step} on the device`),
      );
    } else {
      lines.push(
        make(
          "p",
          {class: "faint"},
          facts.streams.length
            ? "When the device worked is not known; `acltape record --device-times` keeps it."
            : "The program used no device that the recorder knows.",
        ),
      );
    }
    box.replaceChildren(...lines);
  };
  const middle = middleStep(rows);
  const chosen = make("select", {
    class: "filter",
    "aria-label": "Step",
    on: {change: event => draw(rows[event.currentTarget.selectedIndex])},
  });
  for (const row of rows)
    chosen.append(
      make(
        "option",
        {selected: row === middle},
        `step ${row.step}: ${timeText(row.wall_ns)}${row === middle ? ", in the middle of all" : ""}`,
      ),
    );
  draw(middle);
  return [
    title,
    make("div", {class: "bar-row"}, chosen),
    box,
    facts.steps_stored
      ? commandLine(command)
      : make("p", {class: "faint"}, `The steps are not stored in the trace; \`acltape steps ${word}\` compares them.`),
  ];
}

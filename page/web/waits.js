// Where the host waits for the device, and what can be done about it.

function waitsBlock(word) {
  const {advice, waits, ns, in_steps_ns, why_none} = Data.json.get("waits");
  const title = make("h2", {}, "Where the host waits");
  if (why_none) return [title, make("p", {class: "empty"}, why_none)];
  const total =
    `${plural(waits, "wait")} for the device, ${timeText(ns)} in all` +
    (in_steps_ns ? `, ${timeText(in_steps_ns)} of them in the steps. ` : ". ");
  if (!advice.length) {
    return [title, make("p", {}, `${total}Nothing to do about them was found.`), commandLine(`acltape waits ${word}`)];
  }
  return [
    title,
    make("p", {}, total),
    make(
      "ul",
      {class: "waits"},
      ...advice.map(row =>
        make(
          "li",
          {},
          `${row.where || "A call without a line"} ${row.advice}${row.ns ? ` (${timeText(row.ns)})` : ""}`,
        ),
      ),
    ),
    commandLine(`acltape waits ${word}`),
  ];
}

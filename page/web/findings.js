// The problems of the program: findings with place, evidence and edit, and the ledger of the recording.

function findingsSection(section) {
  const {findings, ledger, source, why_none} = Data.json.get("findings");
  const {word} = Data.json.get("facts");
  section.append(make("h1", {}, "Findings"));
  if (!findings.length) {
    section.append(
      make("p", {class: "empty"}, why_none || "Lint found nothing that a capture would refuse or get wrong."),
    );
  } else {
    section.append(
      make(
        "p",
        {class: "lead"},
        source === "stored"
          ? "Findings that tools stored in the trace."
          : (source === "both" ? "Findings that tools stored in the trace, and what" : "What") +
              " acltape lint finds, made for this page; " +
              "the command stores it in the trace and can prove it on a device.",
      ),
    );
    if (source !== "stored") section.append(commandLine(`acltape lint ${word}`));
    const order = {error: 0, data_loss: 1, notice: 2, info: 3};
    const sorted = [...findings].sort((a, b) => order[a.severity] - order[b.severity] || a.call_id - b.call_id);
    const place = make("div");
    const input = make("input", {
      class: "filter",
      type: "search",
      placeholder: "Filter findings",
      "aria-label": "Filter findings",
    });
    let shown = 60;
    const causes = findingCauses(sorted);
    section.append(
      make(
        "p",
        {class: "soft"},
        `${plural(findings.length, "finding")} of ${plural(causes.length, "cause")}: ` +
          "what has one rule and one line of the program stands together.",
      ),
    );
    const draw = () => {
      const wanted = input.value.toLowerCase();
      const kept = causes.filter(rows =>
        rows.some(row =>
          `${row.rule} ${row.title} ${row.message} ${row.severity} ${row.verdict} ${placeOfCall(row.call_id)}`
            .toLowerCase()
            .includes(wanted),
        ),
      );
      place.replaceChildren(
        ...kept.slice(0, shown).map(findingCard),
        kept.length > shown
          ? make(
              "button",
              {
                type: "button",
                class: "plain-button",
                on: {
                  click: () => {
                    shown *= 4;
                    draw();
                  },
                },
              },
              `Show more of ${kept.length}`,
            )
          : "",
      );
    };
    input.addEventListener("input", draw);
    if (findings.length > 5) section.append(input);
    section.append(place);
    draw();
  }
  section.append(make("h2", {}, "Ledger: what the recording or a tool left out"));
  if (!ledger.length) section.append(make("p", {class: "empty"}, "Nothing was dropped, approximated or skipped."));
  else
    section.append(
      dataTable({
        columns: [
          {
            title: "Severity",
            value: row => row.severity,
            element: row => make("span", {class: `tag ${row.severity}`}, row.severity.replace("_", " ")),
          },
          {title: "What", value: row => row.kind.replaceAll("_", " ")},
          {title: "Count", value: row => row.count, text: row => countText(row.count), right: true},
          {title: "Where", value: row => row.subject},
          {title: "Why", value: row => row.cause},
          {title: "Remedy", value: row => row.remedy},
        ],
        rows: ledger,
      }),
    );
}

// Findings by cause, which lint tells. Stored ones lack it: their cause is one rule at one line of the program,
// or at one operator where no line is known. The order stays that of the first of each.
function findingCauses(findings) {
  const causes = new Map();
  for (const row of findings) {
    const i = Calls.indexOf(row.call_id);
    const where = i < 0 ? "" : Calls.placeText(i) || Calls.name(i);
    const key = row.cause || `${row.rule}\n${row.severity}\n${where}`;
    if (!causes.has(key)) causes.set(key, []);
    causes.get(key).push(row);
  }
  return [...causes.values()];
}

// The line of the program with its neighbours, where the page has them.
function sourceLines(call) {
  const i = Calls.indexOf(call);
  if (i < 0 || !Calls.place[i]) return null;
  const [file, line] = Calls.places[Calls.place[i] - 1];
  const lines = Data.json.get("source_lines")[file];
  if (!lines?.[line]) return null;
  const near = d3.range(line - 2, line + 3).filter(number => lines[number] !== undefined);
  return make(
    "pre",
    {class: "source", "aria-label": `Source at ${Calls.placeText(i)}`},
    near.map(number => {
      const text = `${String(number).padStart(5)}  ${lines[number]}\n`;
      return number === line ? make("mark", {}, text) : text;
    }),
  );
}

function findingCard(rows) {
  const [row] = rows;
  const evidence = row.evidence && typeof row.evidence === "object" ? row.evidence : {};
  const codes = Object.entries(evidence.codes || {})
    .filter(([, code]) => code)
    .map(([mode, code]) => `${code} in ${mode.replace("_", "-")} mode`);
  const i = Calls.indexOf(row.call_id);
  const place = i >= 0 ? Calls.placeText(i) : "";
  const calls = Array.isArray(evidence.calls) ? evidence.calls.slice(0, 12) : [];
  const times = d3.sum(rows, one => Number(one.evidence?.count) || 1);
  const others = rows.slice(1, 13);
  return make(
    "article",
    {class: "finding"},
    make(
      "header",
      {},
      make("span", {class: `tag ${row.severity}`}, row.severity),
      make("span", {class: "mono soft"}, row.rule),
      make("b", {}, row.title || ""),
      make("span", {class: `tag ${row.verdict}`}, row.verdict),
      times > 1 ? make("span", {class: "soft"}, `${countText(times)} times`) : null,
    ),
    make("p", {}, row.message),
    sourceLines(row.call_id),
    evidence.edit ? make("p", {}, make("span", {class: "soft"}, "Edit: "), evidence.edit) : null,
    codes.length ? make("p", {class: "soft"}, `The interface answers ${codes.join(", ")}.`) : null,
    make(
      "p",
      {class: "soft"},
      row.call_id ? callLink(row.call_id) : "the trace as a whole",
      place ? ` at ${place}` : "",
      calls.length > 1
        ? make(
            "span",
            {},
            " · evidence: ",
            calls.flatMap((call, index) => [index ? ", " : "", callLink(call)]),
          )
        : null,
      others.length
        ? make(
            "span",
            {},
            " · also ",
            others.flatMap((one, index) => [index ? ", " : "", callLink(one.call_id)]),
            rows.length > 13 ? ` and ${countText(rows.length - 13)} more` : "",
          )
        : null,
    ),
  );
}

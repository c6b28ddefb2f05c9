// The problems of the program: findings with place, evidence and edit, and the ledger of the recording.

function findingsSection(section) {
  const {findings, ledger, source, why_none} = Data.json.get("findings");
  const word = traceWord(Data.json.get("facts"));
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
    const place = make("div");
    const input = make("input", {
      class: "filter",
      type: "search",
      placeholder: "Filter findings",
      "aria-label": "Filter findings",
    });
    let shown = 60;
    const causes = findingCauses();
    const adapter = adapterCauses();
    section.append(
      make(
        "p",
        {class: "soft"},
        `${findingsText(causes)}. What one edit removes is one finding, with how often it occurs.`,
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
    if (causes.length > 5) section.append(input);
    section.append(place);
    draw();
    if (adapter.length)
      section.append(
        make(
          "details",
          {class: "adapter"},
          make(
            "summary",
            {},
            `Inside the framework's adapter: ${plural(adapter.length, "finding")} more, ` +
              "which nothing in the program changes",
          ),
          adapter.map(findingCard),
        ),
      );
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

const kSeverities = [
  ["error", "errors"],
  ["data_loss", "data losses"],
  ["notice", "notices"],
  ["info", "infos"],
];
const severityOrder = severity => kSeverities.findIndex(([word]) => word === severity);

// Findings that one edit removes, as lists of which the first tells of the others; the most severe ones
// first, then those that occur most often, as `acltape lint` has them. What lint stored is such a list
// already. Findings of older traces stand together by rule and line of the program, or by operator where
// no line is known.
function allCauses() {
  const causes = new Map();
  for (const [index, row] of Data.json.get("findings").findings.entries()) {
    const i = Calls.indexOf(row.call_id);
    const where = i < 0 ? "" : Calls.placeText(i) || Calls.name(i);
    const key =
      row.cause !== undefined
        ? `cause ${row.cause}`
        : row.evidence?.findings
          ? `row ${index}`
          : `${row.rule}\n${row.severity}\n${where}`;
    if (!causes.has(key)) causes.set(key, []);
    if (row.leads) causes.get(key).unshift(row);
    else causes.get(key).push(row);
  }
  return [...causes.values()].sort(
    (a, b) => severityOrder(a[0].severity) - severityOrder(b[0].severity) || occurrences(b) - occurrences(a),
  );
}
// Those that the program can change, and those inside the framework's adapter, which lint does not count.
const findingCauses = () => allCauses().filter(([row]) => !row.evidence?.adapter);
const adapterCauses = () => allCauses().filter(([row]) => row.evidence?.adapter);
const occurrences = rows => d3.sum(rows, row => Number(row.evidence?.count) || 1);

// "6 findings: 3 errors, 3 notices".
function findingsText(causes) {
  const parts = kSeverities
    .map(([word, words]) => [causes.filter(([row]) => row.severity === word).length, word.replace("_", " "), words])
    .filter(([count]) => count);
  const all = plural(causes.length, "finding");
  return parts.length ? `${all}: ${parts.map(([count, word, words]) => plural(count, word, words)).join(", ")}` : all;
}

// "107027 in all modes", "107030 in global mode".
function codesText(codes) {
  const all = Object.entries(codes);
  const given = all.filter(([, code]) => code);
  if (given.length > 1 && given.length === all.length && given.every(([, code]) => code === given[0][1]))
    return `${given[0][1]} in all modes`;
  return given.map(([mode, code]) => `${code} in ${mode.replace("_", "-")} mode`).join(", ");
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
  const codes = codesText(evidence.codes || {});
  const i = Calls.indexOf(row.call_id);
  const place = i >= 0 ? Calls.placeText(i) : "";
  const calls = Array.isArray(evidence.calls) ? evidence.calls.slice(0, 12) : [];
  const times = occurrences(rows);
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
    codes ? make("p", {class: "soft"}, `The interface answers ${codes}.`) : null,
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

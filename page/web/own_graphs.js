// The graphs that the program captured itself: why each was captured, how often it was executed and
// updated, and what it reads.

function ownGraphsSection(section) {
  const {graphs, operator_lists, most_alive, most_streams, why_none} = Data.json.get("own_graphs");
  const word = traceWord(Data.json.get("facts"));
  section.append(make("h1", {}, "The program's own graphs"));
  if (!graphs.length) {
    section.append(
      make(
        "p",
        {class: "empty"},
        why_none || "The program captured no graph; `acltape plan` works out what can be captured.",
      ),
    );
    return;
  }
  const never = graphs.filter(graph => graph.executions === 0).length;
  section.append(
    make(
      "p",
      {class: "lead"},
      `${plural(graphs.length, "graph")} with ` +
        `${operator_lists === 1 ? "one list" : plural(operator_lists, "different list")} of operators, ` +
        `${plural(
          d3.sum(graphs, graph => graph.executions),
          "execution",
        )}` +
        `${never ? `; ${never === 1 ? "one was" : `${never} were`} never executed` : ""}. ` +
        `At most ${plural(most_alive, "graph")} existed at a time, with ${plural(most_streams, "stream")}.`,
    ),
    commandLine(`acltape captures ${word}`),
  );
  const place = make("div");
  section.append(
    dataTable({
      columns: [
        {
          title: "Graph",
          value: row => row.graph,
          right: true,
          element: row =>
            make(
              "button",
              {
                type: "button",
                class: "link",
                title: "Show its details below",
                "aria-label": `Details of graph ${row.graph}`,
                on: {click: () => place.replaceChildren(...ownGraphDetails(row))},
              },
              row.graph,
            ),
        },
        {title: "Begins", value: row => row.begins, element: row => callLink(row.begins, row.begins), right: true},
        {title: "Line", value: row => placeOfCall(row.begins) || placeInside(row), whole: true},
        {title: "Operators", value: row => row.operators, text: row => countText(row.operators), right: true},
        {title: "Streams", value: row => row.streams, right: true},
        {title: "Executions", value: row => row.executions, text: row => countText(row.executions), right: true},
        {title: "Host time", value: executionTime, text: row => timeText(executionTime(row)), right: true},
        {title: "Updates", value: row => row.updates, text: row => countText(row.updates), right: true},
        {title: "Inputs", value: row => row.inputs.length, right: true},
        {
          title: "Captured for",
          value: row => row.reason + (row.against ? ` against ${row.against}` : ""),
          element: row =>
            make(
              "div",
              {class: "why"},
              row.reason + (row.against ? `, against graph ${row.against}` : ""),
              row.difference ? make("div", {class: "faint"}, row.difference) : null,
            ),
        },
      ],
      rows: graphs,
    }),
    place,
  );
  place.replaceChildren(...ownGraphDetails(graphs[0]));
}

// The line of the first call in a graph that has one.
function placeInside(row) {
  const from = d3.bisectLeft(Calls.id, row.begins);
  for (let i = from; i < Calls.count && Calls.id[i] <= row.ends; ++i) if (Calls.place[i]) return Calls.placeText(i);
  return "";
}

// The host's time in the executions of a graph.
function executionTime(row) {
  return d3.sum(row.executed_by, id => {
    const i = Calls.indexOf(id);
    return i < 0 ? 0 : Calls.duration[i];
  });
}

function ownGraphDetails(row) {
  const shown = row.executed_by.slice(0, 100);
  return [
    make("h2", {}, `Graph ${row.graph}`),
    make(
      "p",
      {},
      `Captured by calls ${row.begins} to ${row.ends}${row.destroyed ? `, destroyed by call ${row.destroyed}` : ""}; ` +
        `${plural(row.groups, "task group")}, ${plural(row.updates, "update")}. `,
      make(
        "button",
        {
          type: "button",
          class: "link",
          on: {
            click: () => {
              Sections.open("timeline");
              const from = Calls.indexOf(row.begins),
                to = Calls.indexOf(row.ends);
              if (from >= 0 && to >= 0) Timeline.zoomTo(Calls.begin[from], Calls.end(to));
            },
          },
        },
        "Show its capture on the timeline",
      ),
    ),
    make("h3", {}, `${plural(row.executions, "execution")}`),
    make(
      "p",
      {},
      shown.length ? shown.flatMap((id, index) => [index ? ", " : "", callLink(id)]) : "It was never executed.",
      row.executions > shown.length ? ` and ${countText(row.executions - shown.length)} more` : "",
    ),
    make("h3", {}, `Memory that it reads and did not write before`),
    row.inputs.length
      ? dataTable({
          columns: [
            {title: "Buffer", value: input => input[0], right: true},
            {title: "At byte", value: input => input[1], text: input => countText(input[1]), right: true},
            {title: "Bytes read", value: input => input[2], text: input => bytesText(input[2]), right: true},
            {
              title: "First read by",
              value: input => input[3],
              element: input => callLink(input[3], callName(input[3])),
            },
            {title: "Argument", value: input => input[4]},
            {title: "Line", value: input => placeOfCall(input[3]), optional: true},
          ],
          rows: row.inputs,
          shown: 30,
        })
      : make("p", {class: "empty"}, "It reads nothing that it did not write."),
  ];
}

// The ranks of a program: a track for each, a line through the arrivals at each collective, and who
// waited for whom.

// Meetings that are drawn at a time at most: those with the longest waits.
const kMostDrawn = 1500;
const kTrack = 46;

function ranksSection(section) {
  const view = Data.json.get("ranks");
  section.append(make("h1", {}, "Ranks"));
  if (view.why_none) {
    section.append(make("p", {class: "empty"}, view.why_none));
    return;
  }
  const {word} = Data.json.get("facts"); // all of its processes
  section.append(
    make(
      "p",
      {class: "lead"},
      `${plural(view.ranks.length, "rank")}, ${plural(view.meetings.length + view.left_out, "collective")} at which ` +
        "they met. " +
        (view.on_device
          ? "Arrivals are by the device's clock."
          : "Arrivals are estimated from the host's times; `record --device-times` measures them."),
    ),
    commandLine(`acltape ranks ${word}`),
    ...rankFindings(view.findings),
  );
  if (view.meetings.length) section.append(...rankTracks(view));
  section.append(...rankTable(view.ranks), ...waitedMatrix(view));
}

function rankFindings(findings) {
  const title = make("h2", {}, "What the ranks do differently");
  if (!findings.length) return [title, make("p", {}, "Nothing was found.")];
  return [
    title,
    dataTable({
      columns: [
        {title: "Rule", value: row => row.rule},
        {title: "Severity", value: row => row.severity},
        {title: "Ranks", value: row => row.ranks},
        {title: "Call", value: row => row.call, element: row => callLink(row.call, row.call), right: true},
        {
          title: "What",
          value: row => row.message,
          element: row => make("div", {class: "why"}, row.message, make("div", {class: "faint"}, row.advice)),
        },
      ],
      rows: findings,
      shown: 50,
    }),
  ];
}

const lastArrival = meeting => d3.max(meeting.arrivals, arrival => arrival[1]);
const firstArrival = meeting => d3.min(meeting.arrivals, arrival => arrival[1]);
const latenessOf = meeting => lastArrival(meeting) - firstArrival(meeting);

function rankTracks(view) {
  const {ranks, meetings} = view;
  const place = make("div", {class: "tracks"});
  const details = make("div", {class: "of-meeting"});
  const note = make("p", {class: "soft", role: "status"});
  // Times count from the first arrival.
  const begin = d3.min(meetings, firstArrival);
  for (const meeting of meetings) for (const arrival of meeting.arrivals) arrival[1] -= begin;
  const from = 0;
  const to = Math.max(1, d3.max(meetings, lastArrival));
  const longest = Math.max(1, d3.max(meetings, latenessOf));
  let shown = [from, to];
  const zoom = (factor, at = (shown[0] + shown[1]) / 2) => {
    const [a, b] = [at - (at - shown[0]) * factor, at + (shown[1] - at) * factor];
    shown = b - a < 1000 ? shown : [Math.max(from, a), Math.min(to, b)];
    draw();
  };
  const move = by => {
    const step = Math.max(from - shown[0], Math.min(to - shown[1], by));
    shown = [shown[0] + step, shown[1] + step];
    draw();
  };
  const draw = () => {
    const width = Math.max(400, place.clientWidth || 900);
    const left = 90;
    const x = d3
      .scaleLinear()
      .domain(shown)
      .range([left, width - 12]);
    const y = track => 34 + track * kTrack;
    const visible = meetings.filter(one => lastArrival(one) >= shown[0] && firstArrival(one) <= shown[1]);
    const drawn =
      visible.length <= kMostDrawn
        ? visible
        : [...visible].sort((a, b) => latenessOf(b) - latenessOf(a)).slice(0, kMostDrawn);
    const all = plural(visible.length, "collective");
    note.textContent =
      drawn.length < visible.length
        ? `${countText(drawn.length)} of ${all} are drawn, those with the longest waits.`
        : `${all} from ${timeText(shown[0])} to ${timeText(shown[1])}.`;
    const svg = d3
      .create("svg")
      .attr("width", width)
      .attr("height", y(ranks.length - 1) + 26)
      .attr("role", "img")
      .attr("aria-label", "Arrivals of the ranks at their collectives");
    svg
      .append("g")
      .attr("transform", "translate(0,18)")
      .attr("class", "axis")
      .call(d3.axisTop(x).ticks(6).tickFormat(timeText));
    const track = svg.selectAll("g.track").data(ranks).enter().append("g").attr("class", "track");
    track
      .append("line")
      .attr("x1", left)
      .attr("x2", width - 12)
      .attr("y1", (_, i) => y(i))
      .attr("y2", (_, i) => y(i))
      .style("stroke", Theme.word("line"));
    track
      .append("text")
      .attr("x", 0)
      .attr("y", (_, i) => y(i) + 4)
      .style("fill", Theme.word("ink"))
      .text(rank => rank.name);
    const meeting = svg
      .selectAll("g.meeting")
      .data(drawn)
      .enter()
      .append("g")
      .attr("class", "meeting")
      .style("cursor", "pointer")
      .on("click", one => details.replaceChildren(...meetingDetails(one, ranks)))
      .on("mousemove", one =>
        showTip(
          d3.event,
          one.what,
          `number ${one.number} of ${one.communicator}`,
          latenessOf(one) > 0 ? `${ranks[one.late].name} came last, ${timeText(latenessOf(one))} after the first` : "",
        ),
      )
      .on("mouseleave", hideTip);
    // A rank waits from its arrival to the last one.
    meeting
      .selectAll("rect")
      .data(one => one.arrivals.map(([at, ns]) => ({at, ns, until: lastArrival(one)})))
      .enter()
      .append("rect")
      .attr("x", arrival => x(arrival.ns))
      .attr("y", arrival => y(arrival.at) - 6)
      .attr("width", arrival => Math.max(1.5, x(arrival.until) - x(arrival.ns)))
      .attr("height", 12)
      .attr("rx", 2)
      .style("fill", Theme.colour(1))
      .style("opacity", 0.55);
    meeting
      .append("path")
      .attr("d", one => d3.line()([...one.arrivals].sort((a, b) => a[0] - b[0]).map(([at, ns]) => [x(ns), y(at)])))
      .style("fill", "none")
      .style("stroke", Theme.colour(0))
      .style("stroke-width", 1.5)
      .style("opacity", one => 0.35 + 0.65 * Math.min(1, latenessOf(one) / longest));
    meeting
      .append("circle")
      .attr("cx", one => x(lastArrival(one)))
      .attr("cy", one => y(one.late))
      .attr("r", 3.5)
      .style("fill", Theme.colour(3));
    svg.on("wheel", () => {
      d3.event.preventDefault();
      zoom(d3.event.deltaY > 0 ? 1.25 : 0.8, x.invert(d3.mouse(svg.node())[0]));
    });
    svg.call(d3.drag().on("drag", () => move((-d3.event.dx / (width - 12 - left)) * (shown[1] - shown[0]))));
    place.replaceChildren(svg.node());
  };
  const button = (text, act) => make("button", {type: "button", class: "plain-button", on: {click: act}}, text);
  const part = share => () => move((shown[1] - shown[0]) * share);
  Sections.onShow.ranks = draw;
  Theme.listeners.push(() => {
    if (Sections.current === "ranks") draw();
  });
  new ResizeObserver(() => {
    if (Sections.current === "ranks") draw();
  }).observe(place);
  return [
    make("h2", {}, "Collectives"),
    make(
      "p",
      {class: "soft"},
      "A line goes through the arrivals of the ranks at one collective. A bar is the time that a rank waited for the " +
        "last one, which has the dot. A click names the calls.",
    ),
    make(
      "div",
      {class: "bar-row"},
      button("Zoom in", () => zoom(0.5)),
      button("Zoom out", () => zoom(2)),
      button("Earlier", part(-0.5)),
      button("Later", part(0.5)),
      button("All", () => zoom(Infinity)),
    ),
    place,
    note,
    view.left_out
      ? make("p", {class: "soft"}, `${plural(view.left_out, "later collective")} are not on the page.`)
      : "",
    details,
  ];
}

function meetingDetails(meeting, ranks) {
  const first = firstArrival(meeting);
  const last = lastArrival(meeting);
  return [
    make("h3", {}, `${meeting.what}, number ${meeting.number} of ${meeting.communicator}`),
    dataTable({
      columns: [
        {title: "Rank", value: row => ranks[row[0]].name},
        {title: "Came", value: row => row[1] - first, text: row => timeText(row[1] - first), right: true},
        {title: "Waited", value: row => last - row[1], text: row => timeText(last - row[1]), right: true},
        {title: "Call", value: row => row[2], element: row => callLink(row[2], row[2]), right: true},
        {title: "Line", value: row => placeOfCall(row[2]), whole: true},
      ],
      rows: meeting.arrivals,
      filter: false,
    }),
  ];
}

function rankTable(ranks) {
  const measured = ranks.some(row => row.communication !== null);
  return [
    make("h2", {}, "Each rank"),
    dataTable({
      columns: [
        {title: "Rank", value: row => row.rank, right: true},
        {title: "Process", value: row => row.process, right: true},
        {title: "Collectives", value: row => row.collectives, text: row => countText(row.collectives), right: true},
        {title: "Sent", value: row => row.sent, text: row => bytesText(row.sent), right: true},
        {title: "Received", value: row => row.received, text: row => bytesText(row.received), right: true},
        {title: "Waited", value: row => row.waited, text: row => timeText(row.waited), right: true},
        {title: "Came last", value: row => row.late, text: row => countText(row.late), right: true},
        {
          title: "Others waited for it",
          value: row => row.waited_for,
          text: row => timeText(row.waited_for),
          right: true,
        },
        ...(measured
          ? [
              {
                title: "Communication",
                value: row => row.communication,
                text: row => timeText(row.communication),
                right: true,
              },
              {
                title: "Hidden by other work",
                value: row => row.hidden,
                text: row => `${timeText(row.hidden)}, ${shareText(row.hidden / Math.max(1, row.communication))}`,
                right: true,
              },
            ]
          : []),
      ],
      rows: ranks,
    }),
  ];
}

function waitedMatrix({ranks, waited}) {
  const title = make("h2", {}, "Who waited for whom");
  if (!waited.length) return [title, make("p", {class: "empty"}, "No rank waited for another one.")];
  const cell = Math.max(5, Math.min(44, 640 / ranks.length));
  const left = 90;
  const most = d3.max(waited, row => row[2]);
  const svg = d3
    .create("svg")
    .attr("width", left + cell * ranks.length + 8)
    .attr("height", 26 + cell * ranks.length)
    .attr("role", "img")
    .attr("aria-label", "Who waited for whom");
  // As many names as there is room for.
  const every = Math.ceil(14 / cell);
  const named = ranks.map((rank, index) => ({rank, index})).filter(one => one.index % every === 0);
  const name = (selection, x, y) =>
    selection
      .append("text")
      .attr("x", x)
      .attr("y", y)
      .attr("class", "soft")
      .style("fill", Theme.word("ink"))
      .style("font-size", "11px");
  name(svg.selectAll("text.row").data(named).enter(), 0, one => 22 + cell * (one.index + 0.5) + 4).text(
    one => one.rank.name,
  );
  name(svg.selectAll("text.column").data(named).enter(), one => left + cell * (one.index + 0.5) - 3, 14).text(
    one => one.rank.rank,
  );
  svg
    .selectAll("rect")
    .data(waited)
    .enter()
    .append("rect")
    .attr("x", row => left + cell * row[1])
    .attr("y", row => 22 + cell * row[0])
    .attr("width", Math.max(1, cell - 1))
    .attr("height", Math.max(1, cell - 1))
    .style("fill", Theme.colour(1))
    .style("opacity", row => 0.08 + 0.92 * (row[2] / most))
    .on("mousemove", row =>
      showTip(d3.event, `${ranks[row[0]].name} waited for ${ranks[row[1]].name}`, timeText(row[2])),
    )
    .on("mouseleave", hideTip);
  return [
    title,
    make("p", {class: "soft"}, "Rows wait, columns came last. The longest time in all has the full colour."),
    svg.node(),
    dataTable({
      columns: [
        {title: "Rank", value: row => ranks[row[0]].name},
        {title: "Waited for", value: row => ranks[row[1]].name},
        {title: "Time", value: row => row[2], text: row => timeText(row[2]), right: true, share: row => row[2] / most},
      ],
      rows: waited,
      sort: 2,
      shown: 20,
    }),
  ];
}

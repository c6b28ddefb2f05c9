// Searches of `acltape bisect`: what they found, and the path by which they came there.

// The set of elements of an experiment, "0-14,17", as a list of ranges.
function elementRanges(text) {
  return (text || "")
    .split(",")
    .filter(Boolean)
    .map(part => {
      const [first, last] = part.split("-").map(Number);
      return [first, Number.isNaN(last) || last === undefined ? first : last];
    });
}

function bisectionSection(section) {
  const {witnesses, journal, journal_problem} = Data.json.get("searches");
  const word = traceWord(Data.json.get("facts"));
  section.append(make("h1", {}, "Bisections"));
  if (!witnesses.length && !journal) {
    section.append(
      make(
        "p",
        {class: "empty"},
        journal_problem ||
          "No search is stored; this command finds the calls whose captured execution gives other results:",
      ),
      commandLine(`acltape bisect ${word}`),
    );
    return;
  }
  if (witnesses.length) {
    section.append(make("h2", {}, "What was found"));
    for (const row of witnesses) {
      section.append(
        make(
          "article",
          {class: "finding"},
          make(
            "header",
            {},
            make("span", {class: `tag ${row.verdict}`}, row.verdict),
            make("span", {class: "mono soft"}, row.kind),
            row.call_id ? callLink(row.call_id) : null,
          ),
          make("p", {}, row.message),
          row.command ? commandLine(row.command) : null,
        ),
      );
    }
  }
  section.append(make("h2", {}, "The path of the search"));
  if (!journal) {
    section.append(
      make(
        "p",
        {class: "empty"},
        `The journal of the search is not beside the trace; \`acltape report ${word} --journal FILE\` shows it.`,
      ),
    );
    return;
  }
  const experiments = journal.experiments.map((row, index) => ({...row, index, ranges: elementRanges(row.altered)}));
  const most = 1 + (d3.max(experiments, row => d3.max(row.ranges, range => range[1]) ?? 0) ?? 0);
  section.append(
    make(
      "p",
      {class: "lead"},
      `${plural(journal.lines, "experiment")} in ${timeText(d3.sum(experiments, row => row.seconds || 0) * 1e9)}. ` +
        `Each line is one: the elements that were altered, from ${most === 1 ? "the only one" : `0 to ${most - 1}`}, ` +
        `and whether the result was then right.`,
    ),
  );
  if (journal.lines > experiments.length)
    section.append(make("p", {class: "note"}, `The first ${countText(experiments.length)} are shown.`));
  const place = make("div");
  const draw = () => {
    const width = Math.max(320, place.clientWidth || 900),
      line = 19,
      left = 190,
      right = 130;
    const x = d3
      .scaleLinear()
      .domain([0, most])
      .range([left, width - right]);
    const svg = d3
      .create("svg")
      .attr("width", width)
      .attr("height", experiments.length * line + 34)
      .attr("role", "img")
      .attr("aria-label", "Experiments of the search");
    svg
      .append("g")
      .attr("transform", `translate(0,${experiments.length * line + 6})`)
      .call(d3.axisBottom(x).ticks(Math.min(most, 12)).tickFormat(d3.format("d")));
    const colour = row => Theme.word(row.verdict === "bad" ? "bad" : row.verdict === "good" ? "good" : "warn");
    const rows = svg
      .selectAll("g.experiment")
      .data(experiments)
      .enter()
      .append("g")
      .attr("class", "experiment")
      .attr("transform", row => `translate(0,${row.index * line})`);
    rows
      .append("rect")
      .attr("x", left)
      .attr("width", width - right - left)
      .attr("y", 4)
      .attr("height", line - 7)
      .attr("rx", 3)
      .attr("fill", Theme.word("sunk"));
    rows
      .append("text")
      .attr("x", 0)
      .attr("y", 14)
      .text(row => `${row.index + 1}  ${row.experiment || ""}`.slice(0, 28));
    rows
      .append("text")
      .attr("x", width - right + 10)
      .attr("y", 14)
      .style("fill", colour)
      .text(row => row.verdict || "");
    rows.each(function (row) {
      d3.select(this)
        .selectAll("rect.part")
        .data(row.ranges)
        .enter()
        .append("rect")
        .attr("class", "part")
        .attr("x", range => x(range[0]))
        .attr("width", range => Math.max(2, x(range[1] + 1) - x(range[0]) - 0.5))
        .attr("y", 4)
        .attr("height", line - 7)
        .attr("rx", 2)
        .attr("fill", colour(row))
        .attr("opacity", 0.8);
    });
    rows
      .on("mousemove", row =>
        showTip(
          d3.event,
          `${row.experiment}: ${row.verdict}`,
          `altered ${row.altered || "nothing"}`,
          row.executions ? `${row.bad_executions ?? 0} of ${plural(row.executions, "execution")} bad` : "",
          row.evidence?.op
            ? `call ${row.evidence.call} ${row.evidence.op}: ` +
                `expected ${row.evidence.expected}, got ${row.evidence.actual}`
            : "",
        ),
      )
      .on("mouseleave", hideTip);
    place.replaceChildren(svg.node());
  };
  section.append(place);
  Sections.onShow.bisections = draw;
  Theme.listeners.push(() => {
    if (Sections.current === "bisections") draw();
  });
  new ResizeObserver(() => {
    if (Sections.current === "bisections") draw();
  }).observe(section);
}

// Eager against captured: the times per step of stored runs as distributions, with the median and
// its 95 % bootstrap interval.

// A generator of equal numbers on every page (Steele, Lea, Flood 2014, in the 32-bit form mulberry32).
function randomNumbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// The median and the 2.5 % and 97.5 % quantiles of the medians of 1000 resamples (Efron 1979).
function bootstrapMedian(values) {
  const sorted = Float64Array.from(values).sort();
  const random = randomNumbers(7);
  const n = sorted.length;
  // Long samples are thinned by rank; the interval of their median would not change visibly.
  const base =
    n > 4000 ? Float64Array.from({length: 4000}, (_, index) => sorted[Math.floor((index * n) / 4000)]) : sorted;
  const medians = new Float64Array(1000);
  const drawn = new Float64Array(base.length);
  for (let round = 0; round < medians.length; ++round) {
    for (let index = 0; index < drawn.length; ++index) drawn[index] = base[Math.floor(random() * base.length)];
    medians[round] = d3.quantile(drawn.sort(), 0.5);
  }
  medians.sort();
  const narrow = Math.sqrt(base.length / n);
  const median = d3.quantile(sorted, 0.5);
  const toward = value => median + (value - median) * narrow;
  return {median, low: toward(d3.quantile(medians, 0.025)), high: toward(d3.quantile(medians, 0.975)), n};
}

// One line per distribution: a histogram of its middle 98 %, its median, and the interval of that.
function distributionChart(place, rows, {unit = timeText} = {}) {
  const width = Math.max(320, place.clientWidth || 900),
    line = 74,
    left = 168;
  const all = rows.map(row => ({
    ...row,
    sorted: Float64Array.from(row.values).sort(),
    estimate: (row.estimate ||= bootstrapMedian(row.values)),
  }));
  const low = d3.min(all, row => d3.quantile(row.sorted, 0.01)),
    high = d3.max(all, row => d3.quantile(row.sorted, 0.99));
  const room = (high - low) * 0.06 || Math.max(1, high * 0.05);
  const x = d3
    .scaleLinear()
    .domain([Math.max(0, low - room), high + room])
    .range([left, width - 24]);
  const height = all.length * line + 34;
  const svg = d3
    .create("svg")
    .attr("width", width)
    .attr("height", height)
    .attr("role", "img")
    .attr("aria-label", "Distributions of times");
  svg
    .append("g")
    .attr("transform", `translate(0,${height - 26})`)
    .call(
      d3
        .axisBottom(x)
        .ticks(width / 120)
        .tickFormat(unit),
    );
  all.forEach((row, index) => {
    const top = index * line + 6,
      bottom = top + line - 18;
    const colour = Theme.colour(row.colour ?? index);
    const bins = d3
      .histogram()
      .domain(x.domain())
      .thresholds(x.ticks(Math.max(12, Math.min(80, Math.sqrt(row.values.length) * 4))))(row.sorted);
    const most = d3.max(bins, bin => bin.length) || 1;
    const group = svg.append("g");
    group
      .selectAll("rect")
      .data(bins.filter(bin => bin.length))
      .enter()
      .append("rect")
      .attr("x", bin => x(bin.x0))
      .attr("width", bin => Math.max(1, x(bin.x1) - x(bin.x0) - 0.6))
      .attr("y", bin => bottom - ((line - 26) * bin.length) / most)
      .attr("height", bin => ((line - 26) * bin.length) / most)
      .attr("fill", colour)
      .attr("opacity", 0.55)
      .on("mousemove", bin => showTip(d3.event, `${unit(bin.x0)} – ${unit(bin.x1)}`, plural(bin.length, "sample")))
      .on("mouseleave", hideTip);
    const {median, low: from, high: to} = row.estimate;
    group
      .append("rect")
      .attr("x", x(from))
      .attr("width", Math.max(2, x(to) - x(from)))
      .attr("y", bottom + 3)
      .attr("height", 5)
      .attr("rx", 2)
      .attr("fill", colour);
    group
      .append("line")
      .attr("x1", x(median))
      .attr("x2", x(median))
      .attr("y1", top + 2)
      .attr("y2", bottom + 10)
      .attr("stroke", Theme.word("ink"))
      .attr("stroke-width", 1.4);
    group
      .append("text")
      .attr("class", "strong")
      .attr("x", 0)
      .attr("y", top + 22)
      .text(row.title.length > 25 ? `${row.title.slice(0, 24)}…` : row.title);
    group
      .append("text")
      .attr("x", 0)
      .attr("y", top + 38)
      .text(unit(median));
    group
      .append("text")
      .attr("x", 0)
      .attr("y", top + 53)
      .text(`${plural(row.values.length, "sample")}`);
  });
  place.replaceChildren(svg.node());
}

function measurementsSection(section) {
  const word = traceWord(Data.json.get("facts"));
  const runs = timedRuns();
  section.append(make("h1", {}, "Eager against captured"));
  const {comparisons} = Data.json.get("runs");
  const all = Data.json.get("runs").runs;
  if (!runs.length) {
    section.append(
      make(
        "p",
        {class: "empty"},
        "No timed runs are stored in the trace; this command times eager against captured replay and stores both:",
      ),
      commandLine(`acltape compare ${word}`),
    );
  } else {
    let shown = lastComparison(),
      measure = "host";
    const place = make("div");
    const table = make("div");
    const titleOf = run =>
      run.mode === "captured" ? (run.plan_id ? "captured by the plan" : "captured, one stream") : run.mode;
    const draw = () => {
      const rows = shown
        .map((run, index) => ({
          title: titleOf(run),
          colour: index,
          values: run.times[measure].filter(value => value !== null),
          run,
        }))
        .filter(row => row.values.length);
      if (!rows.length) return place.replaceChildren(make("p", {class: "empty"}, "These runs have no such times."));
      distributionChart(place, rows);
      const base = (rows[0].estimate ||= bootstrapMedian(rows[0].values));
      table.replaceChildren(
        dataTable({
          filter: false,
          columns: [
            {title: "Run", value: row => row.title},
            {title: "Device", value: row => row.run.device},
            {
              title: "Median",
              value: row => row.estimate.median,
              text: row => timeText(row.estimate.median),
              right: true,
            },
            {
              title: "95 % interval",
              value: row => row.estimate.low,
              text: row => `${timeText(row.estimate.low)} – ${timeText(row.estimate.high)}`,
              right: true,
            },
            {
              title: `${rows[0].title} / this`,
              value: row => base.median / row.estimate.median,
              text: row => (base.median / row.estimate.median).toFixed(2),
              right: true,
            },
            {title: "Samples", value: row => row.values.length, text: row => countText(row.values.length), right: true},
          ],
          rows: rows.map(row => ({...row, estimate: row.estimate || bootstrapMedian(row.values)})),
        }),
      );
      return null;
    };
    section.append(
      make(
        "p",
        {class: "lead"},
        "Times per step as acltape compare stored them. The line is the median, " +
          "the bar below it the 95 % bootstrap interval of the median; " +
          "the axis leaves out the extreme 1 % at each end.",
      ),
      make(
        "div",
        {class: "bar-row"},
        choice(
          [
            ["host", "Host time"],
            ["device", "Device time"],
          ],
          measure,
          value => {
            measure = value;
            draw();
          },
        ),
        runs.length > shown.length
          ? choice(
              [
                ["last", "Last comparison"],
                ["all", `All ${runs.length} runs`],
              ],
              "last",
              value => {
                shown = value === "all" ? runs : lastComparison();
                draw();
              },
            )
          : null,
      ),
      place,
      table,
    );
    Sections.onShow.measurements = draw;
    Theme.listeners.push(() => {
      if (Sections.current === "measurements") draw();
    });
    new ResizeObserver(() => {
      if (Sections.current === "measurements") draw();
    }).observe(section);
  }
  section.append(make("h2", {}, "Results of replays"));
  if (!comparisons.length) {
    section.append(
      make(
        "p",
        {class: "empty"},
        "No replay stored a result that differs from the recording; this command compares every result:",
      ),
      commandLine(`acltape replay ${word} --mode captured`),
    );
  } else {
    section.append(
      dataTable({
        columns: [
          {title: "Run", value: row => row.run_id, right: true},
          {title: "Mode", value: row => all.find(run => run.run_id === row.run_id)?.mode ?? ""},
          {
            title: "Verdict",
            value: row => row.verdict,
            element: row => make("span", {class: `tag ${row.verdict}`}, row.verdict),
          },
          {title: "Results", value: row => row.results, text: row => countText(row.results), right: true},
        ],
        rows: comparisons,
      }),
    );
  }
}

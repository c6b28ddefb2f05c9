// Living bytes over time, by role; the buffers of the peak; and the pools of captured graphs.

function memorySection(section) {
  const memory = Data.json.get("memory"),
    plan = Data.json.get("plan");
  section.append(make("h1", {}, "Memory"));
  if (!memory.points) {
    section.append(
      make(
        "p",
        {class: "empty"},
        "The trace says of no buffer when it was allocated; `acltape record` of a PyTorch program does.",
      ),
    );
  } else {
    const untimed = memory.untimed
      ? ` ${plural(memory.untimed, "buffer")} (${bytesText(memory.untimed_bytes)}) ` +
        `with no known time of allocation ${memory.untimed === 1 ? "is" : "are"} left out.`
      : "";
    section.append(
      make(
        "p",
        {class: "lead"},
        `At most ${bytesText(memory.peak_bytes)} were alive at once, ` +
          `${timeText(memory.peak_ns - Calls.origin)} after the first call; ` +
          `${bytesText(memory.end_bytes)} at the end.${untimed}`,
      ),
    );
    const place = make("div");
    const legend = make("div", {class: "legend"});
    section.append(
      legend,
      place,
      make("p", {class: "faint"}, "Drag over the curve to zoom in, double-click to see all of it again."),
    );
    memoryChart(place, legend, memory, section);
    section.append(
      make("h2", {}, `Largest of the ${plural(memory.at_peak, "buffer")} alive at the peak`),
      dataTable({
        columns: [
          {title: "Buffer", value: row => row[0], right: true},
          {
            title: "Bytes",
            value: row => row[1],
            text: row => bytesText(row[1]),
            right: true,
            share: row => row[1] / memory.largest[0][1],
          },
          {title: "Role", value: row => memory.roles[row[2]]},
          {
            title: "Allocated in",
            value: row => row[3],
            element: row => (row[3] ? callLink(row[3], callName(row[3])) : "outside any call"),
          },
          {
            title: "Freed in",
            value: row => row[4],
            element: row => (row[4] ? callLink(row[4], callName(row[4])) : row[6] ? "outside any call" : "never"),
          },
          {
            title: "Lived",
            value: row => (row[6] ? row[6] - row[5] : Infinity),
            text: row => (row[6] ? timeText(row[6] - row[5]) : "to the end"),
            right: true,
          },
        ],
        rows: memory.largest,
        sort: 1,
      }),
    );
  }
  section.append(make("h2", {}, "Pools of captured graphs"));
  if (!plan.pools) {
    section.append(
      make(
        "p",
        {class: "empty"},
        plan.why_none || "The plan captures nothing, so there are no pools; `acltape plan` says why.",
      ),
    );
    return;
  }
  const {graphs} = plan.pools;
  section.append(
    make(
      "p",
      {},
      `Each graph in a pool of its own: ${bytesText(plan.pools.separate_bytes)}. ` +
        `One pool for all graphs: ${bytesText(plan.pools.shared_bytes)}. ` +
        `Inputs and parameters lie outside of the pools.`,
    ),
  );
  const place = make("div");
  const draw = graph => poolChart(place, graph);
  if (graphs.length > 1) {
    const select = make(
      "select",
      {class: "filter", "aria-label": "Graph", on: {change: event => draw(graphs[event.target.value])}},
      graphs.map((graph, index) =>
        make(
          "option",
          {value: index},
          `Region ${graph.region}: ${plural(graph.calls, "call")}, ${bytesText(graph.pool_bytes)}`,
        ),
      ),
    );
    section.append(select);
  }
  section.append(place);
  let shown = graphs[0];
  const redraw = () => {
    if (Sections.current === "memory") draw(shown);
  };
  section.addEventListener("change", event => {
    if (event.target.tagName === "SELECT") shown = graphs[event.target.value];
  });
  Theme.listeners.push(redraw);
  new ResizeObserver(redraw).observe(section);
  draw(shown);
}

function callName(id) {
  const i = Calls.indexOf(id);
  return i < 0 ? `call ${id}` : `${id} ${Calls.name(i)}`;
}

const kMargin = {top: 10, right: 14, bottom: 26, left: 74};

function memoryChart(place, legend, memory, section) {
  const height = 300;
  let domain = null;
  const colourOf = index => (memory.roles[index].startsWith("no ") ? Theme.word("composite") : Theme.colour(index));
  // Roles whose bytes change least lie at the bottom.
  const order = d3
    .range(memory.roles.length)
    .sort(
      (a, b) => d3.deviation(memory.points, point => point[1][a]) - d3.deviation(memory.points, point => point[1][b]),
    );
  const rows = memory.points.map(([time, bytes]) => ({time: time - Calls.origin, bytes}));
  const draw = () => {
    const width = Math.max(320, place.clientWidth || 900);
    const full = d3.extent(rows, row => row.time);
    const x = d3
      .scaleLinear()
      .domain(domain || full)
      .range([kMargin.left, width - kMargin.right]);
    const visible = rows.filter(
      (row, index) =>
        (rows[index + 1]?.time ?? row.time) >= x.domain()[0] && (rows[index - 1]?.time ?? row.time) <= x.domain()[1],
    );
    const y = d3
      .scaleLinear()
      .domain([0, d3.max(visible, row => d3.sum(row.bytes)) || 1])
      .nice()
      .range([height - kMargin.bottom, kMargin.top]);
    const stack = d3
      .stack()
      .keys(order)
      .value((row, key) => row.bytes[key])(visible);
    const svg = d3
      .create("svg")
      .attr("width", width)
      .attr("height", height)
      .attr("role", "img")
      .attr("aria-label", "Living bytes over time");
    svg
      .append("clipPath")
      .attr("id", "memory-clip")
      .append("rect")
      .attr("x", kMargin.left)
      .attr("y", 0)
      .attr("width", width - kMargin.left - kMargin.right)
      .attr("height", height);
    const area = d3
      .area()
      .curve(d3.curveStepAfter)
      .x(point => x(point.data.time))
      .y0(point => y(point[0]))
      .y1(point => y(point[1]));
    svg
      .append("g")
      .attr("clip-path", "url(#memory-clip)")
      .selectAll("path")
      .data(stack)
      .enter()
      .append("path")
      .attr("fill", layer => colourOf(layer.key))
      .attr("opacity", 0.88)
      .attr("d", area);
    const unit = x.domain()[1] - x.domain()[0];
    svg
      .append("g")
      .attr("transform", `translate(0,${height - kMargin.bottom})`)
      .call(
        d3
          .axisBottom(x)
          .ticks(width / 120)
          .tickFormat(time => axisTime(time, unit / 10)),
      );
    svg
      .append("g")
      .attr("transform", `translate(${kMargin.left},0)`)
      .call(d3.axisLeft(y).ticks(5).tickFormat(bytesText));
    const brush = d3
      .brushX()
      .extent([
        [kMargin.left, kMargin.top],
        [width - kMargin.right, height - kMargin.bottom],
      ])
      .on("end", () => {
        if (!d3.event.sourceEvent || !d3.event.selection) return;
        domain = d3.event.selection.map(x.invert);
        draw();
      });
    svg
      .append("g")
      .call(brush)
      .on("dblclick", () => {
        domain = null;
        draw();
      })
      .on("mousemove.tip", function () {
        const row = rows[Math.max(0, d3.bisector(one => one.time).right(rows, x.invert(d3.mouse(this)[0])) - 1)];
        showTip(
          d3.event,
          `${bytesText(d3.sum(row.bytes))} at ${timeText(row.time)}`,
          ...order
            .filter(index => row.bytes[index] > 0)
            .reverse()
            .slice(0, 8)
            .map(index => `${memory.roles[index]}: ${bytesText(row.bytes[index])}`),
        );
      })
      .on("mouseleave.tip", hideTip);
    place.replaceChildren(svg.node());
    legend.replaceChildren(
      ...[...order].reverse().map(index => {
        const dot = make("i");
        dot.style.background = colourOf(index);
        return make("span", {}, dot, memory.roles[index]);
      }),
    );
  };
  Theme.listeners.push(() => {
    if (Sections.current === "memory") draw();
  });
  new ResizeObserver(() => {
    if (Sections.current === "memory") draw();
  }).observe(section);
  draw();
}

// Blocks of a pool: from left to right the calls of the graph, upwards the addresses.
function poolChart(place, graph) {
  const height = 260;
  const width = Math.max(320, place.clientWidth || 900);
  const x = d3
    .scaleLinear()
    .domain([0, graph.calls])
    .range([kMargin.left, width - kMargin.right]);
  const y = d3
    .scaleLinear()
    .domain([0, Math.max(1, graph.pool_bytes)])
    .range([height - kMargin.bottom, kMargin.top]);
  const svg = d3
    .create("svg")
    .attr("width", width)
    .attr("height", height)
    .attr("role", "img")
    .attr("aria-label", "Pool of a graph");
  svg
    .selectAll("rect")
    .data(graph.blocks)
    .enter()
    .append("rect")
    .attr("x", block => x(block[2]))
    .attr("width", block => Math.max(1, x(block[3] + 1) - x(block[2]) - 0.5))
    .attr("y", block => y(block[4] + block[1]))
    .attr("height", block => Math.max(0.7, y(block[4]) - y(block[4] + block[1]) - 0.5))
    .attr("rx", 1.5)
    .attr("fill", block => Theme.colour(block[5] ? 1 : 0))
    .attr("opacity", 0.85)
    .on("mousemove", block =>
      showTip(
        d3.event,
        `Buffer ${block[0]}, ${bytesText(block[1])}`,
        `made by ${callName(block[6])}`,
        block[5] ? "used after the graph: its place is kept" : "its place is used again",
      ),
    )
    .on("mouseleave", hideTip)
    .on("click", block => {
      const i = Calls.indexOf(block[6]);
      if (i >= 0) Detail.show(i);
    });
  svg
    .append("g")
    .attr("transform", `translate(0,${height - kMargin.bottom})`)
    .call(
      d3
        .axisBottom(x)
        .ticks(8)
        .tickFormat(index => `call ${index}`),
    );
  svg.append("g").attr("transform", `translate(${kMargin.left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(bytesText));
  const words =
    `${plural(graph.blocks_in_all, "buffer")} in ${bytesText(graph.pool_bytes)}; ` +
    `${bytesText(graph.peak_bytes)} are in use at the fullest moment, ` +
    `and ${bytesText(graph.output_bytes)} outlive the graph.` +
    `${graph.blocks.length < graph.blocks_in_all ? ` The largest ${countText(graph.blocks.length)} are drawn.` : ""}`;
  const swatch = (index, text) => {
    const dot = make("i");
    dot.style.background = Theme.colour(index);
    return make("span", {}, dot, text);
  };
  place.replaceChildren(
    make("p", {class: "soft"}, words),
    make("div", {class: "legend"}, swatch(0, "used inside the graph"), swatch(1, "outlives the graph")),
    svg.node(),
  );
}

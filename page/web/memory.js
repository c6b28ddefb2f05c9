// Living bytes over time, by role; the buffers of the peak; and the pools of captured graphs.

// The name of a place: a device or the host, and its layer where a device has two.
function memoryPlaceName(memory, place) {
  if (place.device === 0) return "Host";
  const layers = memory.places.filter(other => other.device === place.device).length;
  if (layers === 1) return `Device ${place.device - 1}`;
  return `Device ${place.device - 1}: ${place.layer === "block" ? "blocks of the allocator" : "tensors"}`;
}

function memorySection(section) {
  const memory = Data.json.get("memory"),
    plan = Data.json.get("plan");
  section.append(make("h1", {}, "Memory"));
  if (!memory.places.length) {
    section.append(
      make(
        "p",
        {class: "empty"},
        "The trace says of no buffer when it was allocated; `acltape record` of a PyTorch program does.",
      ),
    );
  } else {
    const place = make("div");
    const show = index => place.replaceChildren(...memoryPlace(memory, memory.places[index], section));
    if (memory.places.length > 1)
      section.append(
        choice(
          memory.places.map((one, index) => [index, memoryPlaceName(memory, one)]),
          0,
          show,
        ),
      );
    section.append(place);
    show(0);
  }
  allocatorView(section, memory);
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
  const graphs = plan.pools.graphs.filter(graph => graph.blocks_in_all > 0);
  if (!graphs.length) {
    section.append(
      make("p", {class: "empty"}, "The graphs need no pools: all that they read and write lies outside of them."),
    );
    return;
  }
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

// The curve of one place and its largest buffers, as elements.
function memoryPlace(memory, place, section) {
  const untimed = memory.untimed
    ? ` ${plural(memory.untimed, "buffer")} (${bytesText(memory.untimed_bytes)}) ` +
      `with no known time of allocation ${memory.untimed === 1 ? "is" : "are"} left out.`
    : "";
  const before = place.before
    ? ` ${plural(place.before, "buffer")} (${bytesText(place.before_bytes)}) ` +
      `${place.before === 1 ? "is" : "are"} older than the first call and ` +
      `${place.before === 1 ? "counts" : "count"} from it on.`
    : "";
  const blocks =
    place.layer === "tensor" && memory.places.find(other => other.device === place.device && other.layer === "block");
  const reserved = blocks
    ? ` They lie in blocks of the allocator, ${bytesText(blocks.peak_bytes)} at most` +
      `${blocksAreNear(place, blocks) ? ": the dashed line" : ""}.`
    : "";
  const chart = make("div"),
    legend = make("div", {class: "legend"});
  memoryChart(chart, legend, memory, place, blocks, section);
  return [
    make(
      "p",
      {class: "lead"},
      `At most ${bytesText(place.peak_bytes)} were alive at once, ` +
        `${timeText(place.peak_ns - Calls.origin)} after the first call; ` +
        `${bytesText(place.end_bytes)} at the end.${reserved}${before}${untimed}`,
    ),
    legend,
    chart,
    make(
      "div",
      {class: "bar-row"},
      make("span", {class: "faint"}, "Drag over the curve to zoom in, double-click to see all of it again."),
      Folds.button(),
    ),
    make("h2", {}, `Largest of the ${plural(place.at_peak, "buffer")} alive at the peak`),
    dataTable({
      columns: [
        {title: "Buffer", value: row => row[0], right: true},
        {
          title: "Bytes",
          value: row => row[1],
          text: row => bytesText(row[1]),
          right: true,
          share: row => row[1] / place.largest[0][1],
        },
        {title: "Role", value: row => memory.roles[row[2]], whole: true},
        {
          title: "Allocated in",
          value: row => row[3],
          element: row => (row[3] ? callLink(row[3], callName(row[3])) : "outside any call"),
        },
        {title: "Line", value: row => placeOfCall(row[3]), optional: true},
        {title: "Module", value: row => moduleOfCall(row[3]), optional: true},
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
      rows: place.largest,
      sort: 1,
    }),
  ];
}

// True if blocks can be drawn beside the tensors in them without making these too flat to be read.
const blocksAreNear = (place, blocks) => Boolean(blocks) && blocks.peak_bytes < 4 * place.peak_bytes;

function placeOfCall(id) {
  const i = Calls.indexOf(id);
  return i < 0 ? "" : Calls.placeText(i);
}
function moduleOfCall(id) {
  const i = Calls.indexOf(id);
  return i < 0 ? "" : Calls.moduleOf(i);
}

const kMargin = {top: 10, right: 34, bottom: 26, left: 74};

// The axis of times below a chart, and the parts of it that are folded. `x` takes shown times.
function timeAxis(svg, x, width, height) {
  const {ticks, unit} = Folds.ticks(x.domain(), Math.max(3, width / 130));
  const [left, right] = x.range();
  const folds = Folds.any ? Folds.list : [];
  svg
    .insert("g", "*")
    .attr("class", "folds")
    .selectAll("rect")
    .data(folds.filter(fold => x(Folds.shown(fold.to)) > left && x(Folds.shown(fold.from)) < right))
    .enter()
    .append("rect")
    .attr("x", fold => Math.max(left, x(Folds.shown(fold.from))))
    .attr("width", fold => Math.min(right, x(Folds.shown(fold.to))) - Math.max(left, x(Folds.shown(fold.from))))
    .attr("y", kMargin.top)
    .attr("height", height - kMargin.top - kMargin.bottom)
    .attr("fill", Theme.word("line"))
    .append("title")
    .text(fold => Folds.text(fold).join(": "));
  svg
    .append("g")
    .attr("transform", `translate(0,${height - kMargin.bottom})`)
    .call(
      d3
        .axisBottom(x)
        .tickValues(ticks.map(time => Folds.shown(time)))
        .tickFormat(shown => axisTime(Math.round(Folds.time(shown)), unit)),
    );
}

// The axis of bytes at the left of a chart.
function bytesAxis(svg, y) {
  svg
    .append("g")
    .attr("transform", `translate(${kMargin.left},0)`)
    .call(d3.axisLeft(y).tickValues(byteTicks(y.domain()[1], 6)).tickFormat(bytesText));
}

function memoryChart(place, legend, memory, shown, blocks, section) {
  const height = 300;
  let domain = null; // of shown times
  const colourOf = index => (memory.roles[index].startsWith("no ") ? Theme.word("composite") : Theme.colour(index));
  // Roles whose bytes change least lie at the bottom.
  const order = d3
    .range(memory.roles.length)
    .filter(role => shown.points.some(point => point[1][role] > 0))
    .sort(
      (a, b) => d3.deviation(shown.points, point => point[1][a]) - d3.deviation(shown.points, point => point[1][b]),
    );
  const held = blocksAreNear(shown, blocks)
    ? blocks.points.map(([time, bytes]) => ({time: time - Calls.origin, bytes: d3.sum(bytes)}))
    : [];
  const rows = shown.points.map(([time, bytes]) => ({time: time - Calls.origin, bytes}));
  const draw = () => {
    const width = Math.max(320, place.clientWidth || 900);
    for (const row of [...rows, ...held]) row.place = Folds.shown(row.time);
    const full = d3.extent(rows, row => row.place);
    const x = d3
      .scaleLinear()
      .domain(domain || full)
      .range([kMargin.left, width - kMargin.right]);
    const visible = rows.filter(
      (row, index) =>
        (rows[index + 1]?.place ?? row.place) >= x.domain()[0] &&
        (rows[index - 1]?.place ?? row.place) <= x.domain()[1],
    );
    const y = d3
      .scaleLinear()
      .domain([0, 1.03 * Math.max(d3.max(visible, row => d3.sum(row.bytes)) || 1, d3.max(held, row => row.bytes) || 0)])
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
      .x(point => x(point.data.place))
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
    svg
      .append("path")
      .attr("clip-path", "url(#memory-clip)")
      .attr("fill", "none")
      .attr("stroke", Theme.word("ink"))
      .attr("stroke-dasharray", "5 3")
      .attr(
        "d",
        d3
          .line()
          .curve(d3.curveStepAfter)
          .x(row => x(row.place))
          .y(row => y(row.bytes))(held),
      );
    timeAxis(svg, x, width, height);
    bytesAxis(svg, y);
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
        const row = rows[Math.max(0, d3.bisector(one => one.place).right(rows, x.invert(d3.mouse(this)[0])) - 1)];
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
  const redraw = () => {
    if (Sections.current === "memory" && place.isConnected) draw();
  };
  Folds.listeners.push(() => () => {
    domain = null;
    redraw();
  });
  Theme.listeners.push(redraw);
  new ResizeObserver(redraw).observe(section);
  requestAnimationFrame(draw);
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
        .ticks(Math.min(8, graph.calls))
        .tickFormat(index => `call ${index}`),
    );
  bytesAxis(svg, y);
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

// A block of the allocator with the tensors in it: times from left to right, addresses upwards.
function allocatorView(section, memory) {
  const {blocks, inside, inside_in_all} = memory.allocator;
  if (!blocks.length || !inside.length) return;
  const place = make("div");
  let shown = 0;
  const draw = () => blockChart(place, memory, shown);
  const names = blocks.map(
    ([buffer, bytes, , , call], index) =>
      `Buffer ${buffer}: ${bytesText(bytes)}, ${plural(
        d3.sum(inside, row => row[0] === index),
        "tensor",
      )}` + `${call ? `, call ${call}` : ""}`,
  );
  section.append(
    make("h2", {}, "Blocks of the allocator"),
    make(
      "p",
      {},
      `The framework takes blocks from the device and puts ${plural(inside_in_all, "tensor")} into ` +
        `${plural(blocks.length, "block")}.` +
        `${inside.length < inside_in_all ? ` The largest ${countText(inside.length)} are drawn.` : ""}`,
    ),
    make(
      "select",
      {
        class: "filter",
        "aria-label": "Block",
        on: {
          change: event => {
            event.stopPropagation();
            shown = Number(event.target.value);
            draw();
          },
        },
      },
      names.map((text, index) => make("option", {value: index}, text)),
    ),
    place,
  );
  const redraw = () => {
    if (Sections.current === "memory") draw();
  };
  Folds.listeners.push(() => redraw);
  Theme.listeners.push(redraw);
  new ResizeObserver(redraw).observe(section);
  draw();
}

// The use of a block at a moment: {used, largest, tensors}; `largest` is its largest free part.
function blockUse(block, tensors, time) {
  const alive = tensors.filter(row => row[4] <= time && (row[5] === 0 || row[5] > time)).sort((a, b) => a[2] - b[2]);
  let end = 0,
    used = 0,
    largest = 0;
  for (const [, , offset, bytes] of alive) {
    largest = Math.max(largest, offset - end);
    used += bytes;
    end = Math.max(end, offset + bytes);
  }
  return {used, largest: Math.max(largest, block[1] - end), tensors: alive.length};
}

function blockChart(place, memory, index) {
  const block = memory.allocator.blocks[index];
  const tensors = memory.allocator.inside.filter(row => row[0] === index);
  const height = 280,
    width = Math.max(320, place.clientWidth || 900);
  const last = Calls.origin + Calls.span;
  const from = Math.max(block[2], Calls.origin),
    until = block[3] ? Math.min(block[3], last) : last;
  const x = d3
    .scaleLinear()
    .domain(
      [d3.min(tensors, row => Math.max(from, row[4])) ?? from, until].map(time => Folds.shown(time - Calls.origin)),
    )
    .range([kMargin.left, width - kMargin.right])
    .clamp(true);
  const placeOf = time => x(Folds.shown(time - Calls.origin));
  const top = d3.max(tensors, row => row[2] + row[3]) || block[1];
  const y = d3
    .scaleLinear()
    .domain([0, top])
    .range([height - kMargin.bottom, kMargin.top]);
  const svg = d3
    .create("svg")
    .attr("width", width)
    .attr("height", height)
    .attr("role", "img")
    .attr("aria-label", "Tensors in a block");
  svg
    .selectAll("rect")
    .data(tensors)
    .enter()
    .append("rect")
    .attr("x", row => placeOf(row[4]))
    .attr("width", row => Math.max(0.7, placeOf(row[5] || until) - placeOf(row[4])))
    .attr("y", row => y(row[2] + row[3]))
    .attr("height", row => Math.max(0.7, y(row[2]) - y(row[2] + row[3]) - 0.3))
    .attr("fill", row => (memory.roles[row[7]].startsWith("no ") ? Theme.word("composite") : Theme.colour(row[7])))
    .attr("opacity", 0.88)
    .on("mousemove", row =>
      showTip(
        d3.event,
        `Buffer ${row[1]}, ${bytesText(row[3])} at byte ${countText(row[2])}`,
        `made by ${callName(row[6])}`,
        [memory.roles[row[7]], placeOfCall(row[6]), moduleOfCall(row[6])].filter(Boolean).join(" · "),
      ),
    )
    .on("mouseleave", hideTip)
    .on("click", row => {
      const i = Calls.indexOf(row[6]);
      if (i >= 0) Detail.show(i);
    });
  const [first, end] = x.domain();
  timeAxis(svg, x, width, height);
  bytesAxis(svg, y);
  const words = make("p", {class: "soft", role: "status"});
  const tell = shown => {
    const time = Folds.time(shown);
    const use = blockUse(block, tensors, time + Calls.origin);
    const free = block[1] - use.used;
    words.textContent =
      `At ${timeText(time)}: ${plural(use.tensors, "tensor")} in ${bytesText(use.used)} of ` +
      `${bytesText(block[1])}; the largest free part has ${bytesText(use.largest)}` +
      `${free > 0 ? `, ${shareText(1 - use.largest / free)} of what is free lies in smaller parts` : ""}.`;
  };
  const moment = make("input", {
    type: "range",
    class: "moment",
    min: 0,
    max: 1000,
    value: 500,
    "aria-label": "Moment",
    on: {input: event => tell(first + ((end - first) * Number(event.target.value)) / 1000)},
  });
  tell(first + (end - first) / 2);
  place.replaceChildren(svg.node(), moment, words);
}

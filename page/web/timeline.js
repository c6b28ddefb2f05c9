// The timeline: steps, ranges and nested calls of each thread, launches by stream, and tasks of the
// device where the trace has them. d3.zoom turns wheel, drag, touch and keys into one transform.

const kLaneHeight = 19,
  kGap = 2,
  kAxisHeight = 46,
  kMapHeight = 44,
  kTrackGap = 14;

const Timeline = {
  made: false,

  // Groups of rows: {title, lines: [{row, height, kind}]}.
  build() {
    const facts = Data.json.get("facts");
    const threads = new Map(facts.threads.map(thread => [thread.thread_id, thread]));
    const callStyle = {
      searchable: true,
      colour: i =>
        Calls.isLeaf(i) ? Calls.colour(i) : Theme.word(Calls.phase(i) === "backward" ? "backward" : "composite"),
      alpha: () => 1,
      ink: i => (Calls.isLeaf(i) ? (Theme.dark ? "#101214" : "#ffffff") : Theme.word("ink")),
      label: i => Calls.name(i).replace(/^aten::/, ""),
    };
    const lanes = new Map(); // thread -> depth -> indices
    const byStream = new Map();
    for (let i = 0; i < Calls.count; ++i) {
      let depths = lanes.get(Calls.thread[i]);
      if (!depths) lanes.set(Calls.thread[i], (depths = []));
      (depths[Calls.depth[i]] ??= []).push(i);
      if (Calls.stream[i] > 0) {
        if (!byStream.has(Calls.stream[i])) byStream.set(Calls.stream[i], []);
        byStream.get(Calls.stream[i]).push(i);
      }
    }
    const ranges = this.rangeLanes();
    this.groups = [];
    this.encloses = Calls.bits.some(bits => !(bits & 4));
    const process = new Map(facts.processes.map(row => [row.process_id, row]));
    for (const id of new Set([...lanes.keys(), ...ranges.keys()])) {
      const thread = threads.get(id) || {};
      const owner = process.get(thread.process_id) || {};
      const lines = [];
      for (const items of ranges.get(id) || []) {
        lines.push({
          kind: "range",
          row: new SpanRow(
            Int32Array.from(items),
            Data.columns.get("ranges.begin"),
            Data.columns.get("ranges.duration"),
            this.rangeStyle(),
          ),
        });
      }
      for (const items of lanes.get(id) || []) {
        if (!items) continue;
        items.sort((a, b) => Calls.begin[a] - Calls.begin[b]);
        lines.push({kind: "call", row: new SpanRow(Int32Array.from(items), Calls.begin, Calls.duration, callStyle)});
      }
      const name = thread.name || owner.name || "";
      this.groups.push({
        title: `Thread ${thread.tid ?? id}${name ? ` · ${name}` : ""}`,
        note: facts.processes.length > 1 ? `process ${owner.pid ?? thread.process_id}` : "",
        lines,
        weight: (lanes.get(id) || []).reduce((sum, items) => sum + (items ? items.length : 0), 0),
      });
    }
    this.groups.sort((a, b) => b.weight - a.weight);
    for (const [stream, items] of [...byStream].sort((a, b) => a[0] - b[0])) {
      items.sort((a, b) => Calls.begin[a] - Calls.begin[b]);
      const about = facts.streams.find(row => row.id === stream);
      this.groups.push({
        title: `Stream ${stream}${about?.default ? " · default" : ""}`,
        note: "when the host put work on it",
        lines: [{kind: "call", row: new SpanRow(Int32Array.from(items), Calls.begin, Calls.duration, callStyle)}],
      });
    }
    this.addDevice();
    let y = kAxisHeight;
    for (const group of this.groups) {
      y += kTrackGap + 18;
      group.top = y - 18;
      for (const line of group.lines) {
        line.y = y;
        line.height = line.kind === "range" ? kLaneHeight - 4 : kLaneHeight;
        y += line.height + kGap;
      }
    }
    this.height = y + 30;
    this.lines = this.groups.flatMap(group => group.lines);
  },

  rangeStyle() {
    return {
      searchable: false,
      colour: () => Theme.word("range"),
      alpha: () => 1,
      ink: () => Theme.word("ink"),
      label: r => Calls.scopes.get(Data.columns.get("ranges.scope")[r])?.name ?? "",
    };
  },

  // Indices of ranges by thread and depth.
  rangeLanes() {
    const thread = Data.columns.get("ranges.thread");
    const begin = Data.columns.get("ranges.begin");
    const duration = Data.columns.get("ranges.duration");
    const lanes = new Map();
    const open = new Map();
    for (let r = 0; r < thread.length; ++r) {
      if (!lanes.has(thread[r])) {
        lanes.set(thread[r], []);
        open.set(thread[r], []);
      }
      const stack = open.get(thread[r]);
      while (stack.length && stack[stack.length - 1] <= begin[r]) stack.pop();
      (lanes.get(thread[r])[stack.length] ??= []).push(r);
      stack.push(begin[r] + duration[r]);
    }
    return lanes;
  },

  addDevice() {
    const stream = Data.columns.get("device.stream");
    if (!stream) return;
    const call = Data.columns.get("device.call");
    const by = new Map();
    for (let k = 0; k < stream.length; ++k) {
      if (!by.has(stream[k])) by.set(stream[k], []);
      by.get(stream[k]).push(k);
    }
    const indexOf = k => Calls.indexOf(call[k]);
    for (const [id, items] of [...by].sort((a, b) => a[0] - b[0])) {
      this.groups.push({
        title: `Device, stream ${id}`,
        note: "as the device executed it",
        lines: [
          {
            kind: "device",
            row: new SpanRow(
              Int32Array.from(items),
              Data.columns.get("device.begin"),
              Data.columns.get("device.duration"),
              {
                searchable: false,
                alpha: () => 1,
                ink: () => (Theme.dark ? "#101214" : "#ffffff"),
                colour: k => (indexOf(k) < 0 ? Theme.colour(99) : Calls.colour(indexOf(k))),
                label: k => (indexOf(k) < 0 ? "task" : Calls.name(indexOf(k))),
              },
            ),
          },
        ],
      });
    }
  },

  make(section) {
    this.build();
    const legend = make("div", {class: "legend"});
    const position = make("span", {class: "soft"});
    section.append(
      make(
        "div",
        {class: "toolbar"},
        legend,
        make("span", {class: "space"}),
        position,
        make("button", {type: "button", class: "plain-button", on: {click: () => this.fit()}}, "Whole trace"),
      ),
    );
    this.position = position;
    this.canvas = make("canvas", {id: "timeline-canvas", "aria-label": "Timeline of calls", tabIndex: 0});
    this.spacer = make("div");
    this.scroll = make("div", {id: "timeline-scroll"}, this.canvas, this.spacer);
    this.view = make("div", {id: "timeline-view"}, this.scroll);
    section.append(this.view);
    this.legend = legend;
    this.made = true;
    this.transform = d3.zoomIdentity;
    this.zoom = d3
      .zoom()
      .scaleExtent([1, Math.max(2, Calls.span / 20)])
      .filter(() => !d3.event.shiftKey && !d3.event.button)
      .wheelDelta(() => -d3.event.deltaY * (d3.event.deltaMode === 1 ? 0.05 : d3.event.deltaMode ? 1 : 0.0022))
      .on("zoom", () => {
        this.transform = d3.event.transform;
        this.dirty();
      });
    const target = d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    // A wheel that turns sideways moves along the time.
    this.canvas.addEventListener(
      "wheel",
      event => {
        if (!event.shiftKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          event.preventDefault();
          event.stopImmediatePropagation();
          this.pan(event.deltaX);
        }
      },
      {capture: true, passive: false},
    );
    target.on("click", () => this.click(d3.event));
    this.canvas.addEventListener("dblclick", event => {
      const hit = this.hit(event);
      if (hit && hit.call >= 0) this.zoomTo(Calls.begin[hit.call], Calls.end(hit.call));
    });
    this.canvas.addEventListener("mousemove", event => this.hover(event));
    this.canvas.addEventListener("mouseleave", hideTip);
    this.scroll.addEventListener("scroll", () => this.dirty());
    new ResizeObserver(() => this.resize()).observe(this.view);
    Search.listeners.push(() => this.setMask());
    Theme.listeners.push(() => {
      this.drawLegend();
      this.dirty();
    });
    this.drawLegend();
    this.setMask();
  },

  drawLegend() {
    const shown = Calls.operatorOrder.slice(0, 8);
    const swatch = (colour, text) => {
      const dot = make("i");
      dot.style.background = colour;
      return make("span", {title: text}, dot, text);
    };
    this.legend.replaceChildren(
      ...shown.map(op => swatch(Theme.colour(Calls.rank[op]), Calls.ops[op][0].replace(/^aten::/, ""))),
      ...(this.encloses
        ? [swatch(Theme.word("composite"), "encloses others"), swatch(Theme.word("backward"), "backward node")]
        : []),
      ...(Data.columns.get("ranges.thread").length ? [swatch(Theme.word("range"), "range or module")] : []),
    );
  },

  setMask() {
    for (const line of this.lines) line.row.setMask(Search.mask);
    this.dirty();
  },

  resize() {
    const box = this.view.getBoundingClientRect();
    if (box.width < 10) return;
    const width = this.scroll.clientWidth;
    const ratio = devicePixelRatio || 1;
    const old = this.width;
    this.width = width;
    this.shownHeight = box.height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${box.height}px`;
    this.spacer.style.height = `${Math.max(0, this.height + kMapHeight - box.height)}px`;
    this.zoom
      .extent([
        [0, 0],
        [width, box.height],
      ])
      .translateExtent([
        [0, -Infinity],
        [width, Infinity],
      ]);
    if (old && old !== width) {
      const {k, x} = this.transform;
      d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity.translate((x * width) / old, 0).scale(k));
    }
    this.map = null;
    if (this.wanted) {
      const wanted = this.wanted;
      this.wanted = null;
      this.zoomTo(...wanted);
    }
    this.draw();
  },

  dirty() {
    if (this.pending || !this.made) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  },

  scale() {
    const base = d3.scaleLinear().domain([0, Calls.span]).range([0, this.width]);
    return this.transform.rescaleX(base);
  },

  fit() {
    d3.select(this.canvas).transition().duration(180).call(this.zoom.transform, d3.zoomIdentity);
  },
  zoomBy(factor) {
    d3.select(this.canvas).call(this.zoom.scaleBy, factor, [this.pointer ?? this.width / 2, 0]);
  },
  pan(pixels) {
    d3.select(this.canvas).call(this.zoom.translateBy, -pixels / this.transform.k, 0);
  },

  // Shows [begin, end] with some room around it.
  zoomTo(begin, end) {
    if (!this.width) {
      this.wanted = [begin, end];
      return;
    }
    const room = Math.max((end - begin) * 2.2, 60);
    const k = Math.min(Math.max(Calls.span / room, 1), this.zoom.scaleExtent()[1]);
    const middle = ((begin + end) / 2 / Calls.span) * this.width;
    d3.select(this.canvas).call(
      this.zoom.transform,
      d3.zoomIdentity.translate(this.width / 2 - middle * k, 0).scale(k),
    );
  },

  // Scrolls until the line of a call is visible.
  reveal(call) {
    const line = this.lines.find(candidate => candidate.kind === "call" && candidate.row.items.includes(call));
    if (!line || !this.width) return;
    const y = line.y + kMapHeight;
    if (y < this.scroll.scrollTop + kAxisHeight + kMapHeight || y > this.scroll.scrollTop + this.shownHeight - 40) {
      this.scroll.scrollTop = Math.max(0, y - this.shownHeight / 2);
    }
  },

  draw() {
    if (!this.width) return;
    const canvas = this.canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
    canvas.clearRect(0, 0, this.width, this.shownHeight);
    canvas.font = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
    canvas.textBaseline = "middle";
    const x = this.scale();
    const linear = this.fast(x);
    const view = x.domain();
    const top = kMapHeight - this.scroll.scrollTop;
    this.paint = {
      ink: Theme.word("ink"),
      soft: Theme.word("soft"),
      line: Theme.word("line"),
      paper: Theme.word("paper"),
      ground: Theme.word("ground"),
      accent: Theme.word("accent"),
      sunk: Theme.word("sunk"),
    };
    this.drawSteps(canvas, linear, view, this.shownHeight);
    for (const group of this.groups) {
      const y = group.top + top;
      const last = group.lines[group.lines.length - 1];
      if (!last || last.y + last.height + top < kMapHeight + kAxisHeight || y > this.shownHeight) continue;
      for (const line of group.lines) {
        const lineTop = line.y + top;
        if (lineTop + line.height < kMapHeight + kAxisHeight - 20 || lineTop > this.shownHeight) continue;
        line.row.draw(canvas, linear, view, lineTop, line.height, Search.mask !== null && line.kind === "call");
      }
      canvas.fillStyle = this.paint.soft;
      canvas.font = "12px system-ui, sans-serif";
      canvas.fillText(group.title + (group.note ? `  ·  ${group.note}` : ""), 12, y + 8);
      canvas.font = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
    }
    this.drawChosen(canvas, linear, top);
    this.drawAxis(canvas, x, linear, view);
    this.drawMap(canvas, view);
    this.position.textContent = `${timeText(view[0])} – ${timeText(view[1])}  (${timeText(view[1] - view[0])})`;
  },

  // The scale as plain arithmetic: d3's own call would take most of the time of a frame.
  fast(x) {
    const [from, to] = x.domain();
    const factor = this.width / (to - from);
    return time => (time - from) * factor;
  },

  drawSteps(canvas, x, view, height) {
    const bounds = Calls.stepBounds;
    const first = Math.max(0, d3.bisector(bound => bound.begin).left(bounds, view[0]) - 1);
    let lastLabel = -1e9,
      drawn = -1e9;
    for (let index = first; index < bounds.length && bounds[index].begin < view[1]; ++index) {
      const left = x(bounds[index].begin),
        right = x(bounds[index].end);
      if (right < drawn + 3) continue;
      drawn = right;
      if (right - left > 3 && index % 2 === 0) {
        canvas.fillStyle = this.paint.sunk;
        canvas.globalAlpha = 0.75;
        canvas.fillRect(left, kMapHeight + 24, right - left, height);
        canvas.globalAlpha = 1;
      }
      bounds[index].label = left > lastLabel + 62 || (left < 0 && right > 62);
      if (bounds[index].label) lastLabel = Math.max(left, 0);
    }
  },

  drawAxis(canvas, x, linear, view) {
    canvas.fillStyle = this.paint.ground;
    canvas.fillRect(0, kMapHeight, this.width, kAxisHeight);
    canvas.font = "11.5px system-ui, sans-serif";
    canvas.fillStyle = this.paint.soft;
    canvas.strokeStyle = this.paint.line;
    const ticks = x.ticks(Math.max(3, this.width / 130));
    const unit = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
    canvas.beginPath();
    for (const tick of ticks) {
      const tickX = Math.round(linear(tick)) + 0.5;
      canvas.moveTo(tickX, kMapHeight + 17);
      canvas.lineTo(tickX, kMapHeight + 23);
      canvas.fillText(axisTime(tick, unit), tickX + 4, kMapHeight + 12);
    }
    canvas.stroke();
    const bounds = Calls.stepBounds;
    const first = Math.max(0, d3.bisector(bound => bound.begin).left(bounds, view[0]) - 1);
    let free = -1e9;
    for (let index = first; index < bounds.length && bounds[index].begin < view[1]; ++index) {
      const left = linear(bounds[index].begin),
        right = linear(bounds[index].end);
      if (right - left < 1.5 && left < free) continue;
      canvas.fillStyle = this.paint.accent;
      canvas.globalAlpha = index % 2 ? 0.35 : 0.55;
      canvas.fillRect(left, kMapHeight + 26, Math.max(1, right - left - 1), 3);
      canvas.globalAlpha = 1;
      const text =
        right - left > 150
          ? `step ${bounds[index].step} · ${timeText(bounds[index].end - bounds[index].begin)}`
          : right - left > 60
            ? `step ${bounds[index].step}`
            : `${bounds[index].step}`;
      const shown = Math.max(left, 2);
      if (shown >= free && right - shown > 8) {
        canvas.fillStyle = this.paint.soft;
        canvas.fillText(text, shown + 2, kMapHeight + 38);
        free = shown + canvas.measureText(text).width + 14;
      }
    }
  },

  // The whole trace in a strip, with what is visible below.
  drawMap(canvas, view) {
    if (!this.map || this.map.dark !== Theme.dark) this.map = this.makeMap();
    canvas.fillStyle = this.paint.paper;
    canvas.fillRect(0, 0, this.width, kMapHeight);
    canvas.drawImage(this.map.canvas, 0, 0, this.width, kMapHeight);
    const left = (view[0] / Calls.span) * this.width,
      right = (view[1] / Calls.span) * this.width;
    canvas.fillStyle = this.paint.ground;
    canvas.globalAlpha = 0.72;
    canvas.fillRect(0, 0, left, kMapHeight);
    canvas.fillRect(right, 0, this.width - right, kMapHeight);
    canvas.globalAlpha = 1;
    canvas.strokeStyle = this.paint.accent;
    canvas.strokeRect(Math.max(0.5, left), 0.5, Math.max(2, right - left - 1), kMapHeight - 1);
  },

  makeMap() {
    const canvas = document.createElement("canvas");
    const ratio = devicePixelRatio || 1;
    canvas.width = this.width * ratio;
    canvas.height = kMapHeight * ratio;
    const paint = canvas.getContext("2d");
    paint.scale(ratio, ratio);
    const lines = this.lines.filter(line => line.kind === "call");
    const height = Math.max(1, Math.min(9, (kMapHeight - 8) / Math.max(1, lines.length)));
    const x = time => (time / Calls.span) * this.width;
    lines.slice(0, 40).forEach((line, index) => {
      const found = line.row.found;
      line.row.found = null;
      line.row.draw(paint, x, [0, Calls.span], 4 + index * height, Math.max(1, height - 0.6), false, false);
      line.row.found = found;
    });
    return {canvas, dark: Theme.dark};
  },

  drawChosen(canvas, x, top) {
    const call = Detail.call;
    if (call < 0) return;
    for (const line of this.lines) {
      if (line.kind !== "call") continue;
      const first = line.row.firstAt(Calls.begin[call]);
      let here = false;
      for (let k = first; k < line.row.items.length && Calls.begin[line.row.items[k]] === Calls.begin[call]; ++k)
        here ||= line.row.items[k] === call;
      if (!here) continue;
      const left = x(Calls.begin[call]);
      canvas.strokeStyle = this.paint.ink;
      canvas.lineWidth = 2;
      canvas.strokeRect(left - 1, line.y + top - 1, Math.max(3, x(Calls.end(call)) - left + 1), line.height + 2);
      canvas.lineWidth = 1;
    }
  },

  // Returns the object under the pointer.
  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const left = event.clientX - box.left,
      high = event.clientY - box.top;
    if (high < kMapHeight) return {map: (left / this.width) * Calls.span};
    const y = high - kMapHeight + this.scroll.scrollTop;
    if (high < kMapHeight + kAxisHeight) return null;
    const line = this.lines.find(candidate => y >= candidate.y && y < candidate.y + candidate.height + kGap);
    if (!line) return null;
    const x = this.scale();
    const item = line.row.pick(x.invert(left), 3 * (x.invert(1) - x.invert(0)));
    if (item < 0) return null;
    return {
      line,
      item,
      call:
        line.kind === "call"
          ? item
          : line.kind === "device"
            ? Calls.indexOf(Data.columns.get("device.call")[item])
            : -1,
    };
  },

  click(event) {
    const hit = this.hit(event);
    if (!hit) return;
    if (hit.map !== undefined) {
      const half = Calls.span / this.transform.k / 2;
      const middle = (hit.map / Calls.span) * this.width;
      const {k} = this.transform;
      d3.select(this.canvas).call(
        this.zoom.transform,
        d3.zoomIdentity.translate(this.width / 2 - middle * k, 0).scale(k),
      );
      return half;
    }
    if (hit.call >= 0) Detail.show(hit.call);
    else if (hit.line.kind === "range")
      this.zoomTo(hit.line.row.begin[hit.item], hit.line.row.begin[hit.item] + hit.line.row.duration[hit.item]);
    return null;
  },

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    this.pointer = event.clientX - box.left;
    const hit = event.buttons ? null : this.hit(event);
    this.canvas.style.cursor = hit?.line ? "pointer" : "";
    if (!hit?.line) return hideTip();
    if (hit.call >= 0) {
      const i = hit.call;
      const bound = Calls.stepOf(i);
      return showTip(
        event,
        Calls.name(i),
        timeText(Calls.duration[i]) +
          `${Calls.own[i] < Calls.duration[i] ? ` · ${timeText(Calls.own[i])} of its own` : ""}`,
        Calls.shapesText(i).slice(0, 200),
        [`call ${Calls.id[i]}`, bound ? `step ${bound.step}` : "", Calls.moduleOf(i)].filter(Boolean).join(" · "),
      );
    }
    return showTip(event, hit.line.row.style.label(hit.item), timeText(hit.line.row.duration[hit.item]));
  },
};

// A time of an axis whose ticks lie `unit` apart, with as many digits as they need.
function axisTime(time, unit) {
  const most = Math.max(Math.abs(time), unit);
  const [size, word] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : most >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(size / unit) - 1e-9)));
  return `${(time / size).toFixed(digits)} ${word}`;
}

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
    // Work that is no leaf, such as the execution of a graph, is dark enough to be seen where it is short.
    const streamStyle = {
      ...callStyle,
      colour: i => (Calls.isLeaf(i) ? Calls.colour(i) : Theme.colour(99)),
      ink: () => (Theme.dark ? "#101214" : "#ffffff"),
    };
    const lanes = new Map(); // thread -> depth -> indices
    const byStream = new Map();
    let encloses = false,
      serves = false;
    this.hasBackward = false;
    for (let i = 0; i < Calls.count; ++i) {
      if (!Calls.isLeaf(i)) {
        if (Calls.phase(i) === "backward") this.hasBackward = true;
        else if (/^acl/.test(Calls.ops[Calls.op[i]][1])) serves = true;
        else encloses = true;
      }
      let depths = lanes.get(Calls.thread[i]);
      if (!depths) lanes.set(Calls.thread[i], (depths = []));
      (depths[Calls.depth[i]] ??= []).push(i);
      if (Calls.putsWork(i)) {
        if (!byStream.has(Calls.stream[i])) byStream.set(Calls.stream[i], []);
        byStream.get(Calls.stream[i]).push(i);
      }
    }
    const ranges = this.rangeLanes();
    this.groups = [];
    // What calls without a colour of their own do.
    this.others = [encloses ? "encloses others" : "", serves ? "serves the device" : ""].filter(Boolean).join(", or ");
    this.idleStreams = facts.streams.map(row => row.id).filter(id => !byStream.has(id));
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
        rank: [
          facts.process_of_steps && thread.process_id !== facts.process_of_steps ? 1 : 0,
          thread.tid !== undefined && thread.tid === owner.pid ? 0 : 1,
        ],
        weight: (lanes.get(id) || []).reduce((sum, items) => sum + (items ? items.length : 0), 0),
      });
    }
    // The process that has the steps comes first, and in each process the thread that began it.
    this.groups.sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1] || b.weight - a.weight);
    for (const [stream, items] of [...byStream].sort((a, b) => a[0] - b[0])) {
      items.sort((a, b) => Calls.begin[a] - Calls.begin[b]);
      const about = facts.streams.find(row => row.id === stream);
      this.groups.push({
        title: `Stream ${stream}${about?.default ? " · default" : ""}`,
        note: "when the host put work on it",
        lines: [{kind: "call", row: new SpanRow(Int32Array.from(items), Calls.begin, Calls.duration, streamStyle)}],
      });
    }
    this.addDevice();
    this.retime();
    this.layout();
  },

  // Gives all rows their times as they are shown.
  retime() {
    const columns = {
      call: Folds.columns(Calls.begin, Calls.duration),
      range: Folds.columns(Data.columns.get("ranges.begin"), Data.columns.get("ranges.duration")),
    };
    if (Data.columns.get("device.begin"))
      columns.device = Folds.columns(Data.columns.get("device.begin"), Data.columns.get("device.duration"));
    for (const group of this.groups)
      for (const line of group.lines) line.row.setTimes(columns[line.kind].begin, columns[line.kind].duration);
    this.begin = columns.call.begin;
    this.duration = columns.call.duration;
  },

  // Places the rows: pinned ones first, which do not scroll.
  layout() {
    let y = kAxisHeight;
    const place = group => {
      y += kTrackGap + 18;
      group.top = y - 18;
      for (const line of group.lines) {
        line.y = y;
        line.height = line.kind === "range" ? kLaneHeight - 4 : kLaneHeight;
        line.pinned = group.pinned;
        y += line.height + kGap;
      }
    };
    this.shownGroups = this.groups.filter(group => !group.hidden);
    for (const group of this.shownGroups) if (group.pinned) place(group);
    this.pinnedEnd = y > kAxisHeight ? y + 6 : y;
    y = this.pinnedEnd;
    for (const group of this.shownGroups) if (!group.pinned) place(group);
    this.height = y + 30;
    this.lines = this.shownGroups.flatMap(group => group.lines);
    this.map = null;
    if (this.shownHeight) this.spacer.style.height = `${Math.max(0, this.height + kMapHeight - this.shownHeight)}px`;
    this.dirty();
  },

  pin(group) {
    group.pinned = !group.pinned;
    this.layout();
  },
  move(index, by) {
    const to = index + by;
    if (to < 0 || to >= this.groups.length) return;
    [this.groups[index], this.groups[to]] = [this.groups[to], this.groups[index]];
    this.layout();
  },

  // Before folds open or close; what is in the middle stays there.
  beforeFolds() {
    const [from, to] = this.scale().domain();
    const middle = Folds.time((from + to) / 2);
    return () => {
      this.retime();
      this.setMask();
      this.zoom.scaleExtent([1, Math.max(2, Folds.span / 20)]);
      this.map = null;
      this.centre(middle);
      this.dirty();
    };
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
        position,
        Folds.button(),
        make("button", {type: "button", class: "plain-button", on: {click: () => Lanes.show()}}, "Rows and marks"),
        make(
          "button",
          {type: "button", class: "plain-button", on: {click: () => this.selectVisible()}},
          "Sum what is visible",
        ),
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
      .scaleExtent([1, Math.max(2, Folds.span / 20)])
      .filter(() => !d3.event.shiftKey && !d3.event.button && (d3.event.type === "wheel" || !this.onRuler(d3.event)))
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
    this.canvas.addEventListener("mousedown", event => this.startArea(event));
    this.canvas.addEventListener("mousemove", event => this.hover(event));
    this.canvas.addEventListener("mouseleave", hideTip);
    this.scroll.addEventListener("scroll", () => this.dirty());
    new ResizeObserver(() => this.resize()).observe(this.view);
    Search.listeners.push(() => this.setMask());
    Theme.listeners.push(() => {
      this.drawLegend();
      this.dirty();
    });
    Folds.listeners.push(() => this.beforeFolds());
    this.drawLegend();
    this.setMask();
  },

  onRuler(event) {
    const high = event.clientY - this.canvas.getBoundingClientRect().top;
    return high >= kMapHeight && high < kMapHeight + kAxisHeight;
  },

  // A drag on the ruler selects a time on all rows, a drag with shift on the rows that it touches.
  startArea(event) {
    const ruler = this.onRuler(event);
    if (event.button || (!ruler && !event.shiftKey)) return;
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    const x = this.scale();
    const begin = {x: event.clientX - box.left, y: event.clientY - box.top};
    let end = begin;
    const timeAt = left => Folds.time(x.invert(Math.max(0, Math.min(left, this.width))));
    const move = to => {
      end = {x: to.clientX - box.left, y: to.clientY - box.top};
      this.drag = {
        left: Math.min(begin.x, end.x),
        right: Math.max(begin.x, end.x),
        top: ruler ? kMapHeight : Math.min(begin.y, end.y),
        bottom: ruler ? this.shownHeight : Math.max(begin.y, end.y),
      };
      this.dirty();
    };
    const stop = () => {
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", stop);
      const {drag} = this;
      this.drag = null;
      this.dirty();
      if (!drag || drag.right - drag.left < 3) return;
      this.dragged = true;
      const touched = line => {
        const top = this.topOf(line);
        return ruler || (top < drag.bottom && top + line.height > drag.top);
      };
      Area.choose(timeAt(drag.left), timeAt(drag.right), this.lines.filter(touched));
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", stop);
  },
  selectVisible() {
    const [from, to] = this.scale().domain();
    Area.choose(Math.max(0, Folds.time(from)), Math.min(Calls.span, Folds.time(to)), this.lines);
  },

  // Where a line begins on the canvas.
  topOf(line) {
    return line.y + kMapHeight - (line.pinned ? 0 : this.scroll.scrollTop);
  },

  mark() {
    const x = this.scale();
    Marks.add(Folds.time(x.invert(this.pointer ?? this.width / 2)));
  },
  goToMark(by) {
    const [from, to] = this.scale().domain();
    Marks.go(by, Folds.time((from + to) / 2));
  },
  // Shows a time in the middle, at the scale as it is; near the ends of the trace as far as it reaches.
  centre(time) {
    const {k} = this.transform;
    const middle = (Folds.shown(time) / Folds.span) * this.width;
    const left = Math.min(0, Math.max(this.width * (1 - k), this.width / 2 - middle * k));
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity.translate(left, 0).scale(k));
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
      ...(this.others ? [swatch(Theme.word("composite"), this.others)] : []),
      ...(this.hasBackward ? [swatch(Theme.word("backward"), "backward node")] : []),
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
    const base = d3.scaleLinear().domain([0, Folds.span]).range([0, this.width]);
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
  zoomTo(begin, end, around = 1.2) {
    if (!this.width) {
      this.wanted = [begin, end, around];
      return;
    }
    const from = Folds.shown(begin),
      to = Folds.shown(end);
    const room = Math.max((to - from) * (1 + around), 60);
    const k = Math.min(Math.max(Folds.span / room, 1), this.zoom.scaleExtent()[1]);
    const middle = ((from + to) / 2 / Folds.span) * this.width;
    d3.select(this.canvas).call(
      this.zoom.transform,
      d3.zoomIdentity.translate(this.width / 2 - middle * k, 0).scale(k),
    );
  },

  // Scrolls until the line of a call is visible.
  reveal(call) {
    const line = this.lines.find(candidate => candidate.kind === "call" && candidate.row.items.includes(call));
    if (!line || !this.width || line.pinned) return;
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
    this.drawFolds(canvas, linear);
    // What scrolls is painted first, then what is pinned, over it.
    const groups = [...this.shownGroups].sort((a, b) => Boolean(a.pinned) - Boolean(b.pinned));
    let covered = this.pinnedEnd === kAxisHeight;
    for (const group of groups) {
      const top = kMapHeight - (group.pinned ? 0 : this.scroll.scrollTop);
      if (group.pinned && !covered) {
        covered = true;
        canvas.fillStyle = this.paint.paper;
        canvas.fillRect(0, kMapHeight + kAxisHeight, this.width, this.pinnedEnd - kAxisHeight);
      }
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
    this.drawChosen(canvas, linear);
    this.drawAxis(canvas, linear, view);
    this.drawMarks(canvas, linear);
    this.drawMap(canvas, view);
    const [from, to] = view.map(time => Folds.time(time));
    this.position.textContent = `${timeText(from)} – ${timeText(to)}  (${timeText(to - from)})`;
  },

  // The scale as plain arithmetic: d3's own call would take most of the time of a frame.
  fast(x) {
    const [from, to] = x.domain();
    const factor = this.width / (to - from);
    return time => (time - from) * factor;
  },

  // Times that are folded, as a grey part with its length.
  drawFolds(canvas, x) {
    if (!Folds.any) return;
    canvas.font = "11.5px system-ui, sans-serif";
    for (const fold of Folds.list) {
      const left = x(Folds.shown(fold.from)),
        right = x(Folds.shown(fold.to));
      if (right < 0 || left > this.width) continue;
      canvas.fillStyle = this.paint.line;
      canvas.globalAlpha = 0.5;
      canvas.fillRect(left, kMapHeight, right - left, this.shownHeight);
      canvas.globalAlpha = 1;
      fold.left = left;
      fold.right = right;
    }
  },

  // Marks, the selected area, and the one that is being dragged.
  drawMarks(canvas, x) {
    const strip = (left, right, top, bottom) => {
      canvas.fillStyle = this.paint.accent;
      canvas.globalAlpha = 0.13;
      canvas.fillRect(left, top, right - left, bottom - top);
      canvas.globalAlpha = 1;
      canvas.strokeStyle = this.paint.accent;
      canvas.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
    };
    if (this.drag) strip(this.drag.left, this.drag.right, this.drag.top, this.drag.bottom);
    else if (Area.chosen)
      strip(
        x(Folds.shown(Area.chosen.from)),
        x(Folds.shown(Area.chosen.to)),
        kMapHeight + kAxisHeight - 18,
        this.shownHeight,
      );
    canvas.fillStyle = Theme.word("mark");
    for (const time of Marks.times) {
      const left = Math.round(x(Folds.shown(time)));
      canvas.fillRect(left, kMapHeight, 1.5, this.shownHeight);
      canvas.beginPath();
      canvas.moveTo(left - 5, kMapHeight);
      canvas.lineTo(left + 6, kMapHeight);
      canvas.lineTo(left + 0.5, kMapHeight + 8);
      canvas.fill();
    }
  },

  drawSteps(canvas, x, view, height) {
    const bounds = Calls.stepBounds;
    const from = Folds.time(view[0]),
      until = Folds.time(view[1]);
    const first = Math.max(0, d3.bisector(bound => bound.begin).left(bounds, from) - 1);
    let lastLabel = -1e9,
      drawn = -1e9;
    for (let index = first; index < bounds.length && bounds[index].begin < until; ++index) {
      const left = x(Folds.shown(bounds[index].begin)),
        right = x(Folds.shown(bounds[index].end));
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

  drawAxis(canvas, linear, view) {
    canvas.fillStyle = this.paint.ground;
    canvas.fillRect(0, kMapHeight, this.width, kAxisHeight);
    canvas.font = "11.5px system-ui, sans-serif";
    canvas.fillStyle = this.paint.soft;
    canvas.strokeStyle = this.paint.line;
    const {ticks, unit} = Folds.ticks(view, Math.max(3, this.width / 130));
    const from = Folds.time(view[0]),
      until = Folds.time(view[1]);
    canvas.beginPath();
    let taken = -1e9; // where the word of the tick before ends
    for (const tick of ticks) {
      const tickX = Math.round(linear(Folds.shown(tick))) + 0.5;
      canvas.moveTo(tickX, kMapHeight + 17);
      canvas.lineTo(tickX, kMapHeight + 23);
      if (tickX < taken) continue; // a fold brings ticks together
      const word = axisTime(tick, unit);
      canvas.fillText(word, tickX + 4, kMapHeight + 12);
      taken = tickX + canvas.measureText(word).width + 4;
    }
    canvas.stroke();
    if (Folds.any) {
      for (const fold of Folds.list) {
        if (fold.right === undefined || fold.right < 0 || fold.left > this.width) continue;
        const room = fold.right - fold.left;
        if (room > 58) canvas.fillText(room > 130 ? `${fold.what}, folded` : fold.what, fold.left + 3, kMapHeight + 38);
      }
    }
    const bounds = Calls.stepBounds;
    const first = Math.max(0, d3.bisector(bound => bound.begin).left(bounds, from) - 1);
    let free = -1e9;
    for (let index = first; index < bounds.length && bounds[index].begin < until; ++index) {
      const left = linear(Folds.shown(bounds[index].begin)),
        right = linear(Folds.shown(bounds[index].end));
      if (right - left < 1.5 && left < free) continue;
      canvas.fillStyle = this.paint.accent;
      canvas.globalAlpha = index % 2 ? 0.35 : 0.55;
      canvas.fillRect(left, kMapHeight + 26, Math.max(1, right - left - 1), 3);
      canvas.globalAlpha = 1;
      const text =
        right - left > 330 && bounds[index].what
          ? `step ${bounds[index].step} · ${bounds[index].what} · ${timeText(bounds[index].end - bounds[index].begin)}`
          : right - left > 150
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
    const left = (view[0] / Folds.span) * this.width,
      right = (view[1] / Folds.span) * this.width;
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
    const x = time => (time / Folds.span) * this.width;
    lines.slice(0, 40).forEach((line, index) => {
      const found = line.row.found;
      line.row.found = null;
      line.row.draw(paint, x, [0, Folds.span], 4 + index * height, Math.max(1, height - 0.6), false, false);
      line.row.found = found;
    });
    return {canvas, dark: Theme.dark};
  },

  drawChosen(canvas, x) {
    const call = Detail.call;
    if (call < 0) return;
    for (const line of this.lines) {
      if (line.kind !== "call") continue;
      const begin = this.begin[call];
      const first = line.row.firstAt(begin);
      let here = false;
      for (let k = first; k < line.row.items.length && this.begin[line.row.items[k]] === begin; ++k)
        here ||= line.row.items[k] === call;
      if (!here) continue;
      const left = x(begin);
      canvas.strokeStyle = this.paint.ink;
      canvas.lineWidth = 2;
      canvas.strokeRect(
        left - 1,
        this.topOf(line) - 1,
        Math.max(3, x(begin + this.duration[call]) - left + 1),
        line.height + 2,
      );
      canvas.lineWidth = 1;
    }
  },

  // Returns the object under the pointer.
  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const left = event.clientX - box.left,
      high = event.clientY - box.top;
    if (high < kMapHeight) return {map: (left / this.width) * Folds.span};
    if (high < kMapHeight + kAxisHeight) return null;
    const overPinned = high < kMapHeight + this.pinnedEnd;
    const line = this.lines.find(candidate => {
      if (Boolean(candidate.pinned) !== overPinned) return false;
      const top = this.topOf(candidate);
      return high >= top && high < top + candidate.height + kGap;
    });
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
    if (this.dragged) {
      this.dragged = false;
      return null;
    }
    const hit = this.hit(event);
    if (!hit) return null;
    if (hit.map !== undefined) {
      this.centre(Folds.time(hit.map));
      return null;
    }
    if (hit.call >= 0) Detail.show(hit.call);
    else if (hit.line.kind === "range") {
      const begin = Data.columns.get("ranges.begin")[hit.item];
      this.zoomTo(begin, begin + Data.columns.get("ranges.duration")[hit.item]);
    }
    return null;
  },

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    this.pointer = event.clientX - box.left;
    if (this.drag) return hideTip();
    const hit = event.buttons ? null : this.hit(event);
    this.canvas.style.cursor = hit?.line ? "pointer" : "";
    if (!hit?.line) {
      const fold = hit?.map === undefined && !event.buttons && Folds.under(this.scale().invert(this.pointer));
      return fold ? showTip(event, ...Folds.text(fold)) : hideTip();
    }
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
    const kind = hit.line.kind === "range" ? "ranges" : "device";
    return showTip(event, hit.line.row.style.label(hit.item), timeText(Data.columns.get(`${kind}.duration`)[hit.item]));
  },
};

// A time of an axis whose ticks lie `unit` apart, with as many digits as they need.
function axisTime(time, unit) {
  const most = Math.max(Math.abs(time), unit);
  const [size, word] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : most >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(size / unit) - 1e-9)));
  return `${(time / size).toFixed(digits)} ${word}`;
}

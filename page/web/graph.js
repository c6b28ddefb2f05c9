// A step as a graph: calls with the bytes that they hand on, regions, streams and waits. It is drawn
// as a tree of modules that open, or as single calls in layers, by dependencies or by streams, on a
// canvas with d3.zoom.

const kNodeWidth = 148,
  kNodeHeight = 22,
  kColumn = 172,
  kLayer = 40;

const StepGraph = {
  mode: "modules",
  others: false,
  hovered: -1,

  make(section) {
    const plan = Data.json.get("plan");
    this.plan = plan;
    this.nodes = (plan.nodes || []).map(([id, name, region, stream, ns, model], index) => ({
      index,
      id,
      name,
      region,
      stream,
      ns,
      model,
      before: [],
      after: [],
    }));
    if (!this.nodes.length) {
      section.classList.remove("full");
      section.append(
        make("h1", {}, "Step as a graph"),
        make(
          "p",
          {class: "empty"},
          plan.why_none || "The trace holds no leaves; `acltape record` of a program that calls operators fills this.",
        ),
      );
      return;
    }
    this.edges = plan.edges.map(([from, to, kind]) => ({from, to, kind}));
    for (const edge of this.edges) {
      if (edge.kind !== 0) continue;
      this.nodes[edge.from].after.push(edge.to);
      this.nodes[edge.to].before.push(edge.from);
    }
    const captured = plan.regions.filter(region => region.captured);
    const own = captured.filter(region => region.already === region.calls).length;
    const cut =
      plan.nodes_in_all > this.nodes.length
        ? ` The first ${countText(this.nodes.length)} of ${countText(plan.nodes_in_all)} calls are drawn.`
        : "";
    const words = plan.source
      ? `${plan.step >= 0 ? `Step ${plan.step}` : "The trace"}: ${plural(plan.nodes_in_all, "call")} ` +
        `that read or write, ${own ? `${plural(own, "graph")} of the program's own, ` : ""}` +
        `${captured.length - own || "no"} ${own ? "further " : ""}${captured.length - own === 1 ? "graph" : "graphs"}` +
        `${plan.waits.length ? `, ${plural(plan.waits.length, "wait")} between streams` : ""}. ` +
        {stored: `Stored plan ${plan.name}.`, file: `Plan ${plan.name}.`, computed: "Planned for this page."}[
          plan.source
        ]
      : `${plan.step >= 0 ? `Step ${plan.step}` : "The trace"}: ${plural(plan.nodes_in_all, "call")}. ${plan.why_none}`;
    const box = make("input", {
      type: "checkbox",
      on: {
        change: event => {
          this.others = event.target.checked;
          this.draw();
        },
      },
    });
    section.append(
      make(
        "div",
        {class: "toolbar"},
        choice(
          [
            ["modules", "Modules"],
            ["dependencies", "By dependency"],
            ["streams", "By stream"],
          ],
          this.mode,
          mode => {
            this.mode = mode;
            this.place();
            this.fit();
          },
        ),
        make("label", {}, box, " order of reuse too (WAR, WAW)"),
        make("span", {class: "words"}, words + cut),
        make("button", {type: "button", class: "plain-button", on: {click: () => this.fit(true)}}, "Fit"),
      ),
      this.legend(),
    );
    this.canvas = make("canvas", {id: "graph-canvas", "aria-label": "Graph of a step", tabIndex: 0});
    this.box = make("div", {class: "canvasbox"}, this.canvas);
    this.tree = make("div", {class: "treebox"});
    section.append(make("div", {class: "treeview"}, this.tree, this.box));
    ModuleTree.build(this.nodes);
    this.transform = d3.zoomIdentity;
    this.zoom = d3
      .zoom()
      .scaleExtent([0.02, 4])
      .on("zoom", () => {
        this.transform = d3.event.transform;
        this.dirty();
      });
    d3.select(this.canvas)
      .call(this.zoom)
      .on("dblclick.zoom", null)
      .on("click", () => {
        if (this.mode === "modules") {
          this.clickModule(this.hitModule(d3.event));
          return;
        }
        const index = this.hit(d3.event);
        if (index < 0) return;
        const i = Calls.indexOf(this.nodes[index].id);
        if (i >= 0) Detail.show(i);
        this.draw();
      });
    this.canvas.addEventListener("mousemove", event => {
      if (this.mode === "modules") return this.hoverModule(event);
      const index = event.buttons ? -1 : this.hit(event);
      if (index !== this.hovered) {
        this.hovered = index;
        this.dirty();
      }
      if (index < 0) return hideTip();
      const node = this.nodes[index],
        region = this.plan.regions[node.region];
      return this.tipOf(event, node, region);
    });
    this.canvas.addEventListener("mouseleave", () => {
      this.hovered = -1;
      this.hoveredBox = null;
      hideTip();
      this.dirty();
    });
    Theme.listeners.push(() => this.dirty());
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.place();
  },

  tipOf(event, node, region) {
    const kept = region?.own_graph ? `the program captures it itself, as graph ${region.own_graph}` : "";
    showTip(
      event,
      node.name,
      `call ${node.id} · ` +
        (node.ns === null ? "inside an executed graph, no time known" : `${timeText(node.ns)} on the host`),
      region
        ? region.captured
          ? `graph of region ${region.region}, stream ${node.stream}`
          : `eager: ${region.reason}`
        : "",
      node.model ? `in graph ${node.model} of the program` : kept,
    );
  },

  hitModule(event) {
    const box = this.canvas.getBoundingClientRect();
    return ModuleTree.hit(...this.transform.invert([event.clientX - box.left, event.clientY - box.top]));
  },
  hoverModule(event) {
    const found = event.buttons ? null : this.hitModule(event);
    if (found !== this.hoveredBox) {
      this.hoveredBox = found;
      this.dirty();
    }
    this.canvas.style.cursor = found ? "pointer" : "";
    if (!found) return hideTip();
    if (found.node) return this.tipOf(event, found.node, this.plan.regions[found.node.region]);
    return showTip(
      event,
      found.part.path.slice(1),
      ModuleTree.words(found.part),
      found.part.open ? "A click closes it." : "A click opens it.",
    );
  },
  clickModule(found) {
    if (!found) return;
    if (found.node) {
      const i = Calls.indexOf(found.node.id);
      if (i >= 0) Detail.show(i);
      return;
    }
    found.part.open = !found.part.open;
    this.openedModule(found.part);
  },
  // Draws anew after a module was opened or closed; where too many boxes would show, it closes again. Its
  // upper left corner stays where it is.
  openedModule(part) {
    const corner = () => {
      const box = [...ModuleTree.boxes, ...ModuleTree.frames].find(one => one.part === part);
      return box && [box.x - box.width / 2, box.y - box.height / 2];
    };
    const before = corner();
    const shown = before && this.transform.apply(before);
    if (!ModuleTree.layout(this.edges, this.plan.waits)) {
      part.open = false;
      ModuleTree.layout(this.edges, this.plan.waits);
    }
    this.bounds = ModuleTree.bounds;
    this.hoveredBox = null;
    this.listModules();
    const after = corner();
    const inView = shown && shown[0] > 0 && shown[0] < this.width && shown[1] > 0 && shown[1] < this.height;
    if (after && inView) {
      const {k} = this.transform;
      const moved = d3.zoomIdentity.translate(shown[0] - k * after[0], shown[1] - k * after[1]).scale(k);
      d3.select(this.canvas).call(this.zoom.transform, moved);
    } else {
      this.fit();
    }
    this.dirty();
    const button = [...this.tree.querySelectorAll(".tree-part")].find(one => one.dataset.path === part.path);
    if (this.tree.contains(document.activeElement) || document.activeElement === document.body) button?.focus();
  },
  listModules() {
    this.tree.hidden = this.mode !== "modules";
    const focused = this.tree.contains(document.activeElement);
    this.tree.replaceChildren(ModuleTree.list(part => this.openedModule(part)));
    if (focused) this.tree.querySelector("button")?.focus();
  },

  legend() {
    const swatch = (colour, text) => {
      const dot = make("i");
      const paint = () => (dot.style.background = colour());
      paint();
      Theme.listeners.push(paint);
      return make("span", {}, dot, text);
    };
    const streams = 1 + d3.max(this.nodes, node => node.stream);
    return make(
      "div",
      {class: "toolbar legend"},
      d3
        .range(Math.min(streams, 10))
        .map(stream => swatch(() => Theme.colour(stream), streams === 1 ? "captured" : `captured, stream ${stream}`)),
      swatch(() => Theme.word("composite"), "eager"),
      this.plan.waits.length ? swatch(() => Theme.word("mark"), "wait between streams") : null,
      this.nodes.some(node => node.ns === null)
        ? make("span", {class: "wide"}, "The host knows no time of calls inside executed graphs.")
        : null,
    );
  },

  // Layers: a node lies below all that it reads from. By streams it also lies below the call before
  // it on its stream, and regions do not mix.
  place() {
    this.hoveredBox = null;
    if (this.mode === "modules" && !ModuleTree.layout(this.edges, this.plan.waits)) this.mode = "dependencies";
    this.listModules();
    if (this.mode === "modules") {
      this.bounds = ModuleTree.bounds;
      return;
    }
    const byStream = this.mode === "streams";
    const lastOfStream = new Map();
    let floor = 0,
      region = -2,
      deepest = -1;
    for (const node of this.nodes) {
      let layer = 0;
      for (const from of node.before) layer = Math.max(layer, this.nodes[from].layer + 1);
      if (byStream) {
        if (node.region !== region) {
          floor = deepest + 1;
          region = node.region;
        }
        layer = Math.max(layer, floor, (lastOfStream.get(node.stream) ?? -1) + 1);
        lastOfStream.set(node.stream, layer);
      }
      node.layer = layer;
      deepest = Math.max(deepest, layer);
    }
    if (byStream) {
      for (const node of this.nodes) {
        node.x = node.stream * (kColumn + 40);
        node.y = node.layer * 30;
      }
    } else {
      this.placeByDependency(deepest);
    }
    this.bounds = [
      d3.min(this.nodes, node => node.x),
      0,
      d3.max(this.nodes, node => node.x) + kNodeWidth,
      d3.max(this.nodes, node => node.y) + kNodeHeight,
    ];
  },

  // Nodes of a layer stand near the middle of their neighbours, two sweeps down and one up.
  placeByDependency(deepest) {
    const layers = d3.range(deepest + 1).map(() => []);
    for (const node of this.nodes) {
      // A node without sources stands right above its first reader.
      if (!node.before.length && node.after.length)
        node.layer = Math.max(0, d3.min(node.after, to => this.nodes[to].layer) - 1);
      layers[node.layer].push(node);
    }
    for (const layer of layers) {
      layer.forEach((node, index) => {
        node.x = (index - (layer.length - 1) / 2) * kColumn;
        node.y = node.layer * (kLayer + 12);
      });
    }
    const sweep = (order, side) => {
      for (const layer of order) {
        for (const node of layer)
          node.wanted = node[side].length ? d3.mean(node[side], other => this.nodes[other].x) : node.x;
        layer.sort((a, b) => a.wanted - b.wanted || a.index - b.index);
        let shift = 0;
        layer.forEach((node, index) => {
          node.x = index ? Math.max(node.wanted, layer[index - 1].x + kColumn) : node.wanted;
          shift += node.x - node.wanted;
        });
        for (const node of layer) node.x -= shift / layer.length;
      }
    };
    sweep(layers, "before");
    sweep([...layers].reverse(), "after");
    sweep(layers, "before");
  },

  resize() {
    const {width, height} = this.box.getBoundingClientRect();
    if (width < 10 || height < 10) return;
    const ratio = devicePixelRatio || 1;
    const first = !this.width;
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    if (first) this.fit();
    else this.draw();
  },

  // As much of it as can be read, from the top; or all of it.
  fit(all = false) {
    const [left, top, right, bottom] = this.bounds;
    const whole = Math.min((this.width - 60) / (right - left), (this.height - 60) / (bottom - top));
    // Words in boxes can be read from this scale on.
    const least = all ? 0 : this.mode === "modules" ? 0.62 : 0.42;
    const k = Math.min(1.1, Math.max(whole, least));
    const tall = (bottom - top) * k > this.height - 60;
    // If not all nodes fit, the first call stands in the middle, or the tree begins at the left.
    const begin = this.mode === "modules" ? left + (this.width / 2 - 14) / k : this.nodes[0].x + kNodeWidth / 2;
    const middle = (right - left) * k > this.width ? begin : (left + right) / 2;
    d3.select(this.canvas).call(
      this.zoom.transform,
      d3.zoomIdentity
        .translate(this.width / 2 - middle * k, tall ? 34 : this.height / 2 - ((top + bottom) / 2) * k)
        .scale(k),
    );
  },

  dirty() {
    if (this.pending || !this.width) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  },

  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = this.transform.invert([event.clientX - box.left, event.clientY - box.top]);
    const node = this.nodes.find(
      one => x >= one.x && x <= one.x + kNodeWidth && y >= one.y && y <= one.y + kNodeHeight,
    );
    return node ? node.index : -1;
  },

  draw() {
    if (!this.width) return;
    const canvas = this.canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    const {k, x, y} = this.transform;
    canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
    canvas.clearRect(0, 0, this.width, this.height);
    canvas.translate(x, y);
    canvas.scale(k, k);
    const low = (this.height - y) / k,
      high = -y / k - 60,
      near = -x / k - 300,
      far = (this.width - x) / k + 100;
    if (this.mode === "modules") {
      ModuleTree.draw(canvas, k, this.hoveredBox);
      return;
    }
    if (this.mode === "streams") this.drawRegions(canvas);
    const line = (edge, colour, alpha, width) => {
      const from = this.nodes[edge.from],
        to = this.nodes[edge.to];
      if (
        Math.min(from.y, to.y) > low ||
        Math.max(from.y, to.y) < high ||
        Math.max(from.x, to.x) < near ||
        Math.min(from.x, to.x) > far
      )
        return;
      canvas.strokeStyle = colour;
      canvas.globalAlpha = alpha;
      canvas.lineWidth = width;
      canvas.beginPath();
      const x0 = from.x + kNodeWidth / 2,
        y0 = from.y + kNodeHeight,
        x1 = to.x + kNodeWidth / 2,
        y1 = to.y;
      if (this.mode === "streams" && from.stream === to.stream) {
        // Along a stream an edge goes around the calls between.
        const out = Math.min(18 + (to.layer - from.layer) * 3, 110);
        canvas.moveTo(from.x, from.y + kNodeHeight / 2);
        canvas.bezierCurveTo(
          from.x - out,
          from.y + kNodeHeight / 2,
          to.x - out,
          to.y + kNodeHeight / 2,
          to.x,
          to.y + kNodeHeight / 2,
        );
      } else {
        const bend = Math.max(10, Math.min(60, (y1 - y0) / 2));
        canvas.moveTo(x0, y0);
        canvas.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
      }
      canvas.stroke();
    };
    const touched = edge => edge.from === this.hovered || edge.to === this.hovered;
    const soft = Theme.word("faint"),
      accent = Theme.word("accent");
    for (const edge of this.edges) {
      if (edge.kind !== 0 && !this.others) continue;
      if (edge.kind !== 0) canvas.setLineDash([2, 3]);
      line(edge, touched(edge) ? accent : soft, touched(edge) ? 1 : edge.kind ? 0.35 : 0.5, touched(edge) ? 2 : 1.1);
      canvas.setLineDash([]);
    }
    canvas.setLineDash([6, 4]);
    for (const [from, to] of this.plan.waits) line({from, to}, Theme.word("mark"), 1, 2);
    canvas.setLineDash([]);
    canvas.globalAlpha = 1;
    canvas.font = "11.5px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
    canvas.textBaseline = "middle";
    const eager = Theme.word("composite"),
      ink = Theme.word("ink"),
      over = Theme.dark ? "#101214" : "#ffffff";
    const chosen = Detail.call >= 0 ? Calls.id[Detail.call] : -1;
    for (const node of this.nodes) {
      if (node.y > low || node.y + kNodeHeight < high || node.x + kNodeWidth < near || node.x > far) continue;
      const region = this.plan.regions[node.region];
      const held = region?.captured;
      canvas.fillStyle = held ? Theme.colour(Math.min(node.stream, 10)) : eager;
      canvas.beginPath();
      canvas.roundRect(node.x, node.y, kNodeWidth, kNodeHeight, 5);
      canvas.fill();
      if (node.id === chosen || node.index === this.hovered) {
        canvas.strokeStyle = ink;
        canvas.lineWidth = 2;
        canvas.stroke();
      }
      if (k > 0.3) {
        canvas.fillStyle = held ? over : ink;
        const text = node.name.replace(/^aten::/, "");
        const short = text.length > 19 ? `${text.slice(0, 18)}…` : text;
        canvas.fillText(short, node.x + 7, node.y + kNodeHeight / 2 + 0.5);
      }
    }
  },

  drawRegions(canvas) {
    const right = this.bounds[2] + 24;
    canvas.font = "12px system-ui, sans-serif";
    canvas.textBaseline = "middle";
    this.plan.regions.forEach((region, index) => {
      const held = this.nodes.filter(node => node.region === index);
      if (!held.length) return;
      const top = d3.min(held, node => node.y) - 4,
        bottom = d3.max(held, node => node.y) + kNodeHeight + 4;
      canvas.fillStyle = Theme.word(region.captured ? "accent-soft" : "sunk");
      canvas.beginPath();
      canvas.roundRect(-130, top, right + 130, bottom - top, 8);
      canvas.fill();
      canvas.fillStyle = Theme.word("soft");
      const text = region.captured
        ? `graph, region ${region.region}`
        : `eager: ${region.reason || "not worth a graph"}`;
      canvas.fillText(
        text.length > 90 ? `${text.slice(0, 89)}…` : text,
        right + 10,
        (top + Math.min(bottom, top + 30)) / 2,
      );
    });
  },
};

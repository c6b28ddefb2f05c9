// The step as a tree of modules that open. A closed module is one box; the calls of an open one, and
// the modules in it, stand inside a frame. dagre lays boxes and arrows out. Beside the drawing stands
// the same tree as a list, for the keyboard and for screen readers.

const kBoxHeight = 40,
  kBoxWidth = 196,
  kMostBoxes = 700; // more of them are neither laid out in time nor read

const ModuleTree = {
  // `nodes` are those of StepGraph.
  build(nodes) {
    this.root = this.part("step", "");
    this.root.open = true;
    for (const node of nodes) {
      const i = Calls.indexOf(node.id);
      let part = this.root;
      this.add(part, node);
      for (const name of this.pathOf(i)) {
        if (!part.parts.has(name)) part.parts.set(name, this.part(name, `${part.path}/${name}`));
        part = part.parts.get(name);
        this.add(part, node);
      }
      part.own.push(node);
    }
    for (const part of this.root.parts.values()) part.open = part.parts.size > 0 && part.parts.size < 24;
  },

  part(name, path) {
    return {
      name,
      path,
      parts: new Map(),
      own: [],
      calls: 0,
      ns: 0,
      untimed: 0, // calls without a known time
      captured: 0,
      streams: new Set(),
      open: false,
    };
  },
  add(part, node) {
    ++part.calls;
    part.ns += node.ns ?? 0;
    if (node.ns === null) ++part.untimed;
    if (StepGraph.plan.regions[node.region]?.captured) {
      ++part.captured;
      part.streams.add(node.stream);
    }
  },

  // Phase, then modules; a call outside of modules has its line instead.
  pathOf(i) {
    if (i < 0) return ["calls that are not on the page"];
    const module = Calls.moduleOf(i);
    const phase = Calls.phase(i) || "forward";
    return [phase, ...(module ? module.split("/") : [this.lineOf(i)])];
  },

  // "train.py:33 Residual.forward": short, as it stands in a box.
  lineOf(i) {
    // A program without lines has its functions.
    const [, line, inside] = Calls.place[i] ? Calls.places[Calls.place[i] - 1] : [];
    if (!line && inside) return inside;
    const text = Calls.placeText(i);
    return text ? text.replace(/^[^(]*\//, "").replace(/ \((.*)\)$/, " $1") : "outside of modules";
  },

  // Boxes that are visible, frames around them, and the box of each node.
  visible() {
    const boxes = [],
      frames = [],
      boxOf = new Map();
    const visit = (part, frame) => {
      const parts = [...part.parts.values()];
      for (const node of part.own) {
        boxOf.set(node.index, boxes.length);
        boxes.push({node, frame, title: node.name.replace(/^aten::/, ""), calls: 1, ns: node.ns});
      }
      for (const one of parts) {
        if (one.open) {
          const inner = frames.length;
          frames.push({part: one, frame});
          visit(one, inner);
          continue;
        }
        const index = boxes.length;
        boxes.push({part: one, frame, title: one.name, calls: one.calls, ns: one.ns});
        this.each(one, node => boxOf.set(node.index, index));
      }
    };
    visit(this.root, -1);
    return {boxes, frames, boxOf};
  },
  each(part, act) {
    for (const node of part.own) act(node);
    for (const one of part.parts.values()) this.each(one, act);
  },

  // Lays the visible boxes out; false if there are too many.
  layout(edges, waits) {
    const {boxes, frames, boxOf} = this.visible();
    if (boxes.length > kMostBoxes) return false;
    const graph = new dagre.graphlib.Graph({compound: true, multigraph: false});
    graph.setGraph({rankdir: "TB", nodesep: 16, ranksep: 38, marginx: 20, marginy: 20});
    graph.setDefaultEdgeLabel(() => ({}));
    boxes.forEach((box, index) => {
      graph.setNode(`b${index}`, {width: kBoxWidth, height: box.node ? 26 : kBoxHeight});
    });
    frames.forEach((_frame, index) => {
      graph.setNode(`f${index}`, {});
    });
    frames.forEach((frame, index) => {
      if (frame.frame >= 0) graph.setParent(`f${index}`, `f${frame.frame}`);
    });
    boxes.forEach((box, index) => {
      if (box.frame >= 0) graph.setParent(`b${index}`, `f${box.frame}`);
    });
    const arrows = new Map();
    for (const edge of edges) {
      if (edge.kind !== 0) continue;
      const from = boxOf.get(edge.from),
        to = boxOf.get(edge.to);
      if (from === to || from === undefined || to === undefined) continue;
      const key = `${from} ${to}`;
      if (!arrows.has(key)) arrows.set(key, {from, to, count: 0, points: []});
      ++arrows.get(key).count;
    }
    for (const {from, to, count} of arrows.values()) graph.setEdge(`b${from}`, `b${to}`, {weight: count});
    dagre.layout(graph);
    boxes.forEach((box, index) => {
      Object.assign(box, graph.node(`b${index}`));
    });
    frames.forEach((frame, index) => {
      Object.assign(frame, graph.node(`f${index}`));
    });
    for (const arrow of arrows.values()) arrow.points = graph.edge(`b${arrow.from}`, `b${arrow.to}`).points;
    const pairs = new Set(waits.map(([from, to]) => `${boxOf.get(from)} ${boxOf.get(to)}`));
    this.boxes = boxes;
    this.frames = frames;
    this.arrows = [...arrows.values()];
    this.waits = [...pairs]
      .map(pair => pair.split(" ").map(Number))
      .filter(([from, to]) => from !== to && boxes[from] && boxes[to]);
    const {width, height} = graph.graph();
    this.bounds = [0, 0, width || 1, height || 1];
    return true;
  },

  // The words under the title of a module; the first `most` of them.
  words(part, most = 4) {
    const timed = part.calls - part.untimed;
    return [
      plural(part.calls, "call"),
      timed === 0 ? "no time known" : timeText(part.ns) + (part.untimed ? ` in ${countText(timed)}` : ""),
      part.captured === 0 ? "eager" : part.captured === part.calls ? "captured" : `${part.captured} captured`,
      part.streams.size > 1 ? `${part.streams.size} streams` : "",
    ]
      .filter(Boolean)
      .slice(0, most)
      .join(" · ");
  },
  // As many of them as there is room for.
  wordsWithin(part, width, letter) {
    const fits = d3.range(4, 1, -1).find(most => this.words(part, most).length <= width / letter);
    return this.words(part, fits ?? 1);
  },

  // The tree as a list; `changed` is called after a module was opened or closed.
  list(changed) {
    const entry = part => {
      const parts = [...part.parts.values()];
      const item = make("li", {role: "treeitem", "aria-expanded": String(part.open)});
      item.append(
        make(
          "button",
          {
            type: "button",
            class: "tree-part",
            "data-path": part.path,
            on: {
              click: () => {
                part.open = !part.open;
                changed(part);
              },
            },
          },
          make("span", {class: "name"}, `${part.open ? "▾" : "▸"} ${part.name}`),
          make("span", {class: "faint"}, this.words(part)),
        ),
      );
      if (part.open)
        item.append(
          make(
            "ul",
            {role: "group"},
            ...parts.map(entry),
            ...part.own.map(node =>
              make("li", {role: "treeitem"}, callLink(node.id, `${node.name.replace(/^aten::/, "")}`)),
            ),
          ),
        );
      return item;
    };
    return make(
      "ul",
      {role: "tree", class: "plain tree", "aria-label": "Modules of the step"},
      ...[...this.root.parts.values()].map(entry),
    );
  },

  hit(x, y) {
    const inside = box => Math.abs(x - box.x) <= box.width / 2 && Math.abs(y - box.y) <= box.height / 2;
    const box = this.boxes.find(inside);
    if (box) return box;
    // The innermost frame comes last.
    return [...this.frames].reverse().find(frame => this.isTitle(frame, x, y)) || null;
  },

  // The title of a frame stands above it.
  isTitle(frame, x, y) {
    const top = frame.y - frame.height / 2;
    return Math.abs(x - frame.x) <= frame.width / 2 && y > top - 17 && y < top + 8;
  },

  draw(canvas, k, hovered) {
    const ink = Theme.word("ink"),
      soft = Theme.word("soft");
    canvas.textBaseline = "middle";
    for (const frame of this.frames) {
      canvas.fillStyle = Theme.word("sunk");
      canvas.globalAlpha = 0.7;
      canvas.strokeStyle = hovered === frame ? Theme.word("accent") : Theme.word("line");
      canvas.lineWidth = 1;
      canvas.beginPath();
      canvas.roundRect(frame.x - frame.width / 2, frame.y - frame.height / 2, frame.width, frame.height, 8);
      canvas.fill();
      canvas.globalAlpha = 1;
      canvas.stroke();
      canvas.fillStyle = soft;
      canvas.font = "11.5px system-ui, sans-serif";
      const room = frame.width - 12;
      const words = this.wordsWithin(frame.part, room - 6 * (frame.part.name.length + 3), 6);
      canvas.fillText(
        this.fit(canvas, `${frame.part.name} · ${words}`, room),
        frame.x - frame.width / 2 + 7,
        frame.y - frame.height / 2 - 8,
      );
    }
    for (const arrow of this.arrows) {
      const touched = hovered && (this.boxes[arrow.from] === hovered || this.boxes[arrow.to] === hovered);
      canvas.strokeStyle = touched ? Theme.word("accent") : Theme.word("faint");
      canvas.globalAlpha = touched ? 1 : 0.55;
      canvas.lineWidth = touched ? 2 : Math.min(4, 0.8 + Math.log2(arrow.count) * 0.5);
      canvas.beginPath();
      d3
        .line()
        .x(point => point.x)
        .y(point => point.y)
        .curve(d3.curveBasis)
        .context(canvas)(arrow.points);
      canvas.stroke();
    }
    canvas.globalAlpha = 1;
    canvas.setLineDash([6, 4]);
    canvas.strokeStyle = Theme.word("mark");
    canvas.lineWidth = 2;
    for (const [from, to] of this.waits) {
      canvas.beginPath();
      canvas.moveTo(this.boxes[from].x, this.boxes[from].y);
      canvas.lineTo(this.boxes[to].x, this.boxes[to].y);
      canvas.stroke();
    }
    canvas.setLineDash([]);
    for (const box of this.boxes) this.drawBox(canvas, box, box === hovered, k, ink, soft);
  },

  drawBox(canvas, box, hovered, k, ink, soft) {
    const left = box.x - box.width / 2,
      top = box.y - box.height / 2;
    const held = box.node && StepGraph.plan.regions[box.node.region]?.captured;
    canvas.fillStyle = box.part
      ? Theme.word("paper")
      : held
        ? Theme.colour(Math.min(box.node.stream, 10))
        : Theme.word("composite");
    canvas.beginPath();
    canvas.roundRect(left, top, box.width, box.height, 5);
    canvas.fill();
    canvas.strokeStyle = hovered ? ink : Theme.word("strong-line");
    canvas.lineWidth = hovered ? 2 : 1;
    if (box.part || hovered) canvas.stroke();
    if (box.part) {
      // The captured share, as a bar at the lower edge.
      canvas.fillStyle = Theme.word("composite");
      canvas.fillRect(left + 1, top + box.height - 5, box.width - 2, 4);
      canvas.fillStyle = Theme.colour(0);
      canvas.fillRect(left + 1, top + box.height - 5, ((box.width - 2) * box.part.captured) / box.part.calls, 4);
    }
    if (k < 0.3) return;
    canvas.fillStyle = held ? (Theme.dark ? "#101214" : "#ffffff") : ink;
    canvas.font = "12px system-ui, sans-serif";
    const title = box.part ? `▸ ${box.title}` : box.title;
    canvas.fillText(this.fit(canvas, title, box.width - 14), left + 7, top + (box.part ? 12 : box.height / 2));
    if (!box.part) return;
    canvas.fillStyle = soft;
    canvas.font = "10.5px system-ui, sans-serif";
    canvas.fillText(this.wordsWithin(box.part, box.width - 14, 5.4), left + 7, top + 26);
  },

  // The text, or as much of its beginning as fits into the width in the font of the canvas.
  fit(canvas, text, width) {
    const wide = canvas.measureText(text).width;
    if (wide <= width) return text;
    return `${text.slice(0, Math.max(2, Math.floor((text.length * width) / wide) - 1))}…`;
  },
};

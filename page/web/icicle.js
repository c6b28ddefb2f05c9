// Shows where time goes, from the outside inwards: modules, or calls in calls, as an icicle. A click makes a part as
// wide as the page.

// The tree of module paths with the own time of calls, or of the names of nested calls.
function timeTree(kind) {
  const root = {name: kind === "modules" ? "all modules" : "all calls", own: 0, calls: 0, parts: new Map()};
  const enter = (node, name) => {
    let part = node.parts.get(name);
    if (!part) node.parts.set(name, (part = {name, own: 0, calls: 0, parts: new Map()}));
    return part;
  };
  const {mask} = Search;
  if (kind === "modules") {
    for (let i = 0; i < Calls.count; ++i) {
      if (mask && !mask[i]) continue;
      let node = root;
      const path = Calls.moduleOf(i);
      for (const name of path ? path.split("/") : ["outside of modules"]) node = enter(node, name);
      if (Calls.phase(i) === "backward") node = enter(node, "backward");
      node = enter(node, Calls.name(i));
      node.own += Calls.own[i];
      ++node.calls;
    }
  } else {
    const nodes = new Array(Calls.count);
    for (let i = 0; i < Calls.count; ++i) {
      const around = Calls.encloser[i];
      const node = enter(around >= 0 && nodes[around] ? nodes[around] : root, Calls.name(i));
      nodes[i] = node;
      if (mask && !mask[i]) continue;
      node.own += Calls.own[i];
      ++node.calls;
    }
  }
  return root;
}

function icicleSection(section) {
  let kind = [...Calls.scopes.values()].some(scope => scope.kind === "module") ? "modules" : "calls";
  const place = make("div");
  const crumbs = make("p", {class: "soft"});
  const kRow = 25;
  let root = null,
    focus = null;

  const load = () => {
    root = d3
      .hierarchy(timeTree(kind), node => [...node.parts.values()])
      .sum(node => node.own)
      .sort((a, b) => b.value - a.value);
    focus = root;
    draw();
  };
  const draw = () => {
    if (!root.value) {
      place.replaceChildren(
        make("p", {class: "empty"}, "No time was recorded here; `acltape record --modules` adds modules."),
      );
      return;
    }
    const width = Math.max(300, place.clientWidth || 900);
    d3.partition().size([width, (root.height + 1) * kRow])(root);
    const stretch = width / Math.max(1e-9, focus.x1 - focus.x0);
    // Parts narrower than a pixel are not drawn; nobody could see them.
    const shown = root
      .descendants()
      .filter(node => (node.x1 - node.x0) * stretch >= 1 && node.x1 > focus.x0 && node.x0 < focus.x1);
    const deepest = d3.max(shown, node => node.depth) || 0;
    const svg = d3
      .create("svg")
      .attr("width", width)
      .attr("height", (deepest + 1) * kRow)
      .attr("role", "img")
      .attr("aria-label", "Time by nesting");
    const cell = svg
      .selectAll("g")
      .data(shown)
      .enter()
      .append("g")
      .attr("class", "cell")
      .attr("transform", node => `translate(${Math.max(0, (node.x0 - focus.x0) * stretch)},${node.depth * kRow})`);
    const widthOf = node => Math.min(width, (Math.min(node.x1, focus.x1) - Math.max(node.x0, focus.x0)) * stretch);
    const isOperator = node => node.data.calls > 0;
    const rankOf = node => {
      const op = operatorNumber(node.data.name);
      return op < 0 ? 99 : Calls.rank[op];
    };
    cell
      .append("rect")
      .attr("width", widthOf)
      .attr("height", kRow - 1)
      .attr("rx", 3)
      .attr("fill", node =>
        isOperator(node) && !node.children
          ? Theme.colour(rankOf(node))
          : Theme.word(node.data.name === "backward" ? "backward" : "composite"),
      )
      .on("click", node => {
        focus = node;
        draw();
      })
      .on("mousemove", node =>
        showTip(
          d3.event,
          node.data.name,
          `${timeText(node.value)}, ${shareText(node.value / root.value)} of all`,
          isOperator(node) ? `${plural(node.data.calls, "call")}, ${timeText(node.data.own)} of its own` : "",
        ),
      )
      .on("mouseleave", hideTip);
    cell
      .append("text")
      .attr("x", 6)
      .attr("y", kRow / 2 + 3.5)
      .style("fill", node =>
        isOperator(node) && !node.children ? (Theme.dark ? "#101214" : "#ffffff") : Theme.word("ink"),
      )
      .text(node => {
        const room = Math.floor((widthOf(node) - 10) / 6.6);
        const text = node.data.name.replace(/^aten::/, "");
        return room < 3 ? "" : text.length <= room ? text : `${text.slice(0, room - 1)}…`;
      });
    place.replaceChildren(svg.node());
    crumbs.replaceChildren(
      ...focus
        .ancestors()
        .reverse()
        .flatMap((node, index) => [
          index ? " › " : "",
          make(
            "button",
            {
              type: "button",
              class: "link",
              on: {
                click: () => {
                  focus = node;
                  draw();
                },
              },
            },
            node.data.name,
          ),
        ]),
      ` – ${timeText(focus.value)}`,
    );
  };
  section.append(
    make("h1", {}, "Time by nesting"),
    make(
      "p",
      {class: "lead"},
      "Widths are host time. The time of backward work counts for the module of its forward calls.",
    ),
    make(
      "div",
      {class: "bar-row"},
      choice(
        [
          ["modules", "By module"],
          ["calls", "By calls in calls"],
        ],
        kind,
        value => {
          kind = value;
          load();
        },
      ),
    ),
    crumbs,
    place,
  );
  Sections.onShow.icicle = load;
  Theme.listeners.push(() => {
    if (Sections.current === "icicle") draw();
  });
  Search.listeners.push(() => {
    if (Sections.current === "icicle") load();
  });
  new ResizeObserver(() => {
    if (root && Sections.current === "icicle") draw();
  }).observe(section);
}

function operatorNumber(name) {
  operatorNumber.known ??= new Map(Calls.ops.map(([word], index) => [word, index]));
  return operatorNumber.known.get(name) ?? -1;
}

// The panel at the right: one call with all that is known of it, or the list of calls found.

const Detail = {
  call: -1,
  showsList: false,
  side: null,

  open(...content) {
    this.side ??= document.getElementById("side");
    this.side.replaceChildren(...content.filter(part => part !== null));
    this.side.hidden = false;
    this.side.scrollTop = 0;
  },
  close() {
    Area.chosen = null;
    this.call = -1;
    this.showsList = false;
    document.getElementById("side").hidden = true;
    Timeline.dirty();
  },

  head(title) {
    return make(
      "div",
      {class: "head"},
      make("h2", {}, title),
      make(
        "button",
        {type: "button", class: "icon", title: "Close (Esc)", "aria-label": "Close", on: {click: () => this.close()}},
        "✕",
      ),
    );
  },

  // Shows a call by its index on the page. `zoom`: the timeline goes there too.
  show(i, {zoom = false} = {}) {
    this.call = i;
    this.showsList = false;
    const word = Data.json.get("facts").word;
    const bound = Calls.stepOf(i);
    const facts = [
      ["Call", `${Calls.id[i]}`],
      [
        "Time",
        timeText(Calls.duration[i]) +
          (Calls.own[i] < Calls.duration[i] ? `, ${timeText(Calls.own[i])} without the calls inside` : ""),
      ],
      ["Begins", `${timeText(Calls.begin[i])} after the first call`],
      ["Kind", [Calls.phase(i), Calls.isLeaf(i) ? "leaf" : "encloses others", Calls.ops[Calls.op[i]][1]].join(", ")],
      bound ? ["Step", `${bound.step}`] : null,
      Calls.stream[i] ? ["Stream", `${Calls.stream[i]}`] : null,
      ["Module", Calls.moduleOf(i)],
      ["Range", Calls.scopes.get(Calls.scope[i])?.kind === "user" ? Calls.scopes.get(Calls.scope[i]).path : ""],
      ["Source", Calls.placeText(i) + (Calls.bits[i] & 16 ? ", of its forward leaf" : "")],
      Calls.failed(i) ? ["Status", "the call failed"] : null,
    ].filter(fact => fact?.[1]);
    const list = make(
      "dl",
      {},
      facts.flatMap(([what, text]) => [make("dt", {}, what), make("dd", {}, text)]),
    );
    const given = Calls.argumentsOf(i);
    const missing =
      !given.length && Calls.signature[i] >= Calls.signatures.length - Data.json.get("signatures").without_arguments;
    const args = given.map(([name, way, text]) =>
      make(
        "div",
        {class: "argument"},
        make("span", {}, name, make("div", {class: "way"}, ["", "written", "read and written"][way])),
        make("span", {class: "mono"}, text),
      ),
    );
    const around = [];
    for (let up = Calls.encloser[i]; up >= 0 && around.length < 12; up = Calls.encloser[up]) around.push(up);
    const findings = Data.json
      .get("findings")
      .findings.filter(row => row.call_id === Calls.id[i] || row.evidence?.calls?.includes?.(Calls.id[i]));
    const alike = `${bound ? `step:${bound.step}/` : ""}op:${Calls.name(i)}`;
    this.open(
      this.head(Calls.name(i)),
      list,
      findings.length ? make("h3", {}, "Findings here") : null,
      ...findings.map(row => make("p", {}, make("span", {class: `tag ${row.severity}`}, row.rule), " ", row.message)),
      make("h3", {}, "Arguments and results"),
      ...(args.length
        ? args
        : [
            make(
              "p",
              {class: "soft"},
              missing ? "Left out to keep the page small; the command below shows them." : "It has none.",
            ),
          ]),
      around.length ? make("h3", {}, "Inside of") : null,
      ...around.map(up =>
        make(
          "div",
          {},
          make("button", {type: "button", class: "link", on: {click: () => this.show(up)}}, Calls.name(up)),
          " ",
          make("span", {class: "faint"}, timeText(Calls.duration[up])),
        ),
      ),
      make("h3", {}, "On the command line"),
      commandLine(`acltape query ${word} "SELECT * FROM argument WHERE call_id = ${Calls.id[i]}"`),
      commandLine(`acltape graph ${word} ${shellWord(Calls.isLeaf(i) ? `${Calls.id[i]}` : this.leavesInside(i))}`),
      make(
        "div",
        {class: "bar-row"},
        make(
          "button",
          {type: "button", class: "plain-button", on: {click: () => setSearch(alike)}},
          "Calls like this one",
        ),
        make(
          "button",
          {
            type: "button",
            class: "plain-button",
            on: {
              click: () => {
                Sections.open("timeline");
                Timeline.zoomTo(Calls.begin[i], Calls.end(i));
                Timeline.reveal(i);
              },
            },
          },
          "Zoom to it",
        ),
      ),
    );
    if (zoom && Sections.current === "timeline") {
      Timeline.zoomTo(Calls.begin[i], Calls.end(i));
      Timeline.reveal(i);
    }
    Timeline.dirty();
  },

  // "812-830": the calls from an enclosing call to the last one inside.
  leavesInside(i) {
    let last = i;
    while (
      last + 1 < Calls.count &&
      (Calls.thread[last + 1] !== Calls.thread[i] || Calls.begin[last + 1] < Calls.end(i))
    )
      ++last;
    return `${Calls.id[i]}-${Calls.id[last]}`;
  },

  showList(shown = 300) {
    this.call = -1;
    this.showsList = true;
    const total = d3.sum(Search.found, i => (Calls.isLeaf(i) ? Calls.duration[i] : 0));
    const rows = Search.found.slice(0, shown).map(i =>
      make(
        "button",
        {
          type: "button",
          class: "hit",
          on: {
            click: () => {
              Search.index = Search.found.indexOf(i);
              this.show(i, {zoom: true});
            },
          },
        },
        make("span", {class: "faint"}, Calls.id[i]),
        make("span", {class: "name", title: Calls.name(i)}, Calls.name(i)),
        make("span", {class: "soft"}, timeText(Calls.duration[i])),
      ),
    );
    const word = Data.json.get("facts").word;
    const isSelection = /^(\d|step:|op:|stream:|line:)/.test(Search.text);
    this.open(
      this.head(`${plural(Search.found.length, "call")} found`),
      make("p", {class: "soft"}, `Leaves among them take ${timeText(total)} on the host.`),
      isSelection ? commandLine(`acltape graph ${word} ${shellWord(Search.text)}`) : null,
      ...rows,
      Search.found.length > shown
        ? make(
            "button",
            {type: "button", class: "plain-button", on: {click: () => this.showList(shown * 4)}},
            `Show more of ${countText(Search.found.length)}`,
          )
        : null,
    );
    Timeline.dirty();
  },
};

const showFound = () => Detail.showList();

function setSearch(text) {
  document.getElementById("search-text").value = text;
  Search.run(text);
}

// A button that shows a call, by its id.
function callLink(id, text = `call ${id}`) {
  const i = Calls.indexOf(id);
  if (i < 0) return make("span", {}, text);
  return make("button", {type: "button", class: "link", on: {click: () => Detail.show(i, {zoom: true})}}, text);
}

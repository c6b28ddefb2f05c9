// The rows of the timeline as a list: hide, pin and reorder them by mouse or keys; and the marks.

const Marks = {
  times: [],

  add(time) {
    const known = this.times.findIndex(one => Math.abs(one - time) < 1);
    if (known >= 0) this.times.splice(known, 1);
    else this.times.push(time);
    this.times.sort((a, b) => a - b);
    Timeline.dirty();
  },
  // Goes to the next (1) or previous (-1) mark from a time.
  go(by, time) {
    const next =
      by > 0 ? this.times.find(one => one > time + 1) : [...this.times].reverse().find(one => one < time - 1);
    if (next !== undefined) Timeline.centre(next);
  },
};

function idleStreamsText(streams) {
  const {shown, all} = Data.json.get("extent");
  return (
    `${shown < all ? "In the calls that the page shows the" : "The"} host put no work on ` +
    `${plural(streams.length, "stream")}, which ${streams.length === 1 ? "has" : "have"} no row: ${streams.join(", ")}.`
  );
}

const Lanes = {
  show() {
    Detail.call = -1;
    Detail.showsList = false;
    Detail.open(
      Detail.head("Rows and marks"),
      make("p", {class: "soft"}, "A pinned row stays above the others while they scroll."),
      make(
        "ul",
        {class: "plain"},
        Timeline.groups.map((group, index) => this.row(group, index)),
      ),
      Timeline.idleStreams.length ? make("p", {class: "soft"}, idleStreamsText(Timeline.idleStreams)) : null,
      make("h3", {}, "Marks"),
      Marks.times.length
        ? make(
            "ul",
            {class: "plain"},
            Marks.times.map((time, index) =>
              make(
                "li",
                {class: "lane"},
                make(
                  "button",
                  {type: "button", class: "link", on: {click: () => Timeline.centre(time)}},
                  timeText(time) + (index ? `, ${timeText(time - Marks.times[index - 1])} after the one before` : ""),
                ),
                this.button("Remove the mark", "✕", () => Marks.add(time)),
              ),
            ),
          )
        : make("p", {class: "soft"}, "None; m sets one at the pointer, [ and ] go from mark to mark."),
    );
  },

  button(label, text, act, pressed = null) {
    return make(
      "button",
      {
        type: "button",
        class: "icon",
        title: label,
        "aria-label": label,
        ...(pressed === null ? {} : {"aria-pressed": pressed}),
        on: {
          click: () => {
            act();
            this.show();
            [...document.querySelectorAll("#side button")].find(one => one.title === label)?.focus();
          },
        },
      },
      text,
    );
  },

  row(group, index) {
    const box = make("input", {
      type: "checkbox",
      checked: !group.hidden,
      on: {
        change: event => {
          group.hidden = !event.target.checked;
          Timeline.layout();
        },
      },
    });
    const name = group.title;
    return make(
      "li",
      {class: "lane"},
      make("label", {}, box, ` ${name}`),
      this.button(
        `${group.pinned ? "Unpin" : "Pin"} ${name}`,
        group.pinned ? "unpin" : "pin",
        () => Timeline.pin(group),
        Boolean(group.pinned),
      ),
      this.button(`Move up: ${name}`, "↑", () => Timeline.move(index, -1)),
      this.button(`Move down: ${name}`, "↓", () => Timeline.move(index, 1)),
    );
  },
};

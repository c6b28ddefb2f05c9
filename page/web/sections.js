// The sections of the page. A section is made when it is first shown.

const Sections = {
  current: "",
  onShow: {},
  list: [],

  // list: {name, title, full: without margins, make: fills an element, count: how many things are in it}.
  start(list) {
    this.list = list;
    const bar = document.getElementById("sections");
    this.list.forEach((entry, index) => {
      const count = entry.count ? entry.count() : 0;
      entry.button = make(
        "button",
        {type: "button", "data-section": entry.name, title: entry.title, on: {click: () => this.open(entry.name)}},
        make("span", {class: "key", "aria-hidden": "true", "data-short": entry.title[0]}, index < 9 ? index + 1 : ""),
        make("span", {class: "label"}, entry.title),
        count ? make("span", {class: "count"}, shortCount(count)) : null,
      );
      bar.append(entry.button);
    });
    addEventListener("hashchange", () => this.open(location.hash.slice(1)));
    this.open(location.hash.slice(1));
  },

  open(name) {
    const entry = this.list.find(one => one.name === name) || this.list[0];
    if (this.current === entry.name) return;
    this.current = entry.name;
    hideTip();
    for (const one of this.list) {
      if (one.section) one.section.hidden = one !== entry;
      one.button.setAttribute("aria-current", one === entry ? "page" : "false");
    }
    if (!entry.section) {
      entry.section = make("section", {class: entry.full ? "full" : "", "data-name": entry.name});
      document.getElementById("main").append(entry.section);
      entry.make(entry.section);
    }
    this.onShow[entry.name]?.();
    document.getElementById("main").scrollTop = 0;
    if (location.hash.slice(1) !== entry.name) history.replaceState(null, "", `#${entry.name}`);
  },
};

const shortCount = number =>
  number >= 1e6 ? `${(number / 1e6).toFixed(1)}M` : number >= 1e4 ? `${Math.round(number / 1e3)}k` : countText(number);

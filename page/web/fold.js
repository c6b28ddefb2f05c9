// Times as the timeline shows them: the start-up before the first step, and long times in which no
// call ran, take little room. A fold can be opened.

const kFoldedShare = 0.03; // of the times that are not folded
const kFoldFrom = 0.12; // of the whole trace: shorter parts are not worth a fold

const Folds = {
  list: [], // {from, to, what}, ascending; times count from the first call
  open: false,
  points: [], // [time, shown time], ascending
  // Each is called before the folds open or close, and returns what is done after that.
  listeners: [],

  find() {
    const least = kFoldFrom * Calls.span;
    this.list = [];
    const [first] = Calls.stepBounds;
    let done = 0;
    if (first && first.begin > least) {
      this.list.push({from: 0, to: first.begin, what: "start-up"});
      done = first.begin;
    }
    // Calls ascend by their begin; `busy` is the end of all calls so far.
    let busy = done;
    for (let i = 0; i < Calls.count; ++i) {
      if (Calls.begin[i] - busy > least) this.list.push({from: busy, to: Calls.begin[i], what: "no call"});
      if (Calls.end(i) > busy) busy = Calls.end(i);
    }
    this.measure();
  },

  measure() {
    const folds = this.open ? [] : this.list;
    const rest = Calls.span - d3.sum(folds, fold => fold.to - fold.from);
    this.points = [[0, 0]];
    let time = 0,
      shown = 0;
    const advance = (to, room) => {
      if (to <= time) return;
      shown += room;
      time = to;
      this.points.push([time, shown]);
    };
    for (const fold of folds) {
      advance(fold.from, fold.from - time);
      advance(fold.to, rest * kFoldedShare);
    }
    advance(Calls.span, Calls.span - time);
    this.span = shown;
    this.times = this.points.map(point => point[0]);
    this.places = this.points.map(point => point[1]);
  },

  toggle() {
    if (!this.list.length) return;
    const after = this.listeners.map(listener => listener());
    this.open = !this.open;
    this.measure();
    for (const act of after) act();
  },
  // A button that opens and closes all folds; hidden where there are none.
  button() {
    const button = make("button", {type: "button", class: "plain-button", on: {click: () => this.toggle()}});
    const tell = () => {
      const what = this.list[0]?.what === "start-up" ? "start-up" : "idle time";
      const total = d3.sum(this.list, fold => fold.to - fold.from);
      button.hidden = !this.list.length;
      button.textContent = this.open ? `Fold the ${what}` : `Open the ${what} (${timeText(total)})`;
      button.setAttribute("aria-pressed", this.open);
    };
    tell();
    this.listeners.push(() => tell);
    return button;
  },

  // Round times among those that are visible, about `count` of them; none lies in a fold. `view` is the
  // begin and the end of what is visible, as shown. {ticks, unit}: `unit` is the time between two.
  ticks(view, count) {
    const unit = d3.tickStep(view[0], view[1], count);
    const ticks = [];
    const folds = this.any ? this.list : [];
    for (let k = Math.max(0, Math.ceil(this.time(view[0]) / unit)), most = 0; most < 200; ++k, ++most) {
      const time = k * unit;
      if (time > this.time(view[1])) break;
      const fold = folds.find(one => one.from < time && time < one.to);
      if (fold) k = Math.max(k, Math.floor(fold.to / unit));
      else ticks.push(time);
    }
    return {ticks, unit};
  },
  // The fold in which a shown time lies, if there is one.
  under(shown) {
    return this.any
      ? this.list.find(fold => this.shown(fold.from) <= shown && shown <= this.shown(fold.to))
      : undefined;
  },
  text: fold => [
    fold.what === "start-up" ? "Start-up before the first step" : "Time without a call",
    `${timeText(fold.to - fold.from)}, folded; o opens it`,
  ],

  get any() {
    return !this.open && this.list.length > 0;
  },

  // Shown time of a time, and the other way round. Times outside of the trace go on at its pace.
  shown(time) {
    return this.any ? this.between(this.times, this.places, time) : time;
  },
  time(shown) {
    return this.any ? this.between(this.places, this.times, shown) : shown;
  },
  between(from, to, value) {
    const last = from.length - 1;
    if (value <= from[0]) return to[0] + value - from[0];
    if (value >= from[last]) return to[last] + value - from[last];
    const index = Math.min(d3.bisectRight(from, value) - 1, last - 1);
    const share = (value - from[index]) / (from[index + 1] - from[index]);
    return to[index] + share * (to[index + 1] - to[index]);
  },

  // Columns of begins and durations as shown; the columns themselves where nothing is folded.
  columns(begin, duration) {
    if (!this.any) return {begin, duration};
    const shown = new Float64Array(begin.length),
      lengths = new Float64Array(begin.length);
    for (let k = 0; k < begin.length; ++k) {
      shown[k] = this.shown(begin[k]);
      lengths[k] = this.shown(begin[k] + duration[k]) - shown[k];
    }
    return {begin: shown, duration: lengths};
  },
};

// One row of the timeline: spans that follow each other, at any zoom. Spans that are wide enough
// are drawn one by one. Narrower ones become columns of a pixel or two, with the colour of the
// longest span there and the share of the time that is busy. Sums of durations and a pyramid of
// the longest spans answer both in logarithmic time, so that a million spans cost no more to draw
// than a thousand.

const kFan = 16; // spans of a level of the pyramid that one of the next stands for

class SpanRow {
  // `items` are indices in the columns `begin` and `duration`, ascending by begin.
  constructor(items, begin, duration, style) {
    this.items = items;
    this.style = style; // {colour(item), label(item), dim}
    this.begin = begin;
    this.duration = duration;
  }

  // Gives the spans their times, as the timeline shows them. Nothing can be drawn before.
  setTimes(begin, duration) {
    const {items} = this;
    this.begin = begin;
    this.duration = duration;
    this.sums = new Float64Array(items.length + 1);
    for (let k = 0; k < items.length; ++k) this.sums[k + 1] = this.sums[k] + duration[items[k]];
    this.levels = [];
    for (let level = Int32Array.from(items.keys()); level.length > kFan; ) {
      const next = new Int32Array(Math.ceil(level.length / kFan));
      for (let index = 0; index < next.length; ++index) {
        let best = level[index * kFan];
        for (let k = index * kFan + 1; k < Math.min(level.length, (index + 1) * kFan); ++k) {
          if (this.length(level[k]) > this.length(best)) best = level[k];
        }
        next[index] = best;
      }
      this.levels.push(next);
      level = next;
    }
  }

  length(k) {
    return this.duration[this.items[k]];
  }

  // The first span that begins at `time` or later.
  firstAt(time) {
    let low = 0,
      high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begin[this.items[middle]] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  // The first span that has not ended at `time`.
  firstAlive(time) {
    const index = this.firstAt(time);
    if (index > 0) {
      const before = this.items[index - 1];
      if (this.begin[before] + this.duration[before] > time) return index - 1;
    }
    return index;
  }

  // The longest of the spans [from, to).
  longest(from, to) {
    let best = from;
    let level = -1;
    const see = k => {
      if (this.length(k) > this.length(best)) best = k;
    };
    const valueAt = index => (level < 0 ? index : this.levels[level][index]);
    while (from < to) {
      while (from < to && from % kFan !== 0) see(valueAt(from++));
      while (from < to && to % kFan !== 0) see(valueAt(--to));
      if (from >= to) break;
      if (level + 1 >= this.levels.length) {
        while (from < to) see(valueAt(from++));
        break;
      }
      from /= kFan;
      to /= kFan;
      ++level;
    }
    return best;
  }

  setMask(mask) {
    this.found = null;
    if (!mask || !this.style.searchable) return;
    this.found = new Int32Array(this.items.length + 1);
    for (let k = 0; k < this.items.length; ++k) this.found[k + 1] = this.found[k] + mask[this.items[k]];
  }

  // The span under a time, or the nearest one within `slack`; -1: none.
  pick(time, slack) {
    const from = this.firstAlive(time - slack);
    const to = this.firstAt(time + slack);
    if (from >= to) return -1;
    const inside = this.firstAlive(time);
    if (inside < this.items.length && this.begin[this.items[inside]] <= time) return this.items[inside];
    return this.items[this.longest(from, to)];
  }

  // Draws at y; `x` maps a time to pixels, `view` is [begin, end] of the visible times.
  draw(canvas, x, view, y, height, searching, labels = true) {
    const {items, begin, duration} = this;
    const perPixel = (view[1] - view[0]) / Math.max(1, x(view[1]) - x(view[0]));
    const right = x(view[1]);
    const end = this.firstAt(view[1]);
    const wide = 3 * perPixel;
    for (let k = this.firstAlive(view[0]); k < end; ) {
      const item = items[k];
      if (duration[item] >= wide) {
        const left = Math.max(x(begin[item]), x(view[0]) - 2);
        const width = Math.min(x(begin[item] + duration[item]), right + 2) - left;
        const hit = !searching || (this.found && this.found[k + 1] > this.found[k]);
        canvas.globalAlpha = hit ? this.style.alpha(item) : 0.13;
        canvas.fillStyle = this.style.colour(item);
        canvas.fillRect(left, y, Math.max(width - (width > 4 ? 1 : 0.4), 1), height);
        if (labels && width > 34 && hit) this.label(canvas, item, left, y, width, height);
        ++k;
        continue;
      }
      // A column: all narrow spans that begin within two pixels of this one.
      const from = begin[item];
      const until = from + 2 * perPixel;
      let to = this.firstAtFrom(until, k + 1);
      const best = this.longest(k, to);
      if (this.length(best) >= wide) to = Math.max(k + 1, best);
      const shown = this.longest(k, to);
      const last = items[to - 1];
      const span = Math.max(begin[last] + duration[last] - from, 2 * perPixel);
      const busy = Math.min(1, (this.sums[to] - this.sums[k]) / span);
      const hits = this.found ? this.found[to] - this.found[k] : 0;
      canvas.globalAlpha = searching && hits === 0 ? 0.1 : (0.25 + 0.75 * busy) * this.style.alpha(items[shown]);
      canvas.fillStyle = this.style.colour(items[shown]);
      canvas.fillRect(x(from), y, Math.max(1, Math.min(2, x(begin[last] + duration[last]) - x(from))), height);
      k = to;
    }
    canvas.globalAlpha = 1;
  }

  // As firstAt, but searched from a place onwards, in steps that double.
  firstAtFrom(time, from) {
    let step = 1,
      low = from;
    const count = this.items.length;
    while (low + step < count && this.begin[this.items[low + step]] < time) {
      low += step;
      step *= 2;
    }
    let high = Math.min(count, low + step);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begin[this.items[middle]] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  label(canvas, item, left, y, width, height) {
    const text = this.style.label(item);
    const room = Math.floor((width - 8) / 6.1);
    if (room < 3) return;
    const shown = text.length <= room ? text : `${text.slice(0, room - 1)}…`;
    canvas.globalAlpha = 1;
    canvas.fillStyle = this.style.ink(item);
    canvas.fillText(shown, Math.max(left, 0) + 4, y + height / 2 + 0.5);
  }
}

// The grammar by which every command of acltape picks calls (cli/choices/selection.h), and free text.
//
//   100-200   step:3   op:aten::mm,aten::add*   stream:1   line:train.py:41   step:3/op:aten::mm
//
// Anything else is free text: calls whose operator, module, range or line contains it.

class SelectionError extends Error {}

function parseRange(text) {
  const match = /^(\d+)(?:(-)(\d*))?$/.exec(text);
  if (!match) throw new SelectionError(`'${text}' is no number or range such as 100-200`);
  const first = Number(match[1]);
  const last = !match[2] ? first : match[3] === "" ? Infinity : Number(match[3]);
  if (last < first) throw new SelectionError(`'${text}': the first number must be the smaller one`);
  return [first, last];
}

// A pattern in which "*" stands for any text, also none.
function matchesPattern(pattern, text) {
  const [head, ...rest] = pattern.split("*");
  if (!rest.length) return pattern === text;
  if (!text.startsWith(head)) return false;
  let position = head.length;
  const tail = rest.pop();
  for (const part of rest) {
    const found = text.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return text.length - position >= tail.length && text.endsWith(tail);
}

// The name of an operator without its overload: "aten::add" of "aten::add.Tensor".
function bareName(name) {
  const dot = name.indexOf(".", name.lastIndexOf(":") + 1);
  return dot < 0 ? name : name.slice(0, dot);
}

// "train.py:41": a file without its folders, and perhaps lines of it.
function parseLine(text) {
  const colon = text.lastIndexOf(":");
  const file = colon < 0 ? text : text.slice(0, colon);
  if (file === "") throw new SelectionError(`'line:${text}' names no file, such as line:train.py:41`);
  const ranges =
    colon < 0
      ? [[0, Infinity]]
      : text
          .slice(colon + 1)
          .split(",")
          .map(parseRange);
  const wanted = Calls.places.map(
    ([path, line]) =>
      matchesPattern(file, path.slice(path.lastIndexOf("/") + 1)) &&
      ranges.some(([first, last]) => first <= line && line <= last),
  );
  if (!wanted.length) throw new SelectionError("the trace has no lines of source; record with --stacks top");
  return i => Calls.place[i] > 0 && wanted[Calls.place[i] - 1];
}

function parseTerm(text) {
  const [, word, rest] = /^(step:|op:|stream:|line:)?(.*)$/s.exec(text);
  if (rest === "") throw new SelectionError(`'${text}' is no term; examples: 100-200, step:3, op:aten::mm, stream:1`);
  if (word === "op:") {
    const patterns = rest.split(",");
    if (patterns.includes("")) throw new SelectionError(`'${text}' is no list of operators`);
    const wanted = Calls.ops.map(([name]) =>
      patterns.some(pattern => matchesPattern(pattern, name) || matchesPattern(pattern, bareName(name))),
    );
    return i => wanted[Calls.op[i]];
  }
  if (word === "line:") return parseLine(rest);
  const ranges = rest.split(",").map(parseRange);
  const holds = number => ranges.some(([first, last]) => first <= number && number <= last);
  if (word === "stream:") return i => Calls.stream[i] > 0 && holds(Calls.stream[i]);
  if (word !== "step:") return i => holds(Calls.id[i]);
  if (!Calls.stepBounds.length) throw new SelectionError("the trace has no steps to pick from");
  const step = new Uint8Array(Calls.count);
  for (const bound of Calls.stepBounds) if (holds(bound.step)) step.fill(1, bound.from, bound.to);
  return i => step[i] === 1;
}

function parseText(text) {
  const wanted = text.toLowerCase();
  const has = word => word.toLowerCase().includes(wanted);
  const ops = Calls.ops.map(([name]) => has(name));
  const scopes = new Set(
    [...Calls.scopes.values()].filter(scope => has(scope.path || scope.name || "")).map(scope => scope.scope_id),
  );
  const places = Calls.places.map(place => has(`${place[0]}:${place[1]} ${place[2]}`));
  return i => ops[Calls.op[i]] || scopes.has(Calls.scope[i]) || (Calls.place[i] > 0 && places[Calls.place[i] - 1]);
}

// A function of an index. Commands pick leaves and calls alike; so does this. Throws SelectionError.
function parseSelection(text) {
  const looksLikeSelection = /^(\d+(-\d*)?(,|\/|$)|step:|op:|stream:|line:)/.test(text);
  if (!looksLikeSelection) return parseText(text);
  const terms = text.split("/").map(parseTerm);
  return i => terms.every(term => term(i));
}

// The searched text, and the calls that were found.
const Search = {
  text: "",
  mask: null,
  found: [],
  index: -1,
  listeners: [],

  run(text) {
    this.text = text.trim();
    const input = document.getElementById("search-text");
    const state = document.getElementById("search-state");
    input.classList.remove("wrong");
    this.mask = null;
    this.found = [];
    this.index = -1;
    if (this.text === "") {
      state.textContent = "";
    } else {
      try {
        const picks = parseSelection(this.text);
        this.mask = new Uint8Array(Calls.count);
        for (let i = 0; i < Calls.count; ++i) {
          if (picks(i)) {
            this.mask[i] = 1;
            this.found.push(i);
          }
        }
        state.textContent = plural(this.found.length, "call");
        state.title = "";
      } catch (error) {
        if (!(error instanceof SelectionError)) throw error;
        input.classList.add("wrong");
        state.textContent = state.title = error.message;
        this.mask = null;
      }
    }
    for (const listener of this.listeners) listener();
    if (this.found.length) showFound();
    else if (this.text === "" && Detail.showsList) Detail.close();
  },

  // Goes to the next (1) or previous (-1) call found.
  go(by) {
    if (!this.found.length) return;
    this.index = (this.index + by + this.found.length) % this.found.length;
    Detail.show(this.found[this.index], {zoom: true});
  },

  start() {
    const input = document.getElementById("search-text");
    document.getElementById("search").addEventListener("submit", event => {
      event.preventDefault();
      if (input.value.trim() !== this.text) this.run(input.value);
      else this.go(1);
    });
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      // Enter may have come first; a panel that was closed since then stays closed.
      timer = setTimeout(
        () => {
          if (input.value.trim() !== this.text) this.run(input.value);
        },
        Calls.count > 300000 ? 350 : 120,
      );
    });
    document.getElementById("search-next").addEventListener("click", () => this.go(1));
    document.getElementById("search-previous").addEventListener("click", () => this.go(-1));
  },
};

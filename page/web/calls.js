// The calls of the trace as columns, and what follows from them: nesting, steps, modules, own time.

const Calls = {
  count: 0,

  start() {
    const column = name => Data.columns.get(`calls.${name}`);
    for (const name of [
      "id",
      "parent",
      "thread",
      "scope",
      "bits",
      "begin",
      "duration",
      "signature",
      "stream",
      "forward",
      "place",
    ])
      this[name] = column(name);
    this.count = this.id.length;
    const {ops, signatures} = Data.json.get("signatures");
    this.ops = ops;
    this.signatures = signatures;
    this.op = new Int32Array(this.count);
    for (let i = 0; i < this.count; ++i) this.op[i] = signatures[this.signature[i]][0];
    this.steps = Data.json.get("facts").steps;
    this.scopes = new Map(Data.json.get("scopes").map(scope => [scope.scope_id, scope]));
    this.places = Data.json.get("places");
    this.setTimes();
    this.nest();
    this.rankOperators();
    this.findStepBounds();
  },

  // Times count from the first thing that happened.
  setTimes() {
    const ranges = Data.columns.get("ranges.begin");
    const device = Data.columns.get("device.begin");
    let first = Infinity,
      last = 0;
    for (let i = 0; i < this.count; ++i) {
      if (this.begin[i] < first) first = this.begin[i];
      if (this.begin[i] + this.duration[i] > last) last = this.begin[i] + this.duration[i];
    }
    if (this.count === 0) {
      first = ranges.length ? ranges[0] : 0;
      last = first + 1;
    }
    this.origin = first;
    this.span = Math.max(last - first, 1);
    for (const times of [this.begin, ranges, device]) {
      if (times) for (let i = 0; i < times.length; ++i) times[i] -= first;
    }
  },

  // Encloser (index, -1: none), depth in its thread, and time without the calls inside.
  nest() {
    this.encloser = new Int32Array(this.count).fill(-1);
    this.depth = new Uint8Array(this.count);
    this.own = new Float64Array(this.duration);
    const open = new Map(); // by thread: the calls that have not ended
    for (let i = 0; i < this.count; ++i) {
      let stack = open.get(this.thread[i]);
      if (!stack) open.set(this.thread[i], (stack = []));
      const begin = this.begin[i];
      while (stack.length) {
        const top = stack[stack.length - 1];
        if (this.begin[top] + this.duration[top] > begin) break;
        stack.pop();
      }
      this.depth[i] = Math.min(stack.length, 255);
      if (stack.length) {
        const around = stack[stack.length - 1];
        this.encloser[i] = around;
        this.own[around] = Math.max(0, this.own[around] - this.duration[i]);
      }
      stack.push(i);
    }
  },

  isLeaf(i) {
    return (this.bits[i] & 4) !== 0;
  },
  failed(i) {
    return (this.bits[i] & 8) !== 0;
  },
  phase(i) {
    return ["forward", "backward", "optimizer", ""][this.bits[i] & 3];
  },
  name(i) {
    return this.ops[this.op[i]][0];
  },
  // True if the call gives the stream that it names something to do.
  putsWork(i) {
    return this.stream[i] > 0 && this.ops[this.op[i]][2] === 1;
  },
  end(i) {
    return this.begin[i] + this.duration[i];
  },

  // Operators by the time of their leaves; the first ones get the colours.
  rankOperators() {
    const time = new Float64Array(this.ops.length);
    for (let i = 0; i < this.count; ++i) if (this.isLeaf(i)) time[this.op[i]] += this.duration[i];
    const order = [...time.keys()].sort((a, b) => time[b] - time[a]);
    this.rank = new Int32Array(this.ops.length);
    for (const [index, op] of order.entries()) this.rank[op] = time[op] > 0 ? index : 1e6;
    this.leafTime = time;
    this.operatorOrder = order.filter(op => time[op] > 0);
    this.names = new Set(this.ops.map(([name]) => name));
  },
  colour(i) {
    return Theme.colour(this.rank[this.op[i]]);
  },

  // The index of the call with an id; -1 if the page does not have it.
  indexOf(id) {
    const index = d3.bisectLeft(this.id, id);
    return index < this.count && this.id[index] === id ? index : -1;
  },

  // First and last index, begin and end of each step. In between other processes have calls too; they
  // are no part of a step.
  findStepBounds() {
    this.stepBounds = [];
    const {process_of_steps, threads} = Data.json.get("facts");
    // Threads of other processes than the one that has the steps.
    this.otherThreads = new Set(
      threads.filter(row => process_of_steps && row.process_id !== process_of_steps).map(row => row.thread_id),
    );
    for (const [step, first, last, what] of this.steps) {
      const from = d3.bisectLeft(this.id, first);
      const to = d3.bisectRight(this.id, last);
      if (from >= to) continue;
      let begin = Infinity,
        end = 0,
        calls = 0,
        leaves = 0,
        inside = 0;
      for (let i = from; i < to; ++i) {
        if (this.otherThreads.has(this.thread[i])) continue;
        ++calls;
        if (this.begin[i] < begin) begin = this.begin[i];
        if (this.end(i) > end) end = this.end(i);
        if (this.isLeaf(i)) {
          ++leaves;
          inside += this.duration[i];
        }
      }
      if (calls) this.stepBounds.push({step, what, from, to, begin, end, calls, leaves, inside});
    }
    this.stepFroms = Int32Array.from(this.stepBounds, bound => bound.from);
  },
  // The step of a call, as its bounds; null outside of steps.
  stepOf(i) {
    const bound = this.stepBounds[d3.bisectRight(this.stepFroms, i) - 1];
    return bound && i < bound.to && !this.otherThreads.has(this.thread[i]) ? bound : null;
  },

  // The path of the innermost module around a call. Backward work has that of its forward leaf.
  moduleOf(i) {
    const own = this.moduleOfScope(this.scope[i]);
    if (own) return own;
    for (let around = i, steps = 0; around >= 0 && steps < 64; around = this.encloser[around], ++steps) {
      if (!this.forward[around]) continue;
      const forward = this.indexOf(this.id[around] - this.forward[around]);
      return forward < 0 ? "" : this.moduleOfScope(this.scope[forward]);
    }
    return "";
  },
  moduleOfScope(id) {
    if (!this.modules) this.modules = new Map();
    if (this.modules.has(id)) return this.modules.get(id);
    let path = "";
    for (
      let scope = this.scopes.get(id), deep = 0;
      scope && deep < 256;
      scope = this.scopes.get(scope.parent_id), ++deep
    ) {
      if (scope.kind !== "module") continue;
      path = modulePath(scope, this.scopes);
      break;
    }
    this.modules.set(id, path);
    return path;
  },

  placeText(i) {
    if (!this.place[i]) return "";
    const [file, line, inside] = this.places[this.place[i] - 1];
    // A program without lines has the name of its file alone.
    return `${this.shortFile(file)}${line ? `:${line}` : ""}${inside ? ` (${inside})` : ""}`;
  },

  // A file below the folder in which the program ran, or below that of its script, is named from there on.
  shortFile(file) {
    this.folders ??= foldersOfProgram(Data.json.get("facts").meta);
    const folder = this.folders.find(one => file.startsWith(one));
    return folder ? file.slice(folder.length) : file;
  },

  argumentsOf(i) {
    return this.signatures[this.signature[i]][1];
  },
  // "float32[8, 64], float32[64, 64]": the tensors that it is given.
  shapesText(i) {
    return this.argumentsOf(i)
      .filter(([, way, text]) => way !== 1 && /\[/.test(text))
      .map(([, , text]) => text)
      .join(", ");
  },
};

// The folder in which the program ran and that of its script, each with a slash at its end.
function foldersOfProgram(meta) {
  const cwd = `${meta.cwd || ""}/`;
  let words = [];
  try {
    words = JSON.parse(meta.command);
  } catch {
    // Without a command there is no script.
  }
  const script = words.find(word => word.endsWith(".py") && word.includes("/")) || "";
  const folder = script.slice(0, script.lastIndexOf("/") + 1);
  return [cwd, folder.startsWith("/") ? folder : cwd + folder].filter(one => one.length > 1);
}

// A module's names from the outermost module inwards; ranges of the user between them are left out.
function modulePath(scope, scopes) {
  const names = [];
  for (let deep = 0; scope && deep < 256; scope = scopes.get(scope.parent_id), ++deep) {
    if (scope.kind === "module") names.unshift(scope.name);
  }
  return names.join("/");
}

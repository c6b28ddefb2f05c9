// The runs of a fleet. A run is a matrix of ranks and columns; a column is a step, or several of them.

const Fleet = {
  facts: null,
  runs: [],
  run: null, // the chosen one
  listeners: [],

  start() {
    this.facts = Data.json.get("fleet");
    this.runs = this.facts.runs.map((run, index) => new FleetRun(run, index));
    this.run = this.runs[0] || null;
    const choice = document.getElementById("run");
    choice.append(...this.runs.map(run => make("option", {value: String(run.index)}, run.name)));
    choice.addEventListener("change", () => this.choose(this.runs[Number(choice.value)]));
    document.getElementById("run-choice").hidden = this.runs.length < 2;
  },
  choose(run) {
    this.run = run;
    for (const listener of this.listeners) listener();
  },
};

class FleetRun {
  constructor(facts, index) {
    Object.assign(this, facts);
    this.index = index;
    this.columns = Math.ceil(this.steps.length / this.each);
    this.roles = [...new Set(this.labels)].sort();
    const places = new Map(this.roles.map((role, place) => [role, place]));
    this.roleOf = Int32Array.from(this.labels, label => places.get(label));
  }
  // First and last step of a column.
  stepsOf(column) {
    const first = column * this.each;
    return [this.steps[first], this.steps[Math.min(first + this.each, this.steps.length) - 1]];
  }
  stepText(column) {
    const [first, last] = this.stepsOf(column);
    return first === last ? `step ${first}` : `steps ${first} to ${last}`;
  }
  rankText(row) {
    return `rank ${this.ranks[row]}${this.labels[row] ? ` (${this.labels[row]})` : ""}`;
  }
}

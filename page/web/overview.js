// The first section: what was recorded and what to do with it, in words.

function commandText(meta) {
  try {
    return JSON.parse(meta.command).map(shellWord).join(" ");
  } catch {
    return meta.command || "";
  }
}

const kFindingSource = {
  stored: "stored in the trace",
  computed: "made for this page, as `acltape lint` does",
  both: "lint's made for this page, the others stored in the trace",
};
const kStepSource = {
  period: "They are a guess, by what repeats; `acltape record --steps-from NAME` takes the program's own ranges.",
  optimizer: "They were recorded as steps: each ends with a step of the optimizer.",
};
function stepSourceText(foundBy) {
  if (foundBy.startsWith("range:vllm.step")) {
    return "They are those of vLLM's engine: each is one execution of its model, with the sampling.";
  }
  if (foundBy.startsWith("range:")) return `They are ranges of the program, ${foundBy.slice(6)}.`;
  return kStepSource[foundBy] || "";
}

// Runs that timed the steps: the newest eager one, and the newest captured ones.
function timedRuns() {
  const {runs, samples} = Data.json.get("runs");
  return runs.filter(run => samples[run.run_id]).map(run => ({...run, times: samples[run.run_id]}));
}

// The runs of the last `compare`: from the newest eager one on.
function lastComparison() {
  const runs = timedRuns();
  return runs.slice(Math.max(0, runs.map(run => run.mode).lastIndexOf("eager")));
}

// The saving as it is known best: measured, else predicted. Null if nothing is known.
function savingOf() {
  // What the program captures itself is no saving of a plan.
  if (Data.json.get("plan").in_own_graphs) return null;
  const timed = timedRuns();
  const last = mode => timed.filter(run => run.mode === mode).pop();
  const eager = last("eager"),
    captured = last("captured");
  if (eager && captured) {
    const before = d3.median(eager.times.host),
      after = d3.median(captured.times.host);
    return {how: "measured", before, after, plan: captured.plan_id, what: "host time"};
  }
  const predicted = Data.json.get("plan").predicted;
  if (!predicted || !(predicted.eager_ns > 0)) return null;
  return {
    how: "predicted",
    before: predicted.eager_ns,
    after: predicted.captured_ns,
    what: "latency",
    stay: predicted.stay_eager,
    reason: predicted.reason,
  };
}

function card(figure, what, more = "") {
  return make(
    "div",
    {class: "card"},
    make("div", {class: "what"}, what),
    make("div", {class: "figure"}, figure),
    more ? make("div", {class: "more"}, more) : null,
  );
}

function overviewSection(section) {
  const facts = Data.json.get("facts"),
    plan = Data.json.get("plan"),
    extent = Data.json.get("extent");
  const {ledger, source} = Data.json.get("findings");
  const causes = findingCauses();
  const errors = causes.filter(([row]) => row.severity === "error").length;
  const {meta} = facts;
  const word = traceWord(facts);
  const memory = Data.json.get("memory");
  const leaves = d3.sum(Calls.bits, bits => (bits & 4 ? 1 : 0));
  const bounds = Calls.stepBounds;
  const stepTimes = bounds.map(bound => bound.end - bound.begin);
  section.append(make("h1", {}, facts.title));
  const recorded = meta.begin_wall_ns ? new Date(Number(meta.begin_wall_ns) / 1e6) : null;
  if (recorded || meta.torch_version)
    section.append(
      make(
        "p",
        {class: "lead"},
        "Recorded" +
          `${recorded ? ` on ${recorded.toLocaleString("en-GB", {dateStyle: "long", timeStyle: "short"})}` : ""}` +
          `${meta.host ? ` on ${meta.host}` : ""}${meta.torch_version ? `, PyTorch ${meta.torch_version}` : ""}.`,
      ),
    );
  if (commandText(meta)) section.append(commandLine(commandText(meta)));
  if (extent.shown < extent.all) {
    section.append(
      make(
        "p",
        {class: "note"},
        `This page shows the earliest ${countText(extent.shown)} of ${plural(extent.all, "call")}. ` +
          `Make it with --max-calls ${extent.all} to see all of them.`,
      ),
    );
  }
  if (facts.state !== "complete") {
    section.append(make("p", {class: "note"}, `The trace is ${facts.state}: it may lack something that happened.`));
  }
  if (!facts.process_shown && facts.process_of_steps) {
    const process = facts.processes.find(row => row.process_id === facts.process_of_steps);
    section.append(
      make(
        "p",
        {class: "soft"},
        `${plural(facts.processes.length, "process", "processes")} worked. Steps, plan and findings are those of ` +
          `process ${facts.process_of_steps} (${process.name}, pid ${process.pid}); ` +
          "`acltape report --process N` shows another one.",
      ),
    );
  }
  const saving = savingOf();
  section.append(
    make(
      "div",
      {class: "cards"},
      card(
        countText(extent.all),
        "calls",
        `${countText(leaves)} leaves${extent.shown < extent.all ? " shown" : ""}, ` +
          `${plural(facts.ops, "operator")}`,
      ),
      card(
        timeText(Calls.span),
        "recorded",
        `${plural(facts.threads.length, "thread")}, ${plural(facts.processes.length, "process", "processes")}`,
      ),
      bounds.length
        ? card(countText(bounds.length), "steps", `median ${timeText(d3.median(stepTimes))}`)
        : card("none", "steps", "the program does not repeat"),
      saving
        ? card(
            saving.before > saving.after ? timeText(saving.before - saving.after) : "nothing",
            `saved by capture per replayed step, ${saving.how}`,
            `${saving.what} of a replay: ${timeText(saving.before)} to ${timeText(saving.after)}` +
              (stepTimes.length ? `; the program's step takes ${timeText(d3.median(stepTimes))}` : ""),
          )
        : null,
      memory.places.length
        ? card(
            bytesText(memory.places[0].peak_bytes),
            "most bytes alive",
            `${memoryPlaceName(memory, memory.places[0])}, ${plural(memory.places[0].buffers, "buffer")}`,
          )
        : null,
      card(
        countText(causes.length),
        causes.length === 1 ? "finding" : "findings",
        errors ? plural(errors, "error") : "no errors",
      ),
    ),
  );

  const left = make("div"),
    right = make("div");
  section.append(make("div", {class: "columns"}, left, right));

  left.append(make("h2", {}, "What dominates"));
  const total = d3.sum(Calls.leafTime);
  const top = Calls.operatorOrder.slice(0, 6);
  if (!top.length)
    left.append(make("p", {class: "empty"}, "The trace holds no leaves; record a program that calls operators."));
  const among = d3.sum(top.slice(0, 3), op => Calls.leafTime[op]) / total;
  if (top.length > 3)
    left.append(make("p", {class: "soft"}, `Three operators take ${shareText(among)} of the time in leaves.`));
  left.append(
    ...top.map(op => {
      const share = Calls.leafTime[op] / total;
      const bar = make("i");
      bar.style.width = `${share * 100}%`;
      bar.style.background = Theme.colour(Calls.rank[op]);
      Theme.listeners.push(() => (bar.style.background = Theme.colour(Calls.rank[op])));
      return make(
        "button",
        {
          type: "button",
          class: "share",
          title: "Find its calls",
          on: {
            click: () => {
              Sections.open("timeline");
              setSearch(`op:${Calls.ops[op][0]}`);
            },
          },
        },
        make("span", {class: "name"}, Calls.ops[op][0]),
        make("span", {class: "number"}, timeText(Calls.leafTime[op])),
        make("span", {class: "number"}, shareText(share)),
        make("span", {class: "bar"}, bar),
      );
    }),
  );
  if (bounds.length) {
    left.append(
      make("h2", {}, "Steps"),
      make(
        "p",
        {},
        `${plural(bounds.length, "step")}, ${timeText(d3.min(stepTimes))} to ${timeText(d3.max(stepTimes))}, ` +
          `median ${timeText(d3.median(stepTimes))}, ` +
          `with ${plural(Math.round(d3.median(bounds, bound => bound.leaves)), "leaf", "leaves")}. ` +
          `${stepSourceText(facts.steps_found_by)}`,
      ),
    );
  }
  if (bounds.length && !Data.json.get("breakdown").rows.length) {
    const inside = d3.median(bounds, bound => bound.inside / Math.max(1, bound.end - bound.begin));
    left.append(
      make("p", {class: "soft"}, `Operators fill ${shareText(inside)} of a step's time; the rest passes between them.`),
    );
  }

  left.append(...breakdownBlock(facts, word));
  left.append(...waitsBlock(word));

  right.append(make("h2", {}, "What can be captured"));
  right.append(...captureSentences(plan, facts));
  right.append(make("h2", {}, "What it saves"));
  right.append(...savingSentences(saving, word, stepTimes));
  right.append(make("h2", {}, "What is wrong"));
  right.append(
    make(
      "p",
      {},
      causes.length === 0 ? "Lint found nothing. " : `${findingsText(causes)} (${kFindingSource[source]}). `,
      causes.length
        ? make("button", {type: "button", class: "link", on: {click: () => Sections.open("findings")}}, "Show them")
        : null,
    ),
  );
  const loss = ledger.filter(row => row.severity !== "info");
  right.append(
    make(
      "p",
      {},
      loss.length === 0
        ? "The recording lost nothing."
        : `The ledger has ${plural(loss.length, "entry", "entries")}: ${loss
            .map(row => row.kind.replaceAll("_", " "))
            .slice(0, 4)
            .join(", ")}.`,
    ),
  );

  section.append(
    make("h2", {}, "What to do next"),
    ...nextCommands(plan, facts, saving).map(([text, command]) =>
      make("div", {}, make("h3", {}, text), commandLine(command)),
    ),
  );
}

function captureSentences(plan, facts) {
  if (!plan.regions?.length) {
    return [make("p", {}, plan.why_none || "No plan could be made.")];
  }
  const captured = plan.regions.filter(region => region.captured && region.already < region.calls),
    held = d3.sum(plan.regions, region => region.already),
    eager = plan.regions.filter(region => !region.captured);
  const calls = d3.sum(captured, region => region.calls);
  const all = d3.sum(plan.regions, region => region.calls);
  if (plan.in_own_graphs === all) {
    return [
      ...ownGraphSentences(),
      make(
        "p",
        {},
        `All ${countText(all)} calls of step ${plan.step} are in them or are the run before their capture, ` +
          "so a plan adds nothing.",
      ),
    ];
  }
  const origin = {
    stored: `the stored plan ${plan.name}`,
    file: `the plan ${plan.name}`,
    computed: "a plan made for this page",
  }[plan.source];
  const own = held
    ? `Graphs of the program's own hold ${countText(held)} of the ${countText(all)} calls of step ` +
      `${plan.step} already. `
    : "";
  const first =
    captured.length === 0
      ? `${own}By ${origin}, no ${held ? "further " : ""}graph would hold calls of step ${plan.step}.`
      : `${own}By ${origin}, ${plural(captured.length, held ? "further graph" : "graph")} would hold ` +
        `${countText(calls)} of the ${countText(all)} calls of step ${plan.step}, on up to ` +
        `${plural(plan.streams, "stream")}.`;
  const lines = [
    ...ownGraphSentences(),
    plan.in_own_graphs && !held
      ? make(
          "p",
          {},
          `${countText(plan.in_own_graphs)} of the ${countText(all)} calls of step ${plan.step} lie in these graphs, ` +
            "and a plan adds nothing to them.",
        )
      : null,
    make(
      "p",
      {},
      first,
      " ",
      make("button", {type: "button", class: "link", on: {click: () => Sections.open("graph")}}, "Show the graph"),
    ),
  ];
  if (eager.length) {
    const reasons = d3
      .nest()
      .key(region => region.reason || "not worth a graph")
      .rollup(rows => rows.length)
      .entries(eager)
      .sort((a, b) => b.value - a.value);
    lines.push(
      make(
        "p",
        {},
        `${plural(eager.length, "part")} ${eager.length === 1 ? "stays" : "stay"} eager: ${reasons
          .slice(0, 3)
          .map(row => row.key)
          .join("; ")}.`,
      ),
    );
  }
  if (facts.breaks.length) {
    const worst = facts.breaks[0];
    lines.push(
      make(
        "p",
        {class: "soft"},
        `Over the whole trace ${plural(
          d3.sum(facts.breaks, row => row.calls),
          "call",
        )} would end a capture, most often ${worst.op} (${worst.reason}).`,
      ),
    );
  }
  return lines.filter(Boolean);
}

// The graphs that the program captures itself.
function ownGraphSentences() {
  const {graphs} = Data.json.get("own_graphs");
  if (!graphs.length) return [];
  const executions = d3.sum(graphs, graph => graph.executions);
  return [
    make(
      "p",
      {},
      `The program captures ${plural(graphs.length, "graph")} itself and executes ` +
        `${graphs.length === 1 ? "it" : "them"} ${executions === 1 ? "once" : `${countText(executions)} times`}. `,
      make(
        "button",
        {type: "button", class: "link", on: {click: () => Sections.open("own-graphs")}},
        graphs.length === 1 ? "Show it" : "Show them",
      ),
    ),
  ];
}

const usesTorch = () => Boolean(Data.json.get("facts").meta.torch_version);

// A replay issues the calls of a step alone: what it takes is not what the step of the program takes.
function savingSentences(saving, word, stepTimes) {
  if (!saving && Data.json.get("plan").in_own_graphs)
    return [make("p", {}, "The step executes graphs already; what a plan predicts for their calls says nothing here.")];
  if (!saving) return [make("p", {}, "Nothing is measured or predicted yet."), commandLine(`acltape compare ${word}`)];
  const ratio = saving.after > 0 ? saving.before / saving.after : 0;
  const program = stepTimes.length
    ? `The step of the program takes ${timeText(d3.median(stepTimes))} (median), with what ` +
      `${usesTorch() ? "Python and the framework do" : "the program does"} between the calls. `
    : "";
  if (saving.how === "measured") {
    return [
      make(
        "p",
        {},
        `Measured by acltape compare: ${saving.what} of a replayed step goes from ` +
          `${timeText(saving.before)} eager to ${timeText(saving.after)} captured (medians), ` +
          `a factor of ${ratio.toFixed(2)}. ${program}`,
        make(
          "button",
          {type: "button", class: "link", on: {click: () => Sections.open("measurements")}},
          "Show the distributions",
        ),
      ),
    ];
  }
  const lines = [
    make(
      "p",
      {},
      `Predicted by the plan, not measured: ${saving.what} of a step goes from ` +
        `${timeText(saving.before)} to ${timeText(saving.after)}, a factor of ${ratio.toFixed(2)}. ${program}`,
    ),
  ];
  if (saving.stay) lines.push(make("p", {class: "note"}, saving.reason || "The plan advises to stay eager."));
  lines.push(make("p", {class: "soft"}, "This measures it:"), commandLine(`acltape compare ${word}`));
  return lines;
}

// The trace as a word of a command, with the process whose steps the page shows.
function traceWord(facts) {
  const one = facts.processes.length > 1 && facts.process_of_steps;
  return one ? `${facts.word} --process ${facts.process_of_steps}` : facts.word;
}

function nextCommands(plan, facts, saving) {
  const word = traceWord(facts);
  const commands = [];
  const own = plan.in_own_graphs > 0;
  if (own) commands.push(["See why it captured each of its graphs", `acltape captures ${word}`]);
  if (!facts.steps.length)
    commands.push([
      "Record with ranges that mark the steps",
      `acltape record --steps-from 'step*' -o ${facts.word} --force -- ${commandText(facts.meta)}`,
    ]);
  if (plan.source === "computed" && !own)
    commands.push(["Keep the plan as a file", `acltape plan ${word} -o plan.json`]);
  const {findings, source} = Data.json.get("findings");
  if (findings.length && source !== "stored")
    commands.push(["Keep the findings, and prove them on a device", `acltape lint ${word} --prove`]);
  if (saving?.how !== "measured" && !own)
    commands.push([
      "Measure eager against captured",
      `acltape compare ${word}${plan.source === "file" ? ` --plan ${shellWord(plan.name)}` : ""}`,
    ]);
  if (plan.source && !own)
    commands.push([
      "Try to break the plan before it is trusted",
      `acltape prove ${word} --plan ${plan.source === "file" ? shellWord(plan.name) : "plan.json"}`,
    ]);
  const different = Data.json.get("runs").comparisons.find(row => row.verdict === "different");
  if (different) commands.push(["Find the calls that make captured results differ", `acltape bisect ${word}`]);
  return commands.slice(0, 4);
}

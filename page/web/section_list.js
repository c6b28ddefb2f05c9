// The sections of the report page.

const kSections = [
  {name: "overview", title: "Overview", make: overviewSection},
  {
    name: "timeline",
    title: "Timeline",
    full: true,
    make: section => Timeline.make(section),
    count: () => Calls.count,
  },
  {
    name: "graph",
    title: "Step graph",
    full: true,
    make: section => StepGraph.make(section),
    count: () => Data.json.get("plan").nodes_in_all,
  },
  {
    name: "own-graphs",
    title: "Own graphs",
    make: ownGraphsSection,
    count: () => Data.json.get("own_graphs").graphs.length,
  },
  {name: "operators", title: "Operators", make: operatorsSection, count: () => Calls.names.size},
  {name: "icicle", title: "Time by nesting", make: icicleSection},
  {name: "memory", title: "Memory", make: memorySection},
  {
    name: "findings",
    title: "Findings",
    make: findingsSection,
    count: () => findingCauses().length,
  },
  {
    name: "measurements",
    title: "Eager and captured",
    make: measurementsSection,
    count: () => lastComparison().length,
  },
  {
    name: "bisections",
    title: "Bisections",
    make: bisectionSection,
    count: () => Data.json.get("searches").witnesses.length,
  },
  {name: "ranks", title: "Ranks", make: ranksSection, count: () => Data.json.get("ranks").ranks.length},
  {name: "against", title: "Other trace", make: againstSection},
];

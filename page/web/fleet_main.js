// Starts the page of a fleet.

const kFleetSections = [
  {name: "overview", title: "Overview", make: fleetOverview},
  {
    name: "matrix",
    title: "Ranks and steps",
    full: true,
    make: section => (Fleet.run ? Matrix.make(section) : noRuns(section)),
  },
  {
    name: "ranks",
    title: "Ranks",
    make: section => (Fleet.run ? fleetRanks(section) : noRuns(section)),
    count: () => Fleet.run?.ranks.length ?? 0,
  },
];

function noRuns(section) {
  section.append(make("p", {class: "empty"}, "No run of this folder could be read; the overview says why."));
}

async function startFleet() {
  Theme.start();
  await readData();
  Fleet.start();
  const {title, folder} = Fleet.facts;
  document.title = `${title} – acltape fleet`;
  document.getElementById("title").textContent = title;
  document.getElementById("subtitle").textContent = folder;
  document.getElementById("wait").remove();
  Sections.start(kFleetSections);
  startFleetKeys();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

startFleet().catch(error => {
  const wait = document.getElementById("wait");
  const text = `The page could not be shown: ${error.message}. A browser from 2023 on is needed.`;
  if (wait) wait.textContent = text;
  console.error(error);
});

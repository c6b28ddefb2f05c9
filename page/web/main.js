// Starts the page: reads the data, then shows the section of the address.

async function start() {
  Theme.start();
  await readData();
  const facts = Data.json.get("facts");
  document.title = `${facts.title} – acltape`;
  document.getElementById("title").textContent = facts.title;
  document.getElementById("subtitle").textContent = commandText(facts.meta);
  Calls.start();
  Folds.find();
  document.getElementById("wait").remove();
  Sections.start(kSections);
  Search.start();
  startKeys();
  // Tests and measurements read here when the page could be used.
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch(error => {
  const wait = document.getElementById("wait");
  const text = `The page could not be shown: ${error.message}. A browser from 2023 on is needed.`;
  if (wait) wait.textContent = text;
  console.error(error);
});

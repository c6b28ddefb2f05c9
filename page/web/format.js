// Numbers in words, and elements of the page. Text from a trace enters the page here alone, as
// textContent.

function threeDigits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function timeText(ns) {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return "";
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${threeDigits(ns / 1e3)} µs`;
  if (size < 1e9) return `${threeDigits(ns / 1e6)} ms`;
  if (size < 120e9) return `${threeDigits(ns / 1e9)} s`;
  return `${threeDigits(ns / 60e9)} min`;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  while (Math.abs(bytes) >= 1024 && index + 1 < units.length) {
    bytes /= 1024;
    ++index;
  }
  return `${index === 0 ? Math.round(bytes) : threeDigits(bytes)} ${units[index]}`;
}

const countText = number => Number(number).toLocaleString("en-US");
const shareText = share =>
  share > 0 && share < 0.0005
    ? "< 0.1 %"
    : `${share >= 0.0995 ? (share * 100).toFixed(0) : (share * 100).toFixed(1)} %`;
const capital = text => text.slice(0, 1).toUpperCase() + text.slice(1);

// About so many bytes from 0 to `most` that are round: the distance is a power of two.
function byteTicks(most, count) {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(most / count)));
  return d3.range(0, most + 1, step);
}
const plural = (number, word, words = `${word}s`) => `${countText(number)} ${number === 1 ? word : words}`;

// An element. `options` are properties; `children` are elements or texts.
function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("aria-") || key.startsWith("data-") || key === "role") element.setAttribute(key, value);
    else if (key === "on")
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else element[key] = value;
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    if (child instanceof Node) element.append(child);
    else if (tag === "p") element.append(...withCode(String(child)));
    else element.append(String(child));
  }
  return element;
}

// Makes code of the text between backticks.
function withCode(text) {
  return text.split("`").map((part, index) => {
    if (index % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}

// A word of a POSIX shell.
const shellWord = text => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// A command that can be copied.
function commandLine(text) {
  const copy = make("button", {type: "button", title: "Copy"}, "copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange(); // pages from disk may lack the clipboard
      range.selectNodeContents(copy.previousSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    copy.textContent = "copied";
    setTimeout(() => (copy.textContent = "copy"), 1200);
  });
  return make("div", {class: "command"}, make("code", {}, text), copy);
}

// Buttons of which one is chosen.
function choice(words, chosen, onChoose) {
  const box = make("span", {class: "choice", role: "group"});
  for (const [value, text] of words) {
    box.append(
      make(
        "button",
        {
          type: "button",
          "aria-pressed": value === chosen,
          on: {
            click: event => {
              for (const other of box.children) other.setAttribute("aria-pressed", other === event.currentTarget);
              onChoose(value);
            },
          },
        },
        text,
      ),
    );
  }
  return box;
}

function showTip(event, title, ...lines) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(make("b", {}, title), ...lines.filter(Boolean).map(line => make("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 10 : event.clientX + 14;
  const y = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}
const hideTip = () => (document.getElementById("tip").hidden = true);

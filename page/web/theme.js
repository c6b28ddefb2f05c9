// Colours, in light and dark. The most expensive operators have colours of their own.

const Theme = {
  dark: false,
  listeners: [],
  // Hues that stay apart for most kinds of colour blindness; the last one is for all others.
  light: [
    "#3b75b5",
    "#d98b3a",
    "#4f9a6a",
    "#b4566a",
    "#7a6bb8",
    "#3f9aa6",
    "#b0923c",
    "#8a5a44",
    "#6f93c4",
    "#c07a9c",
    "#7f9a4b",
    "#9aa0a8",
  ],
  night: [
    "#6ba3e0",
    "#e6a65c",
    "#6dbb8a",
    "#d6788b",
    "#9e90dc",
    "#5fbcc8",
    "#cdb25f",
    "#b58468",
    "#8fb0dd",
    "#d99abb",
    "#a0bc6c",
    "#7d848d",
  ],
  colours() {
    return this.dark ? this.night : this.light;
  },
  colour(index) {
    const all = this.colours();
    return all[Math.min(index, all.length - 1)];
  },
  words: new Map(),
  // A colour of the style sheet; asking the style costs too much for each thing drawn.
  word(name) {
    if (!this.words.has(name)) {
      this.words.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    }
    return this.words.get(name);
  },
  set(dark) {
    this.dark = dark;
    this.words.clear();
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    for (const listener of this.listeners) listener();
  },
  start() {
    const system = matchMedia("(prefers-color-scheme: dark)");
    let chosen = null;
    try {
      chosen = localStorage.getItem("acltape-theme");
    } catch {
      /* no storage on file:// in some browsers */
    }
    this.set(chosen ? chosen === "dark" : system.matches);
    system.addEventListener("change", () => {
      if (!chosen) this.set(system.matches);
    });
    document.getElementById("theme").addEventListener("click", () => this.toggle());
  },
  toggle() {
    this.set(!this.dark);
    try {
      localStorage.setItem("acltape-theme", this.dark ? "dark" : "light");
    } catch {
      /* likewise */
    }
  },
};

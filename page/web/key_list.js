// The keys of a page as a list, and the dialog that shows them.

// keys: [key, what it does, more about it].
function showKeys(keys) {
  const dialog = document.getElementById("keys");
  if (dialog.open) return dialog.close();
  dialog.onclick = event => {
    if (event.target === dialog) dialog.close();
  };
  dialog.replaceChildren(
    make("h1", {}, "Keys"),
    make(
      "table",
      {},
      make(
        "tbody",
        {},
        keys.map(([key, what, more]) =>
          make(
            "tr",
            {},
            make("td", {}, make("kbd", {}, key)),
            make("td", {}, what, more ? make("div", {class: "faint"}, more) : null),
          ),
        ),
      ),
    ),
  );
  dialog.showModal();
  return null;
}

// Tables that sort by a click on a column, filter by a text, and show more rows on request.
//
//   dataTable({columns: [{title, value: row => ..., text: row => ..., right: true}], rows, onRow})
//
// `sort` is the place of a column that is not optional, among those before which none is.

function dataTable({
  columns,
  rows,
  onRow = null,
  sort = -1,
  ascending = false,
  filter = true,
  shown = 200,
  placeholder = "Filter",
}) {
  const box = make("div", {class: "tablebox"});
  const body = make("tbody");
  const state = {sort, ascending, text: "", shown};
  const textOf = (column, row) => (column.text ? column.text(row) : column.value(row));
  // An optional column is left out where no row has a text for it.
  columns = columns.filter(column => !column.optional || rows.some(row => String(textOf(column, row) ?? "") !== ""));
  const heads = columns.map((column, index) => {
    const mark = make("span", {class: "faint"});
    const button = make(
      "button",
      {
        type: "button",
        on: {
          click: () => {
            state.ascending = state.sort === index ? !state.ascending : !column.right;
            state.sort = index;
            draw();
          },
        },
      },
      column.title,
      mark,
    );
    return {
      cell: make("th", {class: column.right ? "right" : "", scope: "col", title: column.hint || ""}, button),
      mark,
    };
  });
  const count = make("span", {class: "soft"});
  const more = make(
    "button",
    {
      type: "button",
      class: "plain-button",
      on: {
        click: () => {
          state.shown *= 5;
          draw();
        },
      },
    },
    "Show more",
  );
  box.append(
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          heads.map(head => head.cell),
        ),
      ),
      body,
    ),
  );

  function draw() {
    let kept = rows;
    if (state.text) {
      const wanted = state.text.toLowerCase();
      kept = rows.filter(row =>
        columns.some(column =>
          String(textOf(column, row) ?? "")
            .toLowerCase()
            .includes(wanted),
        ),
      );
    }
    if (state.sort >= 0) {
      const {value} = columns[state.sort];
      const way = state.ascending ? 1 : -1;
      kept = [...kept].sort((a, b) => {
        const x = value(a) ?? "",
          y = value(b) ?? "";
        return (x < y ? -1 : x > y ? 1 : 0) * way;
      });
    }
    heads.forEach((head, index) => {
      head.mark.textContent = index === state.sort ? (state.ascending ? " ↑" : " ↓") : "";
      head.cell.setAttribute(
        "aria-sort",
        index === state.sort ? (state.ascending ? "ascending" : "descending") : "none",
      );
    });
    body.replaceChildren(
      ...kept.slice(0, state.shown).map(row => {
        const line = make(
          "tr",
          {class: onRow ? "go" : ""},
          columns.map(column => {
            const cell = make("td", {
              class: `${column.right ? "right" : "name"}${column.mono ? " mono" : ""}${column.whole ? " whole" : ""}`,
            });
            const content = column.element ? column.element(row) : (textOf(column, row) ?? "");
            cell.append(content instanceof Node ? content : String(content));
            if (column.share) {
              const bar = make("div", {class: "under"});
              bar.style.width = `${Math.max(0, Math.min(100, 100 * column.share(row)))}%`;
              cell.append(bar);
            }
            return cell;
          }),
        );
        if (onRow)
          line.addEventListener("click", event => {
            if (!event.target.closest("button")) onRow(row);
          });
        return line;
      }),
    );
    count.textContent =
      kept.length === rows.length
        ? plural(rows.length, "row")
        : `${countText(kept.length)} of ${plural(rows.length, "row")}`;
    more.hidden = kept.length <= state.shown;
  }

  const input = make("input", {
    class: "filter",
    type: "search",
    placeholder,
    spellcheck: false,
    "aria-label": placeholder,
  });
  input.addEventListener("input", () => {
    state.text = input.value;
    draw();
  });
  draw();
  return make("div", {}, filter && rows.length > 6 ? make("div", {class: "bar-row"}, input, count) : null, box, more);
}

// Sorts and filters tables, opens parts, and changes the theme; the page is complete without it.
// A link such as report.html#sort=ranked-1:3:descending&filter=ranked-1:rope opens a view.
(() => {
  "use strict";

  const bodyOf = (table) => table.tBodies[0];
  const toolsOf = (table) => document.getElementById(`${table.id}-tools`);

  function value(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    const number = text === "" ? NaN : Number(text);
    return { text, number, missing: text === "" || text === "\u2014" };
  }

  function compare(a, b) {
    const both = !Number.isNaN(a.number) && !Number.isNaN(b.number);
    return both ? a.number - b.number : a.text.localeCompare(b.text, undefined, { numeric: true });
  }

  // Rows without a value stay last in both directions; equal rows keep their order.
  function sort(table, column, direction) {
    const sign = direction === "descending" ? -1 : 1;
    const rows = [...bodyOf(table).rows].map((row) => ({ row, at: value(row, column) }));
    rows.sort((a, b) => a.at.missing - b.at.missing || sign * compare(a.at, b.at));
    bodyOf(table).append(...rows.map((entry) => entry.row));
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      head.setAttribute("aria-sort", index === column ? direction : "none");
    });
  }

  function filter(table, text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of bodyOf(table).rows) {
      const content = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => content.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    const total = bodyOf(table).rows.length;
    toolsOf(table).querySelector("output").textContent = `${shown} of ${total} rows`;
  }

  function prepare(table) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const numeric = head.classList.contains("n");
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const first = numeric && head.dataset.better === "higher" ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        sort(table, column, now === first ? other : first);
      });
    });
    const tools = toolsOf(table);
    tools.hidden = bodyOf(table).rows.length < 6;
    tools.querySelector("input").addEventListener("input", (event) => {
      filter(table, event.target.value);
    });
    filter(table, "");
  }

  // A table that fits needs no box of its own: its head can stick to the window then, and the
  // keyboard does not stop at it.
  function measure() {
    const boxes = [...document.querySelectorAll(".scroll")].filter((box) => box.clientWidth);
    for (const box of boxes) box.classList.remove("fits");
    const fits = boxes.map((box) => box.scrollWidth <= box.clientWidth);
    boxes.forEach((box, at) => {
      box.classList.toggle("fits", fits[at]);
      if (fits[at]) box.removeAttribute("tabindex");
      else box.tabIndex = 0;
    });
  }

  function openAround(element) {
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
  }

  function follow() {
    let text = location.hash.slice(1);
    try { text = decodeURIComponent(text); } catch { return; }
    const target = document.getElementById(text);
    if (target) {
      openAround(target);
      target.scrollIntoView({ block: target.matches("h2, h3, h4") ? "start" : "center" });
      return;
    }
    for (const part of text.split("&")) {
      const [, verb, key, rest] = part.match(/^(sort|filter)=([\w-]+):(.*)$/) ?? [];
      const table = key && document.getElementById(key);
      if (!table || !table.matches("table.sortable")) continue;
      openAround(table);
      if (verb === "sort") {
        const [column, direction] = rest.split(":");
        if (table.tHead.rows[0].cells[Number(column)]) {
          sort(table, Number(column), direction === "descending" ? direction : "ascending");
        }
      } else {
        toolsOf(table).querySelector("input").value = rest;
        filter(table, rest);
      }
    }
  }

  function folds() {
    const parts = [...document.querySelectorAll("details.part")];
    const tools = document.getElementById("folds");
    if (!tools || parts.length < 2) return;
    const button = tools.querySelector("button");
    tools.hidden = false;
    const all = () => parts.every((part) => part.open);
    button.addEventListener("click", () => {
      const open = !all();
      for (const part of parts) part.open = open;
    });
    const name = () => { button.textContent = all() ? "Close all parts" : "Open all parts"; };
    for (const part of parts) part.addEventListener("toggle", name);
    addEventListener("beforeprint", () => { for (const part of parts) part.open = true; });
  }

  // Storage may be denied; then the theme lasts as long as the page.
  function theme() {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const wish = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.theme ?? (wish.matches ? "dark" : "light")) === "dark";
    const name = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
    try {
      const kept = localStorage.getItem("attention-bench-theme");
      if (kept === "dark" || kept === "light") root.dataset.theme = kept;
    } catch { /* nothing was kept */ }
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("attention-bench-theme", root.dataset.theme); } catch { /* lost */ }
      name();
    });
    wish.addEventListener("change", name);
    button.hidden = false;
    name();
  }

  theme();
  document.querySelectorAll("table.sortable").forEach(prepare);
  folds();
  measure();
  addEventListener("resize", measure);
  document.addEventListener("toggle", measure, true);
  addEventListener("hashchange", follow);
  follow();
})();

"use strict";
const root = document.documentElement;
const button = document.getElementById("theme");
const dark = () => root.dataset.theme
  ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
name();
button.hidden = false;

const worth = (row, column) => {
  const text = row.cells[column].textContent;
  const number = Number(text.replaceAll(",", ""));
  return text === "–" ? -Infinity : Number.isNaN(number) ? text : number;
};
for (const heading of document.querySelectorAll("table.sortable thead th")) {
  const sorter = document.createElement("button");
  sorter.type = "button";
  sorter.setAttribute("aria-label", `Sort by ${heading.textContent}`);
  const [, before, last] = /^(.*?)(\S+)$/s.exec(heading.textContent.trim());
  const kept = document.createElement("span");
  kept.append(last, sorter);
  heading.replaceChildren(before, kept);
  heading.addEventListener("click", () => {
    const body = heading.closest("table").tBodies[0];
    const falls = heading.classList.contains("number");
    const down = heading.ariaSort ? heading.ariaSort === "ascending" : falls;
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].sort((one, two) => {
      const [a, b] = [worth(one, heading.cellIndex), worth(two, heading.cellIndex)];
      return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
    });
    body.append(...rows);
  });
}

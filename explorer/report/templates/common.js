"use strict";
// What all pages do: values while the pointer or the keyboard rests on a mark, a kernel shown wherever it occurs, pictures and
// tables as files, lines to copy. Pages change what they draw, so everything is found when it is needed.
(function () {
const near_px = 14;
const box = document.createElement("div");
box.id = "tip";
box.hidden = true;
box.setAttribute("role", "status");
document.body.append(box);

// A title becomes a label, which browsers do not show a second time beside ours.
function labelled(svg) {
  for (const title of svg.querySelectorAll("title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }
}
const tipped = (target) => target.closest && target.closest("[data-tip]");
function nearest(svg, x, y) {
  let best = null, least = near_px;
  for (const mark of svg.querySelectorAll("circle[data-tip], .mark[data-tip]")) {
    const at = mark.getBoundingClientRect(), away = Math.hypot(at.x + at.width / 2 - x, at.y + at.height / 2 - y);
    if (away < least) [best, least] = [mark, away];
  }
  return best;
}
function show(mark, x, y) {
  box.hidden = !mark;
  if (!mark) return;
  box.textContent = mark.dataset.tip;
  const width = box.offsetWidth, height = box.offsetHeight;
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
  box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
}
function link(target) {
  const found = target && target.closest && target.closest("[data-kernel]");
  for (const old of document.querySelectorAll(".linked")) old.classList.remove("linked");
  document.body.classList.toggle("linking", Boolean(found));
  if (!found) return;
  for (const same of document.querySelectorAll("[data-kernel]")) same.classList.toggle("linked", same.dataset.kernel === found.dataset.kernel);
}
document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest && event.target.closest("svg");
  if (svg) labelled(svg);
  const mark = tipped(event.target) || (svg && nearest(svg, event.clientX, event.clientY));
  show(mark, event.clientX, event.clientY);
  link(mark || event.target);
});
document.addEventListener("focusin", (event) => {
  const svg = event.target.closest("svg");
  if (!svg) return;
  labelled(svg);
  const at = event.target.getBoundingClientRect();
  show(tipped(event.target), at.x + at.width / 2, at.y + at.height / 2);
  link(event.target);
});
for (const leaving of ["focusout", "scroll"]) document.addEventListener(leaving, () => { show(null); link(null); }, true);
document.documentElement.addEventListener("pointerleave", () => { show(null); link(null); });
// One stop of Tab for each picture; arrows go from mark to mark.
document.addEventListener("keydown", (event) => {
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (event.key === "Escape") show(null);
  if (!step || event.shiftKey || !event.target.matches("svg .mark")) return;
  const marks = [...event.target.closest("svg").querySelectorAll(".mark")];
  const next = marks[(marks.indexOf(event.target) + step + marks.length) % marks.length];
  event.target.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus({preventScroll: true});
  event.preventDefault();
});

function save(name, type, text) {
  const at = document.createElement("a");
  at.href = URL.createObjectURL(new Blob([text], {type}));
  at.download = name;
  at.click();
  setTimeout(() => URL.revokeObjectURL(at.href), 1000);
}
const fileName = (element, extension) => {
  const heading = [...document.querySelectorAll("h1, h2, h3, figcaption")].filter((h) => h.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
  return `${(heading ? heading.textContent : document.title).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "rubato"}.${extension}`;
};
// Columns of numbers with one unit keep it in the heading, so that programs read numbers.
function csvOf(table) {
  const rows = [...table.rows].map((row) => [...row.cells].map((cell) => cell.dataset.full || cell.innerText.trim()));
  const head = rows.shift();
  const quoted = (cell) => /[",\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell;
  head.forEach((name, c) => {
    const parts = rows.map((row) => /^([+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)\s?(%|ms|us|s|J|W|MHz)?$/.exec(row[c] || "") || (row[c] === "-" ? ["", "", null] : null));
    const units = new Set(parts.filter((p) => p && p[2] !== null).map((p) => p[2]));
    if (parts.some((p) => !p) || units.size !== 1) return;
    rows.forEach((row, r) => { row[c] = parts[r][1].replace(/,/g, "").replace(/^\+/, ""); });
    const [unit] = units;
    if (unit) head[c] = `${name} (${unit})`;
  });
  return [head, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}
// Colours come from the page's style sheet: what they are now is written into each element.
const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor", "paint-order", "display"];
function svgOf(svg) {
  labelled(svg);
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    to[i].removeAttribute("style");
    for (const name of kept) to[i].setAttribute(name, style.getPropertyValue(name));
    if (!element.dataset.tip) return;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = element.dataset.tip;
    to[i].prepend(title);
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", width], ["height", height], ["fill", getComputedStyle(document.body).backgroundColor]]) ground.setAttribute(name, value);
  copy.prepend(ground);
  for (const [name, value] of [["xmlns", "http://www.w3.org/2000/svg"], ["width", width], ["height", height], ["font-family", "system-ui, sans-serif"]]) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy);
}
function button(text, label, click) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", click);
  return made;
}
function tool(frame, made) {
  const bar = document.createElement("div");
  bar.className = "tools";
  bar.append(made);
  frame.after(bar);
}
// On a telephone a table wider than the screen shows what it is for; a button brings the other columns back.
const telephone = matchMedia("(max-width: 600px)");
function ranksOf(titles) {
  let last = 0;
  return titles.map((title, c) => {
    if (/^(ours|blind)$/.test(title)) return last + .5;
    if (/^(from|to|at most|low|high|expected|worst|most|[59]0 %.*)(, %)?$/i.test(title)) return last + 2.2;
    const said = c === 0 || /^(tp|pp|dp|GPUs|slack.*|granularity|plan|one clock by)$/i.test(title) ? 0 : / (J|W|s)$|power|^model/i.test(title) ? 4 : /energy|cost|sav|error|difference|mean/i.test(title) ? 1 :
      /verdict|^(our )?clocks?\b/i.test(title) ? 2 : /^notes/i.test(title) ? 3.1 : /time|regret/i.test(title) ? 3 : 4;
    last = said;
    return said;
  });
}
function fitted(frame) {
  const table = frame.querySelector("table"), rows = [...table.rows], cells = [...rows[0].cells];
  for (const cell of table.querySelectorAll(".aside")) cell.classList.remove("aside");
  const more = frame.parentNode.querySelector(`:scope > .tools > .more[data-of="${frame.dataset.tools}"]`);
  if (more) more.hidden = true;
  if (!telephone.matches || frame.scrollWidth <= frame.clientWidth + 1 || rows.some((row) => row.cells.length !== cells.length)) return;
  if (more) more.hidden = false;
  if (frame.dataset.all) return;
  const ranks = ranksOf(cells.map((cell) => cell.innerText.trim()));
  const order = cells.map((_, c) => c).slice(1).sort((a, b) => ranks[b] - ranks[a] || b - a);
  for (const c of order) {
    if (frame.scrollWidth <= frame.clientWidth + 1) break;
    for (const row of rows) row.cells[c].classList.add("aside");
  }
}
function copied(code) {
  const text = code.textContent;
  const done = button("Copy", `Copy: ${text}`, async () => {
    let fine = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(code);
      fine = document.execCommand("copy");
    }
    done.textContent = fine ? "Copied" : "Selected: copy by hand";
    setTimeout(() => { done.textContent = "Copy"; }, 1500);
  });
  code.after(done);
}
let framed = 0;
function prepare() {
  for (const frame of document.querySelectorAll(".chart")) {
    const svg = frame.querySelector("svg");
    if (!svg) continue;
    // Of d3's marks too, which are drawn again.
    if (![...svg.querySelectorAll(".mark")].includes(document.activeElement))
      svg.querySelectorAll(".mark").forEach((mark, i) => mark.setAttribute("tabindex", i === 0 ? 0 : -1));
    if (frame.dataset.tools) continue;
    frame.dataset.tools = "1";
    tool(frame, button("SVG", "Save the picture as SVG", () => { const now = frame.querySelector("svg"); save(fileName(now, "svg"), "image/svg+xml", svgOf(now)); }));
  }
  for (const frame of document.querySelectorAll(".scroll")) {
    if (frame.dataset.tools || frame.matches(".chart") || !frame.querySelector("table thead")) continue;
    frame.dataset.tools = `${++framed}`;
    tool(frame, button(frame.dataset.part ? "CSV of the rows shown" : "CSV", "Save the table as CSV", () => { const now = frame.querySelector("table"); save(fileName(now, "csv"), "text/csv", csvOf(now)); }));
    const more = button("All columns", "Show all columns of the table", () => {
      if (frame.dataset.all) delete frame.dataset.all;
      else frame.dataset.all = "1";
      more.textContent = frame.dataset.all ? "Fewer columns" : "All columns";
      fitted(frame);
    });
    more.className = "more";
    more.dataset.of = frame.dataset.tools;
    frame.nextElementSibling.append(more);
  }
  for (const table of document.querySelectorAll(".scroll[data-tools] > table:not([data-fitted])")) {
    if (!table.tHead || table.offsetParent === null) continue;
    table.dataset.fitted = "1";
    fitted(table.parentNode);
  }
  for (const code of document.querySelectorAll(".copied code")) if (!code.nextElementSibling) copied(code);
}
new MutationObserver(prepare).observe(document.querySelector("main"), {childList: true, subtree: true});
prepare();
telephone.addEventListener("change", () => { for (const table of document.querySelectorAll("table[data-fitted]")) fitted(table.parentNode); });
document.addEventListener("toggle", prepare, true);
})();

"use strict";
(function () {
const data = JSON.parse(document.getElementById("data").textContent);
const color = (i) => `var(--c${((i % 6) + 6) % 6})`;
const words = (name) => String(name).replace(/_/g, " ");
const fixed = (x, digits) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
const signed = (x, digits = 1) => (x > 0 ? "+" : "") + fixed(x, digits);
const percent = (x, digits = 1) => x === null || x === undefined ? "-" : `${signed(x, digits)} %`;

// A table from rows, whose longer texts take several lines; columns are [title, value(row), is number].
const longest_line = 24;
function table(target, columns, rows) {
  const element = d3.select(target).html("").append("table");
  element.append("thead").append("tr").selectAll("th").data(columns).join("th")
    .attr("scope", "col").classed("number", (c) => c[2]).text((c) => c[0]);
  element.append("tbody").selectAll("tr").data(rows).join("tr").selectAll("td")
    .data((row) => columns.map((c) => [c[1](row), c[2]])).join("td")
    .classed("number", (cell) => cell[1]).classed("words", (cell) => String(cell[0]).length > longest_line)
    .text((cell) => cell[0]);
}

// Marks beside savings, each kind once with its first reason; nothing where there is none.
function listNotes(target, notes) {
  const first = notes.filter((n, i) => notes.findIndex((m) => m.kind === n.kind) === i);
  d3.select(target).selectAll("li").data(first).join("li").text((n) => `${n.kind}: ${n.reason}.`);
}

function chart(target, width, height, label) {
  return d3.select(target).html("").append("svg").attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img").attr("aria-label", label);
}

function key(target, entries) {
  const items = d3.select(target).html("").selectAll("span").data(entries).join("span");
  items.append("svg").attr("viewBox", "0 0 14 12").attr("aria-hidden", "true").append("path")
    .attr("d", (e) => e.path || "M3 2 h8 v8 h-8 Z")
    .attr("fill", (e) => e.path ? "none" : e.color).attr("stroke", (e) => e.color).attr("stroke-width", 1.6)
    .attr("stroke-dasharray", (e) => e.dash || null);
  items.append("span").text((e) => e.name);
}

"use strict";
(function () {
const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const color = (i) => `var(--c${((i % 6) + 6) % 6})`;
// Names of columns as words, units behind a comma: "power_limit_w" is "power limit, W".
const units_of_names = {w: "W", s: "s", us: "us", j: "J", mhz: "MHz", pct: "%", utc: "UTC"};
const named_unit = (name) => { const [, what, end] = /^(.*)_([a-z]+)$/.exec(name) || []; const unit = units_of_names[end]; return [String(unit ? what : name).replace(/_/g, " "), unit]; };
const words = (name) => { const [what, unit] = named_unit(name); return unit ? `${what}, ${unit}` : what; };
const with_value = (name, value) => { const [what, unit] = named_unit(name); return `${what} ${value}${unit && value !== "-" ? ` ${unit}` : ""}`; };
const short = (text, most = 60) => String(text).length > most ? `${String(text).slice(0, most - 1)}…` : String(text);
// As the terminal has them: four digits in us, ms or s.
function timeText(s) {
  const [unit, factor] = s !== 0 && Math.abs(1e6 * s) < 999.95 ? ["us", 1e6] : s !== 0 && Math.abs(1e3 * s) < 999.95 ? ["ms", 1e3] : ["s", 1];
  return `${Math.abs(s) >= 9999.5 ? s.toFixed(0) : Number((factor * s).toPrecision(4))} ${unit}`;
}
const fixed = (x, digits) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
const signed = (x, digits = 1) => (x > 0 && fixed(x, digits) !== fixed(0, digits) ? "+" : "") + fixed(x, digits);
const percent = (x, digits = 1) => x === null || x === undefined ? "-" : `${signed(x, digits)} %`;
// As asked for, without digits that say nothing: "5 %".
const withinText = (slack_pct) => ` in at most ${+slack_pct.toPrecision(6)} % more time`;
// Of a plan that had odds to keep: whole percents, never certain.
// Whether a plan's 90 % interval does not hold both saving and not saving: else nobody should set it unmeasured.
const isKnown = (p) => !(p.energy_change_low_pct < 0 && p.energy_change_high_pct >= 0);
const unknownText = (p) => isKnown(p) ? "" : " Not known: it may save nothing, by its interval. Measure it before you set it.";
const oddsText = (p) => p.odds_pct > 0 && p.odds_in_time_pct !== null ? `, with ${Math.max(1, Math.min(99, Math.floor(p.odds_in_time_pct)))} % odds` : "";
const least_shown_pct = 0.005;  // half of the last digit of a change
const clockCount = (count) => `${count} clock${count === 1 ? "" : "s"}`;
const range = (low, high, digits) => `${percent(low, digits)} to ${percent(high, digits)}`;
const clockWords = (clock) => { const [mem, core] = clock.split("/"); return core === undefined ? `core ${clock.replace(" ", " MHz, ")}${clock.includes(" ") ? "" : " MHz"}` : `memory ${mem}${mem === "auto" ? "" : " MHz"}, core ${core}${core === "auto" ? "" : " MHz"}`; };

// A table from rows, whose longer texts take several lines; columns are [title, value(row), is number]. A column with nothing in it is left out.
// @param kernel  of a row, for highlighting
const longest_line = 24;
const has_text = (columns, rows) => rows.length === 0 ? columns : columns.filter((c) => rows.some((row) => { const text = String(c[1](row)); return text !== "-" && text !== ""; }));
function table(target, all_columns, rows, kernel) {
  const columns = has_text(all_columns, rows);
  const element = d3.select(target).html("").append("table");
  element.append("thead").append("tr").selectAll("th").data(columns).join("th")
    .attr("scope", "col").classed("number", (c) => c[2]).text((c) => c[0]);
  const lines = element.append("tbody").selectAll("tr").data(rows).join("tr");
  if (kernel) lines.attr("data-kernel", kernel);
  lines.selectAll("td").data((row) => columns.map((c) => [c[1](row), c[2]])).join("td")
    .classed("number", (cell) => cell[1]).classed("words", (cell) => String(cell[0]).length > longest_line)
    .text((cell) => cell[0]);
}

// Pairs of a name and a text that takes as many lines as it needs; not a table to save.
function facts(target, pairs) {
  const lines = d3.select(target).html("").append("table").append("tbody").selectAll("tr").data(pairs).join("tr");
  lines.append("th").attr("scope", "row").text((p) => p[0]);
  lines.append("td").attr("class", "free").text((p) => p[1] === null || p[1] === undefined ? "-" : String(p[1]));
}

// Marks beside savings, each kind once with its first reason; nothing where there is none.
function listNotes(target, notes) {
  const first = notes.filter((n, i) => notes.findIndex((m) => m.kind === n.kind) === i);
  d3.select(target).selectAll("li").data(first).join("li").text((n) => `${n.kind}: ${n.reason}.`);
}

// The width to draw at, so that a letter is as large on a telephone as on a desk.
const widest = 1000, narrowest = 330, narrow = 600;
const drawWidth = (target) => Math.max(narrowest, Math.min(widest, Math.round(document.querySelector(target).clientWidth) || widest));
// Draws again when the window gets another width.
function whenResized(draw) {
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
}

function chart(target, width, height, label) {
  return d3.select(target).html("").append("svg").attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img").attr("aria-label", label);
}

// Axes of time against energy, in percent, with lines at no change.
function timeEnergyAxes(svg, x, y, width, height, margin, what) {
  const ticks = width < narrow ? 4 : 9;
  const digits = (scale) => scale.domain()[1] - scale.domain()[0] < 6 ? 1 : 0;
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).ticks(ticks).tickFormat((v) => percent(v, digits(x))));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(8).tickFormat((v) => percent(v, digits(y))));
  for (const [x1, x2, y1, y2] of [[x(0), x(0), margin.top, height - margin.bottom], [margin.left, width - margin.right, y(0), y(0)]])
    svg.append("line").attr("class", "zero").attr("x1", x1).attr("x2", x2).attr("y1", y1).attr("y2", y2).attr("stroke-dasharray", "3 3");
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", height - 8).attr("text-anchor", "end").text(`time of ${what} against default clocks`);
  svg.append("text").attr("class", "soft").attr("x", margin.left + 6).attr("y", 11).text("energy against default clocks");
}

// What is drawn in a picture, in its units, as boxes [left, top, right, bottom]: a curve is many small ones.
function inkOf(svg) {
  const node = svg.node(), frame = node.getBoundingClientRect(), scale = node.viewBox.baseVal.width / frame.width;
  const boxes = [...node.querySelectorAll("line, text, circle, .mark")].map((e) => e.getBoundingClientRect())
    .map((b) => [b.left, b.top, b.right, b.bottom].map((v, i) => scale * (v - (i % 2 ? frame.top : frame.left))));
  for (const curve of node.querySelectorAll("path.front, path.bound")) {
    for (let at = 0, length = curve.getTotalLength(); at <= length; at += 3) {
      const {x, y} = curve.getPointAtLength(at);
      boxes.push([x, y, x, y]);
    }
  }
  return boxes;
}

// Writes a label beside a point: in the nearest place where nothing is drawn, or else where least is.
// @param room  [left, top, right, bottom] that it may take
function labelBeside(target, text, [x, y], ink, room) {
  const label = target.append("text").attr("class", "label").text(text), width = label.node().getComputedTextLength(), height = 14, apart = 3;
  let best = null, least = Infinity;
  for (const away of [10, 15, 20, 28, 38, 50, 65, 85, 110]) for (let turn = 0; turn < 16 && least > 0; ++turn) {
    const angle = Math.PI * (0.25 + turn / 8), left = x + Math.cos(angle) * (away + width / 2) - width / 2, top = y + Math.sin(angle) * (away + height / 2) - height / 2;
    if (left < room[0] || top < room[1] || left + width > room[2] || top + height > room[3]) continue;
    const met = ink.filter((b) => b[0] < left + width + apart && b[2] > left - apart && b[1] < top + height + apart && b[3] > top - apart).length;
    if (met < least) [best, least] = [[left, top], met];
  }
  if (best) label.attr("x", best[0]).attr("y", best[1] + 11);
  else label.remove();
}

function key(target, entries) {
  const items = d3.select(target).html("").selectAll("span").data(entries).join("span");
  items.append("svg").attr("viewBox", "0 0 14 12").attr("aria-hidden", "true").append("path")
    .attr("d", (e) => e.path || "M3 2 h8 v8 h-8 Z")
    .attr("fill", (e) => e.path ? "none" : e.color).attr("stroke", (e) => e.color).attr("stroke-width", 1.6)
    .attr("stroke-dasharray", (e) => e.dash || null);
  items.append("span").text((e) => e.name);
}

// A bar of shares: parts are [name, amount].
function shareBar(target, keyTarget, parts, of) {
  const all = d3.sum(parts, (p) => p[1]) || 1, width = 900;
  const svg = chart(target, width, 26, `${of}: ${parts.map(([name, amount]) => `${name} ${fixed(100 * amount / all, 1)} %`).join(", ")}`);
  let x = 0;
  parts.forEach(([name, amount], i) => {
    const w = width * amount / all;
    svg.append("rect").attr("class", "part").attr("x", x).attr("y", 4).attr("width", w).attr("height", 18).attr("fill", color(i))
      .append("title").text(`${name}: ${fixed(100 * amount / all, 1)} %`);
    x += w;
  });
  key(keyTarget, parts.map(([name, amount], i) => ({name: `${name}: ${fixed(100 * amount / all, 1)} %`, color: color(i)})));
}

function fill(id, entries, chosen, change) {
  const select = element(id);
  d3.select(select).selectAll("option").data(entries).join("option").attr("value", (e) => e[0]).text((e) => short(e[1], 90));
  if (chosen !== null) select.value = chosen;
  select.addEventListener("change", change);
  return select;
}

// A line to type, with what it is for before it; hidden where there is none.
function commandLine(id, before, line) {
  const target = element(id);
  target.hidden = !line;
  target.textContent = "";
  if (!line) return;
  const code = document.createElement("code");
  code.textContent = line;
  target.append(`${before} `, code);
}

// Numbers and their unit stay on one line.
const unbroken = (text) => text.replace(/(\d) %/g, "$1\u00a0%");

// The headline: what is set, what that saves, the lines to type.
function headline(what, saved, set_line = null, finer = "", play_line = null) {
  const target = d3.select("#answer").html("");
  target.append("b").text(what);
  target.append("span").text(unbroken(saved));
  const [set, back] = set_line || [];
  commandLine("set-line", "To set:", set && `${set}   # back: ${back}`);
  element("finer").textContent = unbroken(finer);
  commandLine("play-line", "To play it:", play_line);
}

// What fit and cross-validation left on energy (or, failing that, power): the worst.
// @param errors  [name, value]
function worstError(errors) {
  const about = (word) => errors.filter((e) => e[0].includes(word) && !e[0].includes("_scale_"));
  const found = about("energy").length > 0 ? about("energy") : about("power");
  return found.length === 0 ? null : d3.greatest(found, (e) => e[1]);
}
const errorText = (e) => e === null ? "-" : `${e[1].toFixed(2)} ${e[0].includes("_scale_") ? "times" : e[0].endsWith("_points") ? "points" : "%"}`;
const errorName = (name) => words(name.replace(/_(pct|points)$/, "")).replace(/ (mape|mae)$/, ", mean absolute");

"use strict";
// One page for all kinds of runs: sections without data are left out. It is fed by one document: the five lines of the answer, tables as
// objects of columns, and for pages that commands write the charts to draw from them.
(function () {
const page = JSON.parse(document.getElementById("data").textContent);
const rowsOf = (name) => { const t = page.tables[name]; return t ? t.rows.map((row) => Object.fromEntries(t.columns.map((c, i) => [c, row[i]]))) : []; };
const element = (id) => document.getElementById(id);
const made = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
};

// Words. Names of columns, units behind a comma: "power_limit_w" is "power limit, W".
const units_of_names = {w: "W", s: "s", us: "us", ms: "ms", j: "J", kj: "kJ", mhz: "MHz", pct: "%", points: "points", utc: "UTC", mib: "MiB", frac: ""};
const other_names = {time_change_pct: "time, % of default", energy_change_pct: "energy, % of default", default_time_s: "default time, s", default_energy_j: "default energy, J", granularity: "one clock for", per: "one clock for",
  energy_change_low_pct: "from, %", energy_change_high_pct: "to, %", odds_in_time_pct: "odds in time, %", bound_change_pct: "bound, %", clock_switches: "switches", clock_switches_per_s: "switches/s", gap_pct: "gap, %", tp: "tp (tensor)", pp: "pp (stages)", dp: "dp (replicas)",
  source: "known", gpu_label: "GPU", set_to: "clocks, memory/core MHz", clock: "clock, memory/core MHz", energy_share_pct: "share of energy, %", time_share_pct: "share of time, %", saved_j: "saved, J", measured_energy_change_pct: "measured energy, %", average_power_w: "mean power, W"};
const named_unit = (name) => { const [, what, end] = /^(.*)_([a-z]+)$/.exec(name) || []; const unit = units_of_names[end]; return [String(unit !== undefined ? what : name).replace(/_/g, " "), unit]; };
const words = (name) => { if (other_names[name]) return other_names[name]; const slack = /^(.*)_slack_([\d.]+)$/.exec(name); if (slack) return `${words(slack[1])}, slack ${slack[2]} %`; const [what, unit] = named_unit(String(name)); return unit ? `${what}, ${unit}` : what; };
// Of names such as gpt3-xl-b40-tp1 what differs between them; as they are where they have not the same parts.
function distinct(names) {
  const parts = names.map((name) => name.split("-")), differ = parts[0].map((part, i) => parts.some((other) => other[i] !== part));
  return names.length > 1 && parts.every((other) => other.length === differ.length) && differ.includes(true) ? parts.map((one) => one.filter((_, i) => differ[i]).join("-")) : names;
}
const short = (text, most = 60) => String(text).length > most ? `${String(text).slice(0, most - 1)}…` : String(text);
const fixed = (x, digits) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
const signed = (x, digits = 1) => (x > 0 && fixed(x, digits) !== fixed(0, digits) ? "+" : "") + fixed(x, digits);
const percent = (x, digits = 1) => x === null || x === undefined ? "unknown" : `${signed(x, digits)} %`;
const plain = (x, digits) => Number(fixed(x, digits)).toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
const significant = (x) => x === 0 ? "0" : Math.abs(x) >= 1000 ? plain(x, 0) : String(Number(x.toPrecision(4)));
function timeText(s) {
  const [unit, factor] = s !== 0 && Math.abs(1e6 * s) < 999.95 ? ["us", 1e6] : s !== 0 && Math.abs(1e3 * s) < 999.95 ? ["ms", 1e3] : ["s", 1];
  return `${significant(factor * s)} ${unit}`;
}
const oddsText = (pct) => pct >= 99.5 ? "> 99 %" : pct < 1 ? "< 1 %" : `${Math.floor(pct + 1e-6)} %`;
const clockWords = (clock) => { const [mem, core] = String(clock).split("/"); return core === undefined ? mem : `core ${core}${core === "auto" ? "" : " MHz"}, memory ${mem}${mem === "auto" ? "" : " MHz"}`; };
const unbroken = (text) => text.replace(/(\d) (%|MHz|J|s|W)(?![a-z])/g, "$1\u00a0$2");
const isChange = (field) => /change.*_pct(_slack_[\d.]+)?$|regret|error_pct$/.test(field);
// Of a column of numbers all have as many digits, four for the largest.
const digitsFor = (rows, field) => { const most = d3.max(rows, (row) => typeof row[field] === "number" ? Math.abs(row[field]) : 0) || 1; return rows.every((row) => Number.isInteger(row[field] ?? 0)) ? 0 : Math.max(1, Math.min(6, 3 - Math.floor(Math.log10(most)))); };
function cellText(field, value, digits = null) {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value !== "number") return /^(granularity|clock|kernel|set_to)$/.test(field) ? String(value) : String(value).replace(/_/g, " ");
  if (isChange(field)) return signed(value, 2);
  if (field === "odds_in_time_pct") return oddsText(value).replace(" %", "");
  if (/_pct$|_points$/.test(field)) return fixed(value, /gap/.test(field) ? 3 : 1);
  if (/_id$|^seed$|_mhz$/.test(field)) return String(value);
  return digits === null ? significant(value) : plain(value, digits);
}

// Sections, each with a link at the top of the page.
const main = document.querySelector("main");
document.body.prepend(made("header", {class: "top"}, made("div", {}, made("b", {}, location.protocol === "http:" && page.kind !== "index" ? made("a", {href: "../"}, "Rubato") : "Rubato"), made("span", {id: "now"}), made("nav", {id: "links", "aria-label": "Sections"}), made("button", {id: "theme", type: "button", "aria-label": "Light or dark"}))));
function section(id, title, lead, ...nodes) {
  const found = element(id);
  const node = made("section", {id, "aria-labelledby": `h-${id}`}, made("h2", {id: `h-${id}`}, title), lead ? made("p", {}, lead) : null, ...nodes);
  if (found) found.replaceWith(node);
  else main.append(node);
  return node;
}
const sql = (name) => page.tables[name] && page.tables[name].sql ? made("details", {}, made("summary", {}, "SQL of this table"), made("pre", {}, page.tables[name].sql)) : null;
const facts = (pairs) => made("div", {class: "scroll"}, made("table", {}, made("tbody", {}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
  .map(([name, value]) => made("tr", {}, made("th", {scope: "row"}, name), made("td", {class: "free"}, String(value)))))));
const choice = (label, entries, value, change) => {
  const select = made("select", {onchange: () => change(select.value)}, entries.map(([v, text]) => made("option", {value: v, selected: String(v) === String(value)}, short(text, 90))));
  return made("label", {}, `${label} `, select);
};
// Lines to type, each with a button that copies it.
const commands = (lines) => lines.filter((line) => line).map((line) => made("p", {class: "copied"}, made("code", {}, line)));

// A table that is sorted by its heads and filtered; columns without a value are left out. A bar shows the weight of one column.
const kept = new Map();  // how each table was left: sorting, filter, all rows
function table(name, rows, columns, {bar, cut = 15, sort, chosen, known, link, of = name} = {}) {
  const state = kept.get(name) || {sort: sort || null, down: true, filter: "", all: false};
  kept.set(name, state);
  const shown = columns.filter((c) => rows.some((row) => cellText(c, row[c]) !== ""));
  const number = new Set(shown.filter((c) => rows.every((row) => row[c] === null || row[c] === undefined || typeof row[c] === "number")));
  const digits = Object.fromEntries(shown.map((c) => [c, digitsFor(rows, c)]));
  const widest = bar ? d3.max(rows, (row) => Math.abs(row[bar])) || 1 : 1;
  const frame = made("div", {class: "scroll", id: name, "data-part": "1"}), note = made("span", {role: "status", class: "soft"});
  const more = made("button", {type: "button", onclick: () => { state.all = !state.all; draw(); }});
  const order = (a, b) => { const [p, q] = [a[state.sort], b[state.sort]]; return (p === null || p === undefined) - (q === null || q === undefined) || (state.down ? -1 : 1) * (typeof p === "number" && typeof q === "number" ? p - q : String(p).localeCompare(String(q), "en", {numeric: true})); };
  function draw() {
    const wanted = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => { const text = shown.map((c) => cellText(c, row[c])).join(" ").toLowerCase(); return wanted.every((word) => text.includes(word)); });
    if (state.sort) found.sort(order);
    const some = state.all ? found : found.slice(0, cut);
    const head = shown.map((c) => made("th", {scope: "col", class: number.has(c) ? "number" : null, "aria-sort": state.sort !== c ? "none" : state.down ? "descending" : "ascending"},
      made("button", {type: "button", "data-field": c, onclick: () => { state.down = state.sort === c ? !state.down : number.has(c); state.sort = c; draw(); frame.querySelector(`button[data-field="${c}"]`).focus(); }},
        words(c) + (state.sort === c ? (state.down ? " ▾" : " ▴") : ""))));
    const body = some.map((row) => made("tr", {class: chosen && chosen(row) ? "on" : null, "data-kernel": row.kernel || null}, shown.map((c) => {
      const text = cellText(c, row[c], digits[c]), cell = made("td", {class: number.has(c) ? "number" : text.length > 24 ? "words" : null, "data-full": text.length > 60 ? text : null}, link && c === shown[0] ? made("a", {href: link(row)}, short(text)) : short(text));
      if (c === bar) cell.append(made("span", {class: "track", "aria-hidden": "true"}, made("i", {class: `meter ${known ? row[known] : ""} ${row[c] < 0 ? "less" : ""}`, style: `width:${fixed(100 * Math.abs(row[c]) / widest, 1)}%`})));
      return cell;
    })));
    frame.replaceChildren(made("table", {}, made("thead", {}, made("tr", {}, head)), made("tbody", {}, body)));
    note.textContent = found.length > some.length || wanted.length > 0 ? `${some.length} of ${found.length} rows` : "";
    more.textContent = state.all ? `Show the first ${cut}` : `Show all ${found.length}`;
    more.hidden = found.length <= cut;
  }
  draw();
  const find = made("input", {type: "search", value: state.filter, "aria-label": `Find rows of ${words(name)}`, placeholder: "Find", oninput: () => { state.filter = find.value; draw(); }});
  return made("div", {}, rows.length > 8 ? made("p", {class: "tools"}, find, note) : null, frame, made("p", {class: "tools"}, more), sql(of));
}

// Shares of a whole: measured is solid, guessed hatched.
const sources = {measured: "measured on this GPU", anchored: "anchored: captured, modelled at other clocks", scaled: "scaled from other shapes", derived: "derived from FLOPs and bytes", guessed: "guessed: nobody measured it", fixed: "no clock changes it"};
function shares(title, parts) {
  const all = d3.sum(parts, (p) => p[1]), some = parts.filter((p) => p[1] > 0.0005 * all), said = some.map(([kind, v]) => `${fixed(100 * v / all, 0)} % ${kind === "fixed" ? sources.fixed : kind}`).join(", ");
  return made("div", {class: "share"}, made("div", {}, title), made("div", {}, made("div", {class: "bar", role: "img", "aria-label": `${title}: ${said}`}, some.map(([kind, v]) => made("i", {class: kind, style: `flex:${v}`}))), made("div", {class: "soft"}, said)));
}
const sourceKey = (kinds) => made("div", {class: "key"}, Object.entries(sources).filter(([kind]) => kinds.has(kind)).map(([kind, text]) => made("span", {}, made("i", {class: kind}), text)));

// Charts. Each is drawn as wide as it is shown, so that a letter is as large on a telephone as on a desk.
const narrow = 600, redraw = [];
let hatches = 0;
const dashes = [null, "6 3", "2 3", "8 3 2 3", "1 4", "10 4"];
const grains = ["run", "gpu", "stage", "pass", "kernel", "launch", "segment"];
const color = (i) => `var(--c${((i % 6) + 6) % 6})`;
const symbols = {circle: d3.symbolCircle, square: d3.symbolSquare, diamond: d3.symbolDiamond, triangle: d3.symbolTriangle, cross: d3.symbolCross};
const kinds_of_marks = Object.keys(symbols);
const digitsOf = (scale) => Math.max(0, Math.ceil(Math.log10(6 / (scale.domain()[1] - scale.domain()[0]))));  // so that ticks differ

// The stretch of the x axis that pictures show: selected with the pointer (a double click brings all back), with buttons, or with keys
// while a picture has the focus: + and -, Shift and an arrow, Escape. Pictures of one view move together.
// @return frame and buttons; `drawn` {x, box} is what a picture was drawn with
const newView = () => ({x: null, draws: []});
function zoomable(label, frame, view, drawn, draw, buttons = true) {
  view.draws.push([frame, draw]);
  const show = (pixels) => {
    view.x = pixels && pixels.map((at) => drawn.x.invert(at));
    const inside = frame.contains(document.activeElement);
    view.draws = view.draws.filter(([shown]) => shown.isConnected);
    for (const [, again] of view.draws) again();
    if (inside) frame.querySelector("svg").focus({preventScroll: true});
  };
  const part = (factor, shift = 0) => { const [a, b] = drawn.x.range(), middle = (a + b) / 2 + shift * (b - a), half = factor * (b - a) / 2; show([middle - half, middle + half]); };
  let from = null, brush = null;
  const stop = () => { if (brush) brush.remove(); from = brush = null; };
  const at = (event) => { const svg = frame.querySelector("svg"), shown = svg.getBoundingClientRect(), [a, b] = drawn.x.range(); return Math.max(a, Math.min(b, (event.clientX - shown.left) * svg.viewBox.baseVal.width / shown.width)); };
  frame.addEventListener("pointerdown", (event) => { if (event.pointerType !== "touch" && event.button === 0) { from = at(event); frame.setPointerCapture(event.pointerId); } });
  frame.addEventListener("pointermove", (event) => {
    const to = at(event);
    if (from === null || (!brush && Math.abs(to - from) < 5)) return;
    brush = brush || d3.select(frame).select("svg").append("rect").attr("class", "brush").attr("y", drawn.box.top).attr("height", drawn.box.height - drawn.box.top - drawn.box.bottom);
    brush.attr("x", Math.min(from, to)).attr("width", Math.abs(to - from));
  });
  frame.addEventListener("pointerup", (event) => { const ends = brush && [from, at(event)].sort(d3.ascending); stop(); if (ends && ends[1] > ends[0]) show(ends); });
  frame.addEventListener("pointercancel", stop);
  frame.addEventListener("dblclick", () => show(null));
  const keys = {"+": () => part(0.6), "=": () => part(0.6), "-": () => part(1.7), Escape: () => { if (from !== null) stop(); else show(null); }};
  const moves = {ArrowLeft: () => part(1, -0.3), ArrowRight: () => part(1, 0.3)};
  const press = (event) => { const act = event.shiftKey && moves[event.key] || keys[event.key]; if (!act || event.ctrlKey || event.metaKey || event.altKey) return; event.preventDefault(); act(); };
  const button = (text, name, act) => made("button", {type: "button", "aria-label": `${name}: ${label}`, onclick: act}, text);
  return made("div", {onkeydown: press}, frame, buttons && made("div", {class: "tools zoom"}, button("+", "Zoom in", keys["+"]), button("−", "Zoom out", keys["-"]), button("←", "Left", moves.ArrowLeft), button("→", "Right", moves.ArrowRight), button("All", "Whole range", () => show(null)), made("span", {class: "soft hint"}, "Drag to zoom, double click for all")));
}

// Values over values. A series is {name, rows: [{x, y, low, high, left, right, tip, kernel, size}], line: "step" or "line", mark, dash, color, strong}.
// @param x, y  {title, log, percent, extent, zero}
// @param more  draws upon it: (svg, x, y, box)
// @param view  of pictures that zoom together
function xy(label, x_axis, y_axis, series, {more, height = 400, width: most = 1112, small = false, view = newView()} = {}) {
  const frame = made("div", {class: "chart"}), legend = made("div", {class: "key"}), drawn = {};
  const all = series.flatMap((s) => s.rows);
  const value = (axis, v) => v !== null && v !== undefined && (!axis.log || v > 0);
  const extent = (axis, of) => { if (axis.names) return [-0.5, axis.names.length - 0.5]; const [a, b] = axis.extent || d3.extent([...(axis.zero ? [0] : []), ...all.flatMap(of).filter((v) => value(axis, v) && !(v > axis.most))]); return a === undefined ? [0, 1] : a < b ? [a, b] : axis.log ? [a / 2, a * 2] : [a - 1, a + 1]; };
  function draw() {
    const width = small ? most : Math.max(300, Math.min(most, Math.round(frame.clientWidth) || most)), slim = width < narrow, tall = slim ? Math.min(height, 330) : height;
    const lines = series.filter((s) => s.line && s.rows.length > 0), labelled = !slim && !small && lines.length > 1 && lines.length <= 8 && width > 700;
    const box = {left: small ? 44 : 62, right: labelled ? 150 : 28, top: 24, bottom: small ? 34 : x_axis.names ? Math.min(110, 46 + 4 * d3.max(x_axis.names, (name) => short(name, 18).length)) : 46, width, height: tall};
    const scale = (axis, domain, to) => { const s = (axis.log ? d3.scaleLog() : d3.scaleLinear()).domain(domain).range(to); return (axis === x_axis && view.x) || axis.names ? s : s.nice(); };
    const x = scale(x_axis, view.x || extent(x_axis, (r) => [r.x, r.left, r.right]), [box.left, width - box.right]);
    const y = scale(y_axis, extent(y_axis, (r) => [r.y, r.low, r.high]), [tall - box.bottom, box.top]);
    const svg = d3.select(frame).html("").append("svg").attr("viewBox", `0 0 ${width} ${tall}`).attr("role", "img").attr("aria-label", label).attr("tabindex", series.some((s) => s.mark) ? -1 : 0);
    const clip = `inside-${++hatches}`, plot_width = width - box.left - box.right;
    svg.append("clipPath").attr("id", clip).append("rect").attr("x", box.left - 6).attr("y", box.top - 8).attr("width", plot_width + 12).attr("height", tall - box.top - box.bottom + 16);
    const format = (axis, s) => axis.names ? (v) => short(axis.names[v] ?? "", 18) : axis.percent ? (v) => signed(v, digitsOf(s)) : axis.log ? (v) => (Math.abs(Math.log10(v) % 1) < 1e-9 ? significant(v) : "") : null;
    const ticks = (axis, s, count) => axis.names ? d3.range(axis.names.length).filter((v) => v % Math.ceil(axis.names.length / (count * 3)) === 0 && v >= s.domain()[0] && v <= s.domain()[1]) : s.ticks(count);
    svg.append("g").attr("class", "grid").attr("transform", `translate(${box.left},0)`).call(d3.axisLeft(y).tickValues(ticks(y_axis, y, small ? 4 : 6)).tickFormat(format(y_axis, y)).tickSize(-plot_width));
    svg.append("g").attr("transform", `translate(0,${tall - box.bottom})`).call(d3.axisBottom(x).tickValues(ticks(x_axis, x, Math.max(2, Math.round(plot_width / 90)))).tickFormat(format(x_axis, x)))
      .selectAll("text").attr("transform", x_axis.names ? "rotate(-35)" : null).attr("text-anchor", x_axis.names ? "end" : null);
    svg.append("text").attr("class", "soft name").attr("x", width - box.right).attr("y", tall - 6).attr("text-anchor", "end").text(x_axis.title);
    svg.append("text").attr("class", "soft name").attr("x", 2).attr("y", 11).text(y_axis.title);
    const plot = svg.append("g").attr("clip-path", `url(#${clip})`);
    if (more) more(plot, x, y, box, svg);
    const sorted = [...series.filter((s) => !s.strong), ...series.filter((s) => s.strong)];
    for (const s of sorted) {
      const rows = s.rows.filter((r) => value(x_axis, r.x) && value(y_axis, r.y));
      if (s.line && rows.length > 0)
        plot.append("path").attr("class", `front${s.strong ? " strong" : ""}`).attr("fill", "none").attr("stroke", s.color).attr("stroke-width", s.strong ? 2.2 : 1.4).attr("stroke-dasharray", s.dash || null)
          .attr("d", d3.line().defined((r) => r.y !== null).x((r) => x(r.x)).y((r) => y(r.y)).curve(s.line === "step" ? d3.curveStepAfter : d3.curveLinear)(s.rows.filter((r) => value(x_axis, r.x))));
      const range = (of, from, to) => plot.append("g").selectAll("line").data(of).join("line").attr("class", "interval").attr("x1", (r) => x(from === "left" ? r.left : r.x)).attr("x2", (r) => x(from === "left" ? r.right : r.x))
        .attr("y1", (r) => y(from === "left" ? r.y : r.low)).attr("y2", (r) => y(from === "left" ? r.y : r.high)).attr("stroke", s.color).attr("stroke-width", s.strong ? 2.2 : 1.3);
      range(rows.filter((r) => value(y_axis, r.low)), "low", "high");
      range(rows.filter((r) => value(x_axis, r.left)), "left", "right");
      if (!s.mark) continue;
      plot.append("g").selectAll("path").data(rows).join("path").attr("class", `mark ${s.kind || ""}`).attr("data-kernel", (r) => r.kernel || null)
        .attr("d", d3.symbol().type(symbols[s.mark]).size((r) => r.size || s.size || 40)).attr("transform", (r) => `translate(${x(r.x)},${y(r.y)})`)
        .attr("fill", s.hollow ? "var(--paper)" : s.color).attr("stroke", s.color).attr("stroke-width", s.hollow ? 1.6 : 0).append("title").text((r) => r.tip || `${s.name}: ${significant(r.x)}, ${significant(r.y)}`);
    }
    if (labelled) {
      const at = lines.map((s) => { const inside = s.rows.filter((r) => r.y !== null && r.x <= x.domain()[1]); return {s, y: inside.length > 0 ? y(inside[inside.length - 1].y) : tall}; }).filter((l) => l.y >= 0 && l.y <= tall).sort((a, b) => a.y - b.y);
      at.forEach((l, i) => { if (i > 0) l.y = Math.max(l.y, at[i - 1].y + 14); });
      svg.append("g").selectAll("text").data(at).join("text").style("fill", (l) => l.s.color).attr("font-weight", (l) => l.s.strong ? 600 : 400).attr("x", width - box.right + 8).attr("y", (l) => l.y + 4).text((l) => short(l.s.name, 22));
    }
    const entries = small ? [] : series.filter((s) => s.name && s.rows.length > 0 && !(labelled && s.line));
    legend.replaceChildren(...entries.map((s) => {
      const item = made("span"), sign = d3.select(item).append("svg").attr("viewBox", "0 0 22 12").attr("aria-hidden", "true");
      if (s.line) sign.append("path").attr("d", "M0 6 h22").attr("stroke", s.color).attr("stroke-width", 1.8).attr("stroke-dasharray", s.dash || null);
      if (s.mark) sign.append("path").attr("transform", "translate(11,6)").attr("d", d3.symbol().type(symbols[s.mark]).size(40)).attr("fill", s.hollow ? "var(--paper)" : s.color).attr("stroke", s.color).attr("stroke-width", s.hollow ? 1.6 : 0);
      item.append(s.name);
      return item;
    }));
    Object.assign(drawn, {x, box});
  }
  redraw.push([frame, draw]);
  const node = zoomable(label, frame, view, drawn, draw, !small);
  if (small) { frame.dataset.tools = "1"; draw(); } else node.append(legend);
  return node;
}
// A cell for each row and column, both named; less is blue, more is orange and dotted.
function heat(label, row_names, column_names, value, titles) {
  const frame = made("div", {class: "chart"});
  function draw() {
    const width = Math.max(300, Math.min(1112, frame.clientWidth || 1112)), slim = width < narrow, left = slim ? 116 : 190, top = 110, line = 20, letters = slim ? 13 : 26;
    const tall = top + line * row_names.length + 26, x = d3.scaleBand(d3.range(column_names.length), [left, width - 84]).padding(0.05), y = d3.scaleBand(d3.range(row_names.length), [top, tall - 26]).padding(0.08);
    const cells = row_names.flatMap((row, r) => column_names.map((column, c) => ({row, column, r, c, v: value(row, column, c)}))).filter((c) => c.v !== null && c.v !== undefined), most = d3.max(cells, (c) => Math.abs(c.v)) || 1;
    const svg = d3.select(frame).html("").append("svg").attr("viewBox", `0 0 ${width} ${tall}`).attr("role", "img").attr("aria-label", label);
    const box = svg.selectAll("g.cell").data(cells).join("g").attr("class", "cell").attr("data-kernel", (c) => c.row).attr("transform", (c) => `translate(${x(c.c)},${y(c.r)})`);
    box.append("rect").attr("class", "mark").attr("width", x.bandwidth()).attr("height", y.bandwidth()).attr("fill", (c) => c.v < 0 ? "var(--low)" : "var(--high)").attr("fill-opacity", (c) => 0.06 + 0.8 * Math.sqrt(Math.abs(c.v) / most))
      .append("title").text((c) => `${c.row}, ${c.column}: ${titles.value} ${percent(c.v, 2)}`);
    if (x.bandwidth() > 26) box.append("text").attr("x", x.bandwidth() / 2).attr("y", y.bandwidth() / 2 + 4).attr("text-anchor", "middle").attr("class", "in-cell").text((c) => signed(c.v, 0));
    svg.append("g").selectAll("text").data(row_names).join("text").attr("class", "soft").attr("x", left - 6).attr("y", (_, r) => y(r) + line * 0.7).attr("text-anchor", "end").text((name) => short(name, letters));
    const every = Math.ceil(13 / x.step());
    svg.append("g").selectAll("text").data(column_names.map((name, c) => [name, c]).filter(([, c]) => c % every === 0)).join("text").attr("class", "soft").attr("transform", ([, c]) => `translate(${x(c) + x.bandwidth() / 2},${top - 6}) rotate(-40)`).text(([name]) => short(name, slim ? 12 : 20));
    svg.append("text").attr("class", "soft name").attr("x", 2).attr("y", top - 6).text(titles.row);
    svg.append("text").attr("class", "soft name").attr("x", 2).attr("y", 11).text(titles.column);
    svg.append("text").attr("class", "soft name").attr("x", width - 2).attr("y", tall - 6).attr("text-anchor", "end").text(`${titles.value}, %; full colour: ${fixed(most, 0)} %`);
  }
  redraw.push([frame, draw]);
  return frame;
}
// Twenty equally likely outcomes, drawn from a 90 % interval whose sides may differ; hollow beyond a limit.
const thirds = [-1.96, -1.44, -1.15, -0.93, -0.76, -0.6, -0.45, -0.32, -0.19, -0.06].flatMap((z, i, all) => [z, -all[all.length - 1 - i]]).sort((a, b) => a - b);
function dots(label, middle, low, high, limit, limit_name, late) {
  const width = 320, base = 70, values = thirds.map((z) => middle + (z < 0 ? middle - low : high - middle) * z / 1.645);
  const x = d3.scaleLinear(d3.extent([...values, limit, low, high]), [18, width - 20]).nice();
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} 92`).attr("role", "img").attr("aria-label", `${label}: ${percent(middle)}, 90 % from ${percent(low)} to ${percent(high)}`);
  svg.append("g").attr("transform", `translate(0,${base})`).call(d3.axisBottom(x).ticks(5).tickFormat((v) => signed(v, digitsOf(x))));
  svg.append("line").attr("x1", x(low)).attr("x2", x(high)).attr("y1", base).attr("y2", base).attr("stroke", "var(--plan)").attr("stroke-width", 3);
  const right = x(limit) > width - 80;
  svg.append("line").attr("x1", x(limit)).attr("x2", x(limit)).attr("y1", 4).attr("y2", base).attr("stroke", "var(--late)").attr("stroke-dasharray", "4 3");
  svg.append("text").attr("class", "late").attr("x", x(limit) + (right ? -5 : 5)).attr("y", 12).attr("text-anchor", right ? "end" : "start").text(limit_name);
  let column = [];
  values.forEach((v) => {
    if (column.length > 0 && (x(v) - x(column[0]) >= 10 || late(v) !== late(column[0]))) column = [];
    column.push(v);
    svg.append("circle").attr("cx", x(column[0])).attr("cy", base - 8 - 10 * (column.length - 1)).attr("r", late(v) ? 3.6 : 4.4).attr("class", late(v) ? "outcome beyond" : "outcome");
  });
  return made("figure", {}, svg.node());
}

// The top: a title that answers, the five lines, and what the answer may turn out to be.
const lineNames = {planned: "Planned", found: "Found", set: "Set", saves: "Saves", rests_on: "Rests on", next: "Next"};
function lineNodes(text) {
  const [said, ...typed] = String(text || "").split("\n");
  return [unbroken(said), ...commands(typed.map((line) => line.trim().replace(/^To set: /, "")).filter(Boolean).flatMap((line) => { const [set, back] = line.split("; back: "); return [set, back && `${back}   # back to the default clocks`]; }))];
}
// Three of them; the others when they are asked for.
const notesNode = (notes) => {
  const list = (some) => made("ul", {}, some.map((note) => made("li", {}, unbroken(note))));
  return notes.length === 0 ? [] : [made("dt", {}, "Notes"), made("dd", {id: "line-notes"}, list(notes.slice(0, 3)), notes.length > 3 ? made("details", {}, made("summary", {}, `${notes.length - 3} more`), list(notes.slice(3))) : null)];
};
function top(title, lines, side) {
  const node = made("section", {id: "answer", class: "first"}, made("p", {class: "soft"}, page.subtitle), made("h1", {id: "title"}, unbroken(title)),
    made("div", {class: side ? "answer two" : "answer"}, made("dl", {class: "five"}, Object.entries(lineNames).filter(([name]) => lines[name]).flatMap(([name, shown]) => [made("dt", {}, shown), made("dd", {id: `line-${name}`}, lineNodes(lines[name]))]), notesNode(lines.notes || [])), side ? made("div", {class: "side", id: "side"}, side) : null));
  if (element("answer")) element("answer").replaceWith(node); else main.prepend(node);
  element("now").textContent = title;
}

// What a run's pages let choose: a slack and what shares a clock. The answer of the page is the headline's plan.
function runPage() {
  const run = rowsOf("run")[0], answers = rowsOf("answers"), headline = answers[0];
  const plans = rowsOf("plans").filter((p) => p.energy_j !== null), kernels = d3.group(rowsOf("kernels"), (k) => k.plan_id), clocks = rowsOf("clocks");
  const change = (v, of) => 100 * (v / of - 1);
  const cells = rowsOf("cells").map((c) => ({...c, time: c.launches * c.time_s, energy: c.launches * (c.energy_j + run.host_power_w * c.time_s)}));
  const unit_of = (pass) => ["embedding", "forward", "loss"].includes(pass) ? "forward" : ["backward", "embedding_backward"].includes(pass) ? "backward" : pass;
  const group_of = {run: () => "run", pass: (c) => unit_of(c.pass), kernel: (c) => c.kernel};
  // Those that nothing beats in time and energy, fastest first.
  const unbeaten = (some) => { let least = Infinity; return some.sort((a, b) => a.time - b.time || a.energy - b.energy).filter((o) => o.energy < least && ((least = o.energy), true)); };
  // Of each group the clocks that nothing beats: {clock, time, energy}.
  const optionsOf = {};
  if (cells.length > 0) for (const [per, of] of Object.entries(group_of)) optionsOf[per] = d3.groups(cells, of).map(([name, list]) => {
    const sums = d3.rollups(list, (some) => [d3.sum(some, (c) => c.time), d3.sum(some, (c) => c.energy)], (c) => c.clock).map(([clock, [time, energy]]) => ({clock, time, energy}));
    return {name, options: unbeaten(sums)};
  });
  // The least energy within a time, by the model and with free switches. Of few groups all choices are tried; of kernels a price of time is
  // sought at which they just fit, and what is left is spent where it saves most: close to the best, not proven.
  function within(per, time) {
    const groups = optionsOf[per], fits = (picked) => d3.sum(picked, (o) => o.time) <= time * (1 + 1e-9);
    const least = (price) => groups.map((g) => d3.least(g.options, (o) => o.energy + price * o.time));
    if (!fits(groups.map((g) => g.options[0]))) return null;
    if (groups.length < 4) {
      const all = groups.reduce((some, g) => unbeaten(some.flatMap((a) => g.options.map((o) => ({picked: [...a.picked, o], time: a.time + o.time, energy: a.energy + o.energy})))), [{picked: [], time: 0, energy: 0}]);
      return d3.least(all.map((a) => a.picked).filter(fits), (picked) => d3.sum(picked, (o) => o.energy));
    }
    let low = 0, high = 1;
    while (!fits(least(high)) && high < 1e12) high *= 4;
    for (let i = 0; i < 60; ++i) fits(least((low + high) / 2)) ? high = (low + high) / 2 : low = (low + high) / 2;
    let picked = fits(least(0)) ? least(0) : least(high);
    for (let left = time - d3.sum(picked, (o) => o.time), better = true; better;) {
      better = null;
      const moves = groups.flatMap((g, i) => g.options.map((o) => ({i, o, time: o.time - picked[i].time, energy: o.energy - picked[i].energy})));
      const slower = moves.filter((m) => m.energy < 0), faster = moves.filter((m) => m.time < 0);
      for (const a of slower) for (const b of [null, ...faster]) {
        const spent = a.time + (b ? b.time : 0), saved = a.energy + (b ? b.energy : 0);
        if ((!b || b.i !== a.i) && spent <= left && saved < (better ? better.saved : -1e-9)) better = {moves: b ? [a, b] : [a], spent, saved};
      }
      if (better) { picked = picked.slice(); for (const m of better.moves) picked[m.i] = m.o; left -= better.spent; }
    }
    return picked;
  }
  const hash = new URLSearchParams(location.hash.slice(1));
  const best = headline && plans.find((p) => p.plan_id === headline.plan_id);
  const pers = grains.filter((g) => plans.some((p) => p.granularity === g) || optionsOf[g]);
  if (pers.length === 0) pers.push("run");
  const opened = {slack: headline && headline.slack_pct !== null ? headline.slack_pct : best ? Math.max(0, Math.ceil(10 * best.time_change_pct) / 10) : 0, per: best ? best.granularity : pers[0]};
  const state = {slack: Number(hash.get("slack") ?? opened.slack), per: hash.get("per") || opened.per};
  const last = Math.ceil(Math.max(20, opened.slack, d3.max(plans, (p) => p.slack_pct) || 0));
  const hasOdds = (p) => p.odds_in_time_pct === null || p.odds_pct === null || p.odds_in_time_pct >= p.odds_pct - 1e-7;
  const labelOf = (p) => p.set_to || p.clock || `${p.clocks} clocks`;
  // The stored plan of this slack; else, of a trace, what the model gives; else the stored plan or single clock that saves most in the time.
  function chosenPlan() {
    if (isOpened() && headline) return best || null;
    const fits = plans.filter((p) => p.granularity === state.per && p.in_time !== 0 && p.time_change_pct <= state.slack + 1e-7 && hasOdds(p));
    const asked = d3.least(fits.filter((p) => p.slack_pct === state.slack), (p) => p.energy_change_pct);
    if (asked) return asked.energy_change_pct <= -0.005 ? asked : null;
    if (optionsOf[state.per]) {
      const picked = within(state.per, run.default_time_s * (1 + state.slack / 100));
      const energy = picked && change(d3.sum(picked, (o) => o.energy), run.default_energy_j);
      if (!picked || energy > -0.005) return null;
      return {granularity: state.per, picked: new Map(picked.map((o, i) => [optionsOf[state.per][i].name, o])), time_change_pct: change(d3.sum(picked, (o) => o.time), run.default_time_s), energy_change_pct: energy, clocks: new Set(picked.map((o) => o.clock)).size, clock: state.per === "run" ? picked[0].clock : null};
    }
    const singles = state.per === "run" ? clocks.filter((c) => c.time_change_pct <= state.slack + 1e-7).map((c) => ({granularity: "run", clock: c.clock, clocks: 1, time_change_pct: c.time_change_pct, energy_change_pct: c.energy_change_pct})) : [];
    const found = d3.least([...fits.filter((p) => p.slack_pct === null || p.slack_pct <= state.slack + 1e-7), ...singles], (p) => p.energy_change_pct);
    return found && found.energy_change_pct <= -0.005 ? found : null;
  }
  const isKnown = (p) => !(p.energy_change_low_pct < 0 && p.energy_change_high_pct >= 0);
  const hasInterval = (p) => p && p.energy_change_low_pct !== null && p.energy_change_low_pct !== undefined;
  const isOpened = () => state.slack === opened.slack && state.per === opened.per;
  const limitText = () => `at most ${+state.slack.toPrecision(6)} % more time`;
  const inText = () => state.slack === 0 ? "in no more time" : `in ${limitText()}`;
  function titleOf(p) {
    if (!headline && isOpened()) return plans.length > 0 ? "Keep the default clocks: no plan is in time" : "No plan does what was asked for";
    if (!p) return `Keep the default clocks: no plan ${isOpened() ? "" : `with one clock for ${state.per} `}is likely to save energy ${inText()}`;
    if (!isKnown(p)) return "Not known yet: measure before you set anything";
    const less = p.energy_change_pct < 0 ? `${fixed(-p.energy_change_pct, 1)} % less energy` : `energy ${percent(p.energy_change_pct)}`;
    if (isOpened() && headline && headline.slack_pct === null) return `${less}, time ${percent(p.time_change_pct)}, for ${words(headline.goal)}`;
    return p.odds_in_time_pct !== null && p.odds_in_time_pct !== undefined && p.odds_pct > 0 ? `${less}, with ${oddsText(p.odds_in_time_pct)} odds of ${limitText()}` : `${less} ${inText()}`;
  }
  function linesOf(p) {
    if (isOpened()) return page.answer;
    const [set, back] = (p && p.clocks === 1 && page.lines[p.clock]) || [];
    const plan = page.planning_line && `${page.planning_line} --per ${state.per} --slack ${state.slack}`;
    const how = set ? `\n${set}; back: ${back}` : !p ? "" : p.plan_id && page.play[p.plan_id] ? `\n${page.play[p.plan_id]}` : plan ? `\n${plan}` : "";
    return {...page.answer, notes: [], set: p ? `${p.clocks === 1 && p.clock ? clockWords(p.clock) : `${labelOf(p)}, one for each ${state.per}`}${how}` : "nothing: keep the default clocks",
      saves: !p ? "nothing" : `${fixed(-p.energy_change_pct, 1)} % energy${hasInterval(p) ? ` (90 %: ${fixed(-p.energy_change_high_pct, 1)} to ${fixed(-p.energy_change_low_pct, 1)})` : ""}, time ${percent(p.time_change_pct)}` +
        (p.picked ? "; by the model, whatever the odds, switches taken as free: the line above plans it with interval and bound" : hasInterval(p) || !p.plan_id ? "" : "; no interval is known")};
  }
  function side(p) {
    if (!hasInterval(p)) return null;
    const part = (name, field, limit, limit_name, late) => [made("h3", {}, name), made("div", {class: "big"}, unbroken(percent(p[`${field}_change_pct`])), made("small", {}, unbroken(` 90 %: ${signed(p[`${field}_change_low_pct`])} to ${signed(p[`${field}_change_high_pct`])} %`))),
      dots(name, p[`${field}_change_pct`], p[`${field}_change_low_pct`], p[`${field}_change_high_pct`], limit, limit_name, late)];
    const timed = p.time_change_low_pct !== null ? part("Time", "time", state.slack, "limit", (v) => v > state.slack) : [];
    return [part("Energy", "energy", 0, "no saving", () => false), timed, made("p", {class: "soft"}, `Each dot is 1 of 20 equally likely outcomes.${timed.length > 0 ? " Hollow: later than the limit." : ""} Line: 90 %.`)].flat();
  }

  function trust(p) {
    const of_time = Object.keys(sources).map((kind) => [kind, run[`${kind}_pct`] || 0]);
    const errors = rowsOf("errors").filter((e) => /energy|power/.test(e.name) && !e.name.includes("_scale_")), energies = errors.filter((e) => e.name.includes("energy"));
    const worst = d3.greatest(energies.length > 0 ? energies : errors, (e) => e.value), waits = (run.arcs_read || 0) + (run.arcs_inferred || 0);
    const checked = p && p.plan_id ? rowsOf("verifications").filter((v) => v.plan_id === p.plan_id).pop() : null;
    const bars = [run.measured_pct !== null ? shares("Time of kernels", of_time) : null, waits > 0 ? shares("Order of work", [["measured", run.arcs_read], ["guessed", run.arcs_inferred]]) : null].filter(Boolean);
    // Of the plan and of the run; each kind once.
    const own = rowsOf("notes").filter((n) => n.plan_id === null || (p && n.plan_id === p.plan_id)), notes = [...d3.group(own, (n) => n.note).values()].map(([n]) => `${n.note}: ${n.reason}.`);
    section("trust", "How well this is known", "Nothing is better known than its weakest input.", made("div", {class: "shares"}, bars), sourceKey(new Set([...(run.measured_pct !== null ? of_time.filter((s) => s[1] > 0).map((s) => s[0]) : []), ...(waits > 0 ? ["measured", "guessed"] : [])])),
      facts([["Captured", run.captured_s !== null ? `${timeText(run.captured_s)} at ${run.captured_clock}${run.captured_clock_source === "default" ? " (clocks not recorded, the default is assumed: --captured-clock, --power)" : ""}; simulated ${timeText(run.reproduced_s)}, ${percent(change(run.reproduced_s, run.captured_s), 2)}` : null],
        ["Waits", waits > 0 ? `${plain(run.arcs_read, 0)} read from the files, ${plain(run.arcs_inferred, 0)} inferred from times` : null],
        ["Split", run.guessed_split_pct > 0 ? `between core and memory guessed for ${fixed(run.guessed_split_pct, 0)} % of the time` : null],
        ["Model error", run.gpu === null ? null : worst ? `${fixed(worst.value, 2)} ${worst.name.endsWith("_points") ? "points" : "%"}, the largest of ${energies.length > 0 ? "energy" : "power"} in fit and cross-validation (${words(worst.name.replace(/_(pct|points)$/, ""))})` : "not known: nothing was measured on this GPU"],
        ["Bound", p && p.gap_pct !== null && p.gap_pct !== undefined ? `by the model no such plan saves more than ${fixed(p.gap_pct, 2)} % of its cost beyond it` : null],
        ["Measured", checked ? `energy ${percent(checked.measured_energy_change_pct, 2)} (${signed(checked.measured_energy_change_low_pct, 2)} to ${signed(checked.measured_energy_change_high_pct, 2)}): ${checked.energy_verdict}` : "not yet: rubato verify sets a measured saving beside this one"]]),
      run.gpu_calibrated === 0 ? made("p", {class: "warning"}, `${run.gpu} is not calibrated: these numbers are rough.`) : null,
      notes.length > 0 ? made("ul", {id: "notes"}, notes.map((n) => made("li", {}, n))) : null,
      rowsOf("errors").length > 0 ? made("details", {}, made("summary", {}, "All errors of fit and cross-validation"), table("errors", rowsOf("errors").map((e) => ({...e, name: words(e.name.replace(/_(pct|points)$/, "")), unit: e.name.endsWith("_points") ? "points" : e.name.endsWith("_pct") ? "%" : ""})), ["name", "value", "unit"], {sort: "value"})) : null);
  }

  const point = (p, tip) => ({x: p.time_change_pct, y: p.energy_change_pct, tip});
  const tipOf = (who, p) => `${who}: energy ${percent(p.energy_change_pct, 2)}, time ${percent(p.time_change_pct, 2)}`;
  function front(p) {
    const lines = d3.group(rowsOf("front").filter((f) => f.energy_j !== null), (f) => f.granularity), bound = rowsOf("front").filter((f) => f.bound_j !== null && f.bound_change_pct !== null);
    const names = {run: "one clock", gpu: "each GPU", stage: "each stage", pass: "each pass", kernel: "each kernel", segment: "each segment", launch: "each launch"};
    const series = [];
    if (clocks.length > 0) series.push({name: "every single clock", color: "var(--other)", mark: "circle", kind: "single", size: 22, hollow: true, rows: clocks.filter((c) => c.time_change_pct <= Math.max(last, 30)).map((c) => point(c, tipOf(`one clock, ${clockWords(c.clock)}`, c)))});
    pers.forEach((g, i) => {
      const on = g === state.per, stored = plans.filter((q) => q.granularity === g && q.energy_j !== null), looks = {color: on ? "var(--plan)" : "var(--other)", dash: on ? null : dashes[i % dashes.length], strong: on};
      if (lines.has(g)) series.push({...looks, name: names[g], line: g === "kernel" || run.kind !== "trace" ? "line" : "step", rows: lines.get(g).map((f) => point(f)).sort((a, b) => a.x - b.x)});
      series.push({...looks, line: null, name: `plans, ${names[g]}`, mark: kinds_of_marks[(i + 1) % kinds_of_marks.length], kind: "plan", size: 60, rows: stored.map((q) => ({...point(q, `${tipOf(`plan, ${names[g]}${q.aggregation === "local" ? ", local" : ""}, ${words(q.goal)}${q.slack_pct > 0 ? ` +${q.slack_pct} %` : ""}`, q)}${hasInterval(q) ? `, 90 %: ${signed(q.energy_change_low_pct)} to ${signed(q.energy_change_high_pct)} %` : ""}`), low: q.energy_change_low_pct, high: q.energy_change_high_pct}))});
    });
    const published = rowsOf("published");
    if (published.length > 0) series.push({name: "published (arXiv 2601.08539, Table 2)", color: "var(--ink)", mark: "diamond", hollow: true, kind: "published", size: 60, rows: published.map((q) => point(q, tipOf(`published, ${q.granularity}, ${q.aggregation}, ${words(q.goal)}`, q)))});
    series.push({name: "default clocks", color: "var(--ink)", mark: "square", size: 50, rows: [{x: 0, y: 0, tip: "default clocks"}]});
    const shown = series.flatMap((s) => s.rows).filter((r) => r.x <= last + 1e-9), ys = [...shown.flatMap((r) => [r.y, r.low, r.high]), ...bound.filter((b) => b.time_change_pct <= last).map((b) => b.bound_change_pct)].filter((v) => v !== null && v !== undefined);
    const far = Math.min(last, Math.max(5, state.slack * 1.25, (d3.max(plans.filter((q) => q.time_change_pct <= last), (q) => q.time_change_pct) || 0) * 1.1));
    const draw = (plot, x, y, box) => {
      if (bound.length > 1) {
        const pattern = plot.append("pattern").attr("id", "hatch").attr("width", 7).attr("height", 7).attr("patternTransform", "rotate(45)").attr("patternUnits", "userSpaceOnUse");
        pattern.append("line").attr("y2", 7).attr("stroke", "var(--line)").attr("stroke-width", 2.4);
        plot.append("path").attr("class", "bound").attr("fill", "url(#hatch)").attr("stroke", "var(--other)").attr("d", d3.area().x((b) => x(b.time_change_pct)).y1((b) => y(b.bound_change_pct)).y0(box.height - box.bottom)(bound.slice().sort((a, b) => a.time_s - b.time_s))).append("title").text("No plan uses less, by the model");
      }
      const at = x(state.slack), from = Math.max(box.left, at);
      if (at <= box.width - box.right) {
        plot.append("rect").attr("class", "late").attr("x", from).attr("y", box.top).attr("width", Math.max(0, box.width - box.right - from)).attr("height", box.height - box.top - box.bottom);
        plot.append("line").attr("class", "limit").attr("x1", at).attr("x2", at).attr("y1", box.top).attr("y2", box.height - box.bottom);
        plot.append("text").attr("class", "late-text").attr("x", at - 6).attr("y", box.height - box.bottom - 8).attr("text-anchor", "end").text("limit");
      }
      if (p) {
        const g = plot.append("g").attr("class", "chosen"), [cx, cy] = [x(p.time_change_pct), y(p.energy_change_pct)];
        if (hasInterval(p)) g.append("path").attr("d", `M${cx} ${y(p.energy_change_low_pct)}V${y(p.energy_change_high_pct)}${p.time_change_low_pct !== null ? `M${x(p.time_change_low_pct)} ${cy}H${x(p.time_change_high_pct)}` : ""}`);
        g.append("circle").attr("cx", cx).attr("cy", cy).attr("r", 7).append("title").text(`chosen: energy ${percent(p.energy_change_pct, 2)}, time ${percent(p.time_change_pct, 2)}`);
        const left = cx > box.width - box.right - 90;
        g.append("text").attr("x", cx + (left ? -12 : 12)).attr("y", cy - 10).attr("text-anchor", left ? "end" : "start").text(percent(p.energy_change_pct));
      }
    };
    const near = Math.min(0, d3.min(shown, (r) => r.x) ?? 0);
    return [
      xy("Energy over time, changes against the default clocks: plans, fronts and bound. The table of plans has the numbers.", {title: "time, % of default clocks", percent: true, zero: true, extent: [near, far]}, {title: "energy, % of default clocks", percent: true, zero: true, extent: [Math.min(0, d3.min(ys)), Math.min(40, Math.max(0, d3.max(ys)))]}, series, {more: draw}),
      made("p", {class: "soft"}, `Change against the default clocks. Thin lines and cross: 90 % interval.${bound.length > 1 ? " Hatched: no plan can use less energy, by the model." : ""}${optionsOf[state.per] ? " Where no plan is stored for a limit, the model gives it here, with free switches." : ""}`)];
  }

  // Kernels under the plan, also under one that the slider gives.
  function kernelRows(p) {
    if (!p) return [];
    if (p.plan_id) return kernels.get(p.plan_id) || [];
    if (!p.picked) return [];
    const at = d3.group(cells, (c) => c.kernel, (c) => c.clock), first = kernels.values().next().value || [];
    return first.map((k) => {
      const option = p.picked.get(state.per === "kernel" ? k.kernel : state.per === "run" ? "run" : unit_of(k.pass)), [cell] = at.get(k.kernel).get(option.clock);
      const energy_j = cell.launches * cell.energy_j, time_s = cell.launches * cell.time_s;
      return {...k, clock: option.clock, time_s, energy_j, time_change_pct: change(time_s, k.default_time_s), energy_change_pct: change(energy_j, k.default_energy_j), saved_j: k.default_energy_j - energy_j};
    });
  }
  const coreOf = (clock) => { const core = Number(String(clock || "").split("/").pop()); return core > 0 ? core : null; };
  function kernelTable(p) {
    if (run.kind === "pipeline") return;  // what to set has its passes
    const rows = kernelRows(p).map((k) => ({...k, core_mhz: coreOf(k.clock)}));
    if (rows.length === 0) { if (element("kernels")) element("kernels").remove(); return; }
    const several = new Set(rows.map((k) => k.gpu_label)).size > 1, memory = new Set(rows.map((k) => String(k.clock).split("/")[0])).size > 1;
    const passes = [...new Set(rows.map((k) => k.pass))];
    section("kernels", "Kernels", `${plain(rows.length, 0)} kernels under ${isOpened() ? "the plan above" : "what the slider gives"}. Bars: energy saved; hatched where the time of the kernel was guessed.`,
      sourceKey(new Set(rows.map((k) => k.source))),
      table("kernels-table", rows, ["kernel", "pass", ...(several ? ["gpu_label"] : []), "launches", "default_time_s", "time_share_pct", "energy_share_pct", memory || rows.some((k) => k.core_mhz === null) ? "clock" : "core_mhz", "time_change_pct", "energy_change_pct", "saved_j", "source"], {bar: "saved_j", known: "source", sort: "saved_j", of: "kernels"}),
      cells.length > 0 ? curves(passes) : null);
  }
  // A pass at every clock: its energy or time over the core clock, a line for each memory clock.
  const curve = {pass: null, what: "energy"};
  function curves(passes) {
    curve.pass = curve.pass || (passes.includes("forward") ? "forward" : passes[0]);
    const node = made("div", {id: "clocks"}), list = d3.rollups(cells.filter((c) => c.pass === curve.pass), (some) => d3.sum(some, (c) => c[curve.what]), (c) => c.clock).map(([clock, v]) => ({clock, v}));
    const base = list.find((c) => c.clock === run.default_clock), of = base ? base.v : d3.min(list, (c) => c.v), top_mhz = d3.max(list, (c) => coreOf(c.clock)) || 1000;
    const memories = d3.groups(list, (c) => c.clock.split("/")[0]);
    const series = memories.map(([memory, some], i) => ({name: `memory ${memory}${memory === "auto" ? "" : " MHz"}`, color: color(i), dash: dashes[i % dashes.length], line: "line", mark: kinds_of_marks[i % kinds_of_marks.length], size: 24, strong: i === 0,
      rows: some.map((c) => ({x: coreOf(c.clock) || top_mhz * 1.03, y: change(c.v, of), tip: `${clockWords(c.clock)}: ${curve.what} ${percent(change(c.v, of), 2)}`})).sort((a, b) => a.x - b.x)}));
    const again = () => { element("clocks").replaceWith(curves(passes)); redraw.forEach(([frame, draw]) => frame.isConnected && frame.childElementCount === 0 && draw()); };
    node.append(made("h3", {}, "A pass at every clock"), made("p", {}, choice("Pass", passes.map((name) => [name, words(name)]), curve.pass, (v) => { curve.pass = v; again(); }), choice("", [["energy", "energy"], ["time", "time"]], curve.what, (v) => { curve.what = v; again(); })),
      xy(`${curve.what} of ${words(curve.pass)} over core clock, a line for each memory clock`, {title: "core clock, MHz (rightmost: as the driver chooses)"}, {title: `${curve.what}, % of default clocks`, percent: true, zero: true, extent: [Math.min(0, d3.min(list, (c) => change(c.v, of))), Math.min(100, d3.max(list, (c) => change(c.v, of)))]}, series, {height: 320}), sql("cells") || "");
    return node;
  }
  function setTable(p) {
    const rows = p && p.plan_id ? rowsOf("passes").filter((r) => r.plan_id === p.plan_id) : d3.rollups(kernelRows(p), (some) => {
      const sum = (f) => d3.sum(some, (k) => k[f]), all = [...new Set(some.map((k) => k.clock))];
      return {pass: some[0].pass, gpu_label: some[0].gpu_label, launches: sum("launches"), clock: all.length === 1 ? all[0] : `${all.length} clocks`, default_time_s: sum("default_time_s"), time_s: sum("time_s"), time_change_pct: change(sum("time_s"), sum("default_time_s")), default_energy_j: sum("default_energy_j"), energy_j: sum("energy_j"), energy_change_pct: change(sum("energy_j"), sum("default_energy_j"))};
    }, (k) => `${k.gpu_label}\n${k.pass}`).map(([, row]) => row);
    if (rows.length === 0) { if (element("set")) element("set").remove(); return; }
    section("set", "What to set", `Clocks are memory/core, MHz. Time and energy are those of the work itself${run.kind === "trace" ? "" : ", without waiting"}.`,
      table("set-table", rows, [...(new Set(rows.map((r) => r.gpu_label)).size > 1 ? ["gpu_label"] : []), "pass", "clock", "launches", "default_time_s", "time_s", "time_change_pct", "default_energy_j", "energy_j", "energy_change_pct"], {bar: "energy_change_pct", cut: 40, of: "passes"}));
  }
  // Mean power between switches of clock, where the plan says what runs when.
  function power(p) {
    const rows = p && p.plan_id ? rowsOf("segments").filter((s) => s.plan_id === p.plan_id && s.time_s > 0) : [];
    if (run.kind === "pipeline" && rows.length > 1) return void section("power", "Passes and power over time", `A row for each stage; the colour is the power of a pass, its letter the kind. Outlined: the critical path. Between passes a stage waits${run.blocked_power_w ? ` and draws ${significant(run.blocked_power_w)} W` : ""}.`, gantt(rows), sql("segments"));
    if (rows.length < 2) { if (element("power")) element("power").remove(); return; }
    const series = d3.groups(rows, (s) => s.gpu_label).map(([gpu, list], i) => {
      // What repeats is drawn as often; a plan that says no times runs from its beginning.
      const spread = [];
      for (let at = 0; at < list.length;) {
        let end = at + 1;
        while (end < list.length && list[end].block === list[at].block && list[end].repeats === list[at].repeats && list[at].repeats > 1) ++end;
        for (let n = 0; n < list[at].repeats && spread.length < 5000; ++n) spread.push(...list.slice(at, end));
        at = end;
      }
      let now = 0;
      const points = [];
      spread.forEach((s) => {
        const from = s.start_s ?? now, w = s.energy_j / s.time_s, tip = `${gpu}, ${s.pass}, ${s.clock}: ${significant(w)} W for ${timeText(s.time_s)}`;
        if (points.length > 0 && from - now > 1e-9) points.push({x: now, y: run.blocked_power_w || null});
        points.push({x: from, y: w, tip});
        now = from + s.time_s;
      });
      return {name: gpu, color: color(i), dash: dashes[i % dashes.length], line: "step", strong: i === 0, rows: [...points, {x: now, y: points.length > 0 ? points[points.length - 1].y : null}]};
    });
    const shown = series.slice(0, 16), panels = shown.length > 1;
    const most = d3.max(series, (s) => d3.max(s.rows, (r) => r.y)), end = d3.max(series, (s) => d3.max(s.rows, (r) => r.x));
    const view = newView();
    const one = (s) => xy(`Power of ${s.name} over time`, {title: "time, s", extent: [0, end]}, {title: panels ? `${s.name}: power, W` : "power, W", extent: [0, most]}, [{...s, color: "var(--plan)", dash: null, name: ""}], {height: panels ? 170 : 260, small: panels, width: panels ? 520 : 1112, view});
    section("power", "Power over time", `Modelled mean power of each stretch with one clock${run.kind === "trace" ? ", one iteration; default clocks: " + significant(run.default_energy_j / run.default_time_s) + " W on average" : ""}. ${run.blocked_power_w ? `A stage that waits draws ${significant(run.blocked_power_w)} W.` : run.kind === "capture" ? "Gaps are not known: nothing that the plan sets runs then." : ""}`,
      made("div", {class: panels ? "panels" : ""}, shown.map(one)), series.length > 16 ? made("p", {}, `${series.length - 16} more GPUs are in the table.`) : null, sql("segments"));
  }
  function gantt(rows) {
    const frame = made("div", {class: "chart wide scroll", id: "gantt"}), view = newView(), drawn = {}, stages = [...new Set(rows.map((s) => s.gpu_label))], line = 26, width = 1112;
    const box = {left: 60, right: 12, top: 30, bottom: 40, width, height: 70 + stages.length * line}, end = d3.max(rows, (s) => s.start_s + s.time_s), watts = (s) => s.energy_j / s.time_s;
    const [least, most] = d3.extent(rows, watts), shade = d3.scaleSequential(d3.interpolateYlOrRd).domain([least - 0.15 * (most - least) - 1e-9, most + 0.45 * (most - least) + 1e-9]);
    const label = `Passes of ${stages.length} stages over time, ${significant(least)} to ${significant(most)} W`, clip = `inside-${++hatches}`;
    function draw() {
      const x = d3.scaleLinear(view.x || [0, end], [box.left, width - box.right]), [first, last] = x.domain();
      const svg = d3.select(frame).html("").append("svg").attr("viewBox", `0 0 ${width} ${box.height}`).attr("role", "img").attr("aria-label", label).attr("tabindex", -1);
      svg.append("clipPath").attr("id", clip).append("rect").attr("x", box.left - 1).attr("y", 0).attr("width", width - box.left - box.right + 2).attr("height", box.height);
      svg.append("g").attr("transform", `translate(0,${box.height - box.bottom})`).call(d3.axisBottom(x).ticks(10));
      svg.append("text").attr("class", "soft name").attr("x", width - box.right).attr("y", box.height - 6).attr("text-anchor", "end").text("time, s");
      svg.append("g").selectAll("text").data(stages).join("text").attr("class", "soft").attr("x", box.left - 6).attr("y", (_, i) => box.top + i * line + 16).attr("text-anchor", "end").text((name) => name);
      const passes = svg.append("g").attr("clip-path", `url(#${clip})`).selectAll("g").data(rows.filter((s) => s.start_s < last && s.start_s + s.time_s > first)).join("g").attr("transform", (s) => `translate(${x(s.start_s)},${box.top + stages.indexOf(s.gpu_label) * line})`), wide = (s) => x(s.start_s + s.time_s) - x(s.start_s);
      passes.append("rect").attr("class", "mark pass").attr("width", (s) => Math.max(0.5, wide(s) - 0.6)).attr("height", line - 4).attr("fill", (s) => shade(watts(s))).attr("stroke", (s) => s.critical ? "var(--ink)" : "none").attr("stroke-width", 1.6)
        .append("title").text((s) => `${s.gpu_label}, ${words(s.pass)} of microbatch ${s.microbatch}: ${s.clock}, ${significant(watts(s))} W, ${timeText(s.time_s)}${s.critical ? ", critical" : ""}`);
      passes.filter((s) => wide(s) > 16).append("text").attr("class", "pass-text").attr("x", (s) => wide(s) / 2).attr("y", 15).attr("text-anchor", "middle").text((s) => `${words(s.pass)[0].toUpperCase()}${wide(s) > 30 && s.microbatch !== null ? s.microbatch : ""}`);
      const scale = d3.range(20).map((i) => least + i * (most - least) / 19);
      svg.append("g").selectAll("rect").data(scale).join("rect").attr("x", (_, i) => box.left + 8 * i).attr("y", 4).attr("width", 8.3).attr("height", 10).attr("fill", shade);
      svg.append("text").attr("class", "soft").attr("x", box.left + 168).attr("y", 13).text(`${significant(least)} to ${significant(most)} W`);
      Object.assign(drawn, {x, box});
    }
    draw();
    return zoomable(label, frame, view, drawn, draw);
  }
  function planTable(p) {
    const measured = d3.group(rowsOf("verifications"), (v) => v.plan_id), published = rowsOf("published");
    const rows = [{granularity: "default", goal: "", set_to: run.default_clock, time_change_pct: 0, energy_change_pct: 0, average_power_w: run.default_power_w}, ...rowsOf("plans").map((q) => {
      const paper = published.find((r) => r.granularity === q.granularity && r.aggregation === q.aggregation && r.goal === q.goal), [check] = (measured.get(q.plan_id) || []).slice(-1);
      return {...q, energy_change_pct: q.energy_j === null ? null : q.energy_change_pct, time_change_pct: q.energy_j === null ? null : q.time_change_pct, published_time_change_pct: paper ? paper.time_change_pct : null, published_energy_change_pct: paper ? paper.energy_change_pct : null, measured_energy_change_pct: check ? check.measured_energy_change_pct : null, verdict: check ? check.energy_verdict : null};
    })];
    const differs = (field) => new Set(rowsOf("plans").map((q) => q[field])).size > 1;
    section("plans", "Plans", "Change of one step against the default clocks, with switches counted where it is known what they take. Negative energy is a saving.",
      table("plans-table", rows, ["granularity", ...["aggregation", "goal", "slack_pct", "status"].filter(differs), "set_to", "time_change_pct", "energy_change_pct", "energy_change_low_pct", "energy_change_high_pct", "odds_in_time_pct", "bound_change_pct", "gap_pct", "clock_switches", "clock_switches_per_s", "average_power_w", "published_time_change_pct", "published_energy_change_pct", "measured_energy_change_pct", "verdict", "notes"], {cut: 40, chosen: (q) => p && p.plan_id && q.plan_id === p.plan_id, of: "plans"}),
      answers.length > 1 ? made("div", {}, made("h3", {}, "Answers to each question"), table("answers-table", answers, ["goal", "slack_pct", "granularity", "set_to", "energy_change_pct", "time_change_pct", "odds_in_time_pct"], {of: "answers"})) : null);
  }
  function collectives() {
    const rows = rowsOf("collectives");
    if (rows.length === 0) return;
    const late = d3.rollups(rows, (list) => [list.length, d3.sum(list, (c) => c.start_skew_s)], (c) => c.last_rank).sort((a, b) => b[1][1] - a[1][1]);
    section("collectives", "Collectives of the ranks", `${rows.length} collectives. ${late.slice(0, 4).map(([rank, [count, s]]) => `Rank ${rank} came last ${count} times, ${timeText(s)} after the first`).join("; ")}.`,
      table("collectives-table", rows.map((c) => ({...c, start_skew_us: 1e6 * c.start_skew_s, transfer_us: 1e6 * c.transfer_s, end_spread_us: 1e6 * c.end_spread_s})), ["name", "collective", "ranks", "last_rank", "start_skew_us", "transfer_us", "end_spread_us"], {sort: "start_skew_us", of: "collectives"}));
  }
  function follow() {
    const p = chosenPlan();
    const changed = isOpened() ? "" : new URLSearchParams({slack: state.slack, per: state.per}).toString();
    if (location.hash.slice(1) !== changed && (changed || location.hash)) history.replaceState(null, "", changed ? `#${changed}` : location.pathname + location.search);
    top(titleOf(p), linesOf(p), side(p));
    trust(p);
    element("front-plot").replaceChildren(...front(p));
    element("slack-shown").textContent = percent(state.slack);
    setTable(p); kernelTable(p); power(p); planTable(p);
    order(); drawAll();
  }
  // A node that is moved loses its focus and a slider its pointer: only what stands wrongly is moved.
  const order = () => { let before = null; for (const id of ["answer", "trust", "front", "set", "kernels", "power", "collectives", "plans", "method"]) {
    const node = element(id);
    if (!node) continue;
    if (before ? before.nextElementSibling !== node : main.firstElementChild !== node) before ? before.after(node) : main.prepend(node);
    before = node;
  } links(); };
  const slider = made("input", {type: "range", id: "slack", min: 0, max: last, step: 0.1, value: state.slack, oninput: () => { state.slack = Number(slider.value); follow(); }});
  section("front", "Time against energy", "Every mark is a plan for all GPUs. Move the slider: answer, tables and curves follow.",
    made("div", {class: "slider"}, made("label", {}, "More time, at most ", slider, made("output", {id: "slack-shown", for: "slack"})), choice("One clock for", pers.map((g) => [g, g]), state.per, (g) => { state.per = g; follow(); })), made("div", {id: "front-plot"}));
  follow();
  collectives();
  dataSection([[run.kind === "pipeline" ? "Profile" : run.kind === "trace" ? "Trace" : "Captures", run.work.split("\n").join(", ")], ["GPU", run.gpu && `${page.gpu_title || run.gpu}, power limit ${run.power_limit_w} W`], ["Clocks", run.clock_grid], ["Rest of the node", run.host_power_w > 0 ? `${significant(run.host_power_w)} W per GPU, in all energies of the step` : null], ["Planning took", run.wall_time_s && timeText(run.wall_time_s)], ["Run", String(run.run_id)], ["Made", run.created_utc], ["Program", run.program_version]], run.command);
  order();
}

// Every setting of an experiment, and what its answers save.
function experimentPage() {
  const e = rowsOf("experiment")[0], errors = d3.group(rowsOf("errors"), (x) => x.gpu);
  // A unit that several scenarios ask for is drawn once.
  const units = [...d3.group(rowsOf("units"), (u) => u.plan_id).values()].map((same) => ({...same[0], scenario: [...new Set(same.map((u) => u.scenario))].filter((name) => name !== "").join(", ")}));
  const solved = units.filter((u) => u.energy_j !== null && u.time_change_pct <= 100);
  const bestOf = (rows) => d3.least(rows.filter((u) => u.is_answer), (u) => u.energy_change_pct) || d3.least(rows.filter((u) => u.energy_j !== null && u.in_time !== 0), (u) => u.energy_change_pct);
  const axes = ["gpu", "trace_name", "captured_clock", "model", "batch", "sequence", "tensor_parallel", "data_parallel", "stages", "microbatches", "schedule", "power_limit_w", "host_power_w", "clock_grid", "switch_stall_us", "switch_energy_j", "switch_latency_us", "switch_dwell_us", "seed", "granularity", "aggregation", "goal", "slack_pct", "tolerance_pct", "odds_pct", "scenario", "program_version"];
  const byValue = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const valuesOf = (axis, rows = units) => [...new Set(rows.map((u) => u[axis]))].filter((v) => v !== null && v !== "").sort(byValue);
  const varied = axes.filter((axis) => valuesOf(axis).length > 1);
  const show = (axis, v) => { const [what, unit] = named_unit(axis); return `${what} ${typeof v === "number" ? +v.toPrecision(6) : String(v).replace(/_/g, " ")}${unit ? ` ${unit}` : ""}`; };
  // An axis that those before it imply, such as the power limit of each GPU, tells no settings apart.
  const setting_axes = varied.filter((axis) => !["granularity", "aggregation", "goal", "slack_pct", "tolerance_pct", "scenario", "trace_name", "odds_pct"].includes(axis)).reduce((told, axis) => {
    const apart = (by) => new Set(units.map((u) => by.map((one) => u[one]).join("\n"))).size;
    return apart([...told, axis]) > apart(told) ? [...told, axis] : told;
  }, []);
  const settingName = (u) => [...(setting_axes.length === 0 || u.model === null ? [u.trace_name.split("\n")[0].split("/").pop()] : []), ...setting_axes.filter((axis) => u[axis] !== null).map((axis) => show(axis, u[axis]))].join(", ");
  const valueName = (u) => setting_axes.filter((axis) => u[axis] !== null).map((axis) => `${typeof u[axis] === "number" ? +u[axis].toPrecision(6) : u[axis]}${named_unit(axis)[1] ? ` ${named_unit(axis)[1]}` : ""}`).join(", ") || settingName(u);
  const settings = [...d3.group(units, (u) => u.run_id)].map(([run, list]) => ({run, unit: list[0], name: settingName(list[0]), best: bestOf(list)}));
  const nameOf = new Map(settings.map((s) => [s.run, s.name]));
  const best = units.find((u) => u.plan_id === page.best);
  const present = grains.filter((g) => units.some((u) => u.granularity === g)), looks = (g) => ({color: color(grains.indexOf(g)), dash: dashes[present.indexOf(g) % dashes.length], mark: kinds_of_marks[present.indexOf(g) % kinds_of_marks.length]});
  const tipOf = (u) => `${nameOf.get(u.run_id)}; ${u.granularity}, ${words(u.goal)}${u.slack_pct > 0 ? ` +${u.slack_pct} %` : ""}: energy ${percent(u.energy_change_pct, 2)}, time ${percent(u.time_change_pct, 2)}`;
  const pointsOf = (rows) => present.map((g) => ({...looks(g), name: `one clock for ${g}`, kind: "unit", size: 30, rows: rows.filter((u) => u.granularity === g).map((u) => ({x: u.time_change_pct, y: u.energy_change_pct, tip: tipOf(u)}))}));
  const time = {title: "time, % of default clocks", percent: true, zero: true}, energy = {title: "energy, % of default clocks", percent: true, zero: true};

  document.title = e.name;
  page.subtitle = `Experiment ${e.name}: ${e.finished_units} of ${e.planned_units} units, ${settings.length} settings, begun ${e.first_run_utc}`;
  top(best && best.energy_change_pct < -0.005 ? `${fixed(-best.energy_change_pct, 1)} % less energy at ${percent(best.time_change_pct)} time is the most that was saved` : "No plan in time saves energy: keep the default clocks", page.answer, null);
  const worstOf = (gpu) => { const list = (errors.get(gpu) || []).filter((x) => /energy|power/.test(x.name) && !x.name.includes("_scale_")), some = list.filter((x) => x.name.includes("energy")); return d3.max(some.length > 0 ? some : list, (x) => x.value) ?? null; };
  section("trust", "How well this is known", "Every saving on this page is simulated. Shares are those of the default time, the least of each GPU's settings.",
    table("model", d3.groups(units, (u) => u.gpu).map(([gpu, list]) => ({gpu, calibrated: list[0].gpu_calibrated ? "yes" : "no: numbers are rough", measured_pct: d3.min(list, (u) => u.measured_pct), guessed_pct: d3.max(list, (u) => (u.guessed_pct || 0) + (u.guessed_split_pct || 0)), worst_model_error_of_energy_pct: worstOf(gpu)})), ["gpu", "calibrated", "measured_pct", "guessed_pct", "worst_model_error_of_energy_pct"], {of: ""}));

  // Panels over two axes, on the same scales.
  const candidates = varied.filter((axis) => !["granularity", "trace_name", "program_version", "scenario"].includes(axis) && valuesOf(axis).length <= 12);
  const pairs = ["", ...candidates].flatMap((row) => candidates.filter((column) => column !== row).map((column) => ({row, column, count: new Set(solved.filter((u) => (row === "" || u[row] !== null) && u[column] !== null).map((u) => `${u[row]}\n${u[column]}`)).size})));
  const panels = d3.greatest(pairs.filter((pair) => pair.count <= 24), (pair) => pair.count) || {row: "", column: ""};
  const drawPanels = () => {
    const values = (axis) => axis ? valuesOf(axis) : [null], rows = values(panels.row), columns = values(panels.column), slim = main.clientWidth < narrow;
    const across = slim ? 1 : Math.min(columns.length, 4), width = Math.floor(Math.min(1112, main.clientWidth) / across) - 16;
    const extent = (of) => d3.extent([0, ...solved.map(of)]), list = rows.flatMap((r) => columns.map((c) => ({name: [[panels.row, r], [panels.column, c]].filter(([axis]) => axis).map(([axis, v]) => show(axis, v)).join(", ") || "all units", here: solved.filter((u) => (!panels.row || u[panels.row] === r) && (!panels.column || u[panels.column] === c))}))).filter((one) => one.here.length > 0);
    const view = newView();
    element("panels").style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
    element("panels").replaceChildren(...list.slice(0, 48).map((one) => { const kept_best = bestOf(one.here); return made("figure", {class: "panel"}, made("figcaption", {}, `${one.name}${kept_best ? `: ${percent(kept_best.energy_change_pct)}` : ""}`), xy(`${one.name}: ${one.here.length} units`, {...time, extent: extent((u) => u.time_change_pct)}, {...energy, extent: extent((u) => u.energy_change_pct)}, pointsOf(one.here), {small: true, height: 200, width: Math.max(220, width), view})); }));
    element("panels-note").textContent = list.length > 48 ? `${list.length - 48} more panels are not drawn; the table of units has all.` : "";
  };
  if (solved.length > 0) {
    section("front", "Time against energy", "Each mark is a unit. Panels have the same scales; the number is the saving of the panel's best.",
      made("p", {}, choice("Rows", [["", "none"], ...candidates.map((a) => [a, words(a)])], panels.row, (v) => { panels.row = v; drawPanels(); }), choice("Columns", [["", "none"], ...candidates.map((a) => [a, words(a)])], panels.column, (v) => { panels.column = v; drawPanels(); })),
      made("div", {class: "key"}, present.map((g) => { const item = made("span"); d3.select(item).append("svg").attr("viewBox", "0 0 22 12").attr("aria-hidden", "true").append("path").attr("transform", "translate(11,6)").attr("d", d3.symbol().type(symbols[looks(g).mark]).size(50)).attr("fill", looks(g).color); item.append(`one clock for ${g}`); return item; })),
      made("div", {id: "panels", class: "panels"}), made("p", {id: "panels-note"}));
    drawPanels();
    addEventListener("resize", drawPanels);
    // Fronts of two settings.
    const fronts = d3.group(rowsOf("fronts"), (f) => f.run_id, (f) => f.granularity), ranked = settings.filter((s) => s.best && fronts.has(s.run)).sort((a, b) => a.best.energy_change_pct - b.best.energy_change_pct);
    if (ranked.length > 0) {
      const two = [ranked[0].run, ranked[ranked.length - 1].run];
      const drawFronts = () => {
        element("fronts-plot").replaceChildren(xy("Energy over time along the fronts of two settings", time, energy, two.flatMap((run, i) => [...fronts.get(run)].map(([g, rows]) => ({name: `${g}${i === 0 ? "" : " (second)"}`, color: color(grains.indexOf(g)), dash: i === 0 ? null : "5 4", strong: i === 0, line: "line", mark: "circle", size: 12, rows: rows.map((r) => ({x: r.time_change_pct, y: r.energy_change_pct, tip: `${nameOf.get(run)}, one clock for ${g}: energy ${percent(r.energy_change_pct, 2)}, time ${percent(r.time_change_pct, 2)}`}))})))));
        drawAll();
      };
      const entries = ranked.map((s) => [s.run, s.name]);
      section("fronts", "Fronts of two settings", "The least energy for a time; solid: the first setting, dashed: the second.", made("p", {}, choice("First", entries, two[0], (v) => { two[0] = Number(v); drawFronts(); }), choice("Second", entries, two[1], (v) => { two[1] = Number(v); drawFronts(); })), made("div", {id: "fronts-plot"}));
      drawFronts();
    }
    const latencies = valuesOf("switch_latency_us", solved);
    if (latencies.length > 1) {
      const zero = latencies[0] === 0 ? latencies[1] / 10 : 0;
      section("latency", "Saving over switching latency", `Median of the units at a latency, and the range of the inner 80 %.${zero ? ` Free switches stand at ${significant(zero)} us.` : ""} Only segments know of the latency when they are planned; other plans may take more time than allowed.`,
        xy("Energy over the latency of a switch", {title: "switching latency, us", log: true}, energy, present.map((g) => ({...looks(g), name: `one clock for ${g}`, line: "line", size: 40, kind: "latency", rows: latencies.map((latency) => {
          const here = solved.filter((u) => u.granularity === g && u.switch_latency_us === latency).map((u) => u.energy_change_pct).sort(d3.ascending);
          return here.length === 0 ? null : {x: latency || zero, y: d3.quantile(here, 0.5), low: d3.quantile(here, 0.1), high: d3.quantile(here, 0.9), tip: `one clock for ${g}, ${latency} us: energy ${percent(d3.quantile(here, 0.5), 2)}, ${here.length} units`};
        }).filter(Boolean)}))));
    }
    const cells = rowsOf("kernels");
    if (cells.length > 0) {
      const runs = settings.filter((s) => cells.some((c) => c.run_id === s.run)).sort((a, b) => a.best.energy_change_pct - b.best.energy_change_pct), names = [...new Set(cells.map((c) => c.kernel))], at = d3.group(cells, (c) => c.kernel, (c) => c.run_id);
      section("kernels", "Energy of every kernel", `Change under the answer of each setting, most saving first.${settings.length > runs.length ? ` The ${runs.length} of ${settings.length} settings that save most.` : ""} Blue is less, orange more.`,
        heat("Energy change of each kernel in each setting", names, runs.map((s) => valueName(s.unit)), (row, column, c) => { const found = at.get(row).get(runs[c].run); return found ? found[0].energy_change_pct : null; }, {row: "kernel", column: `setting: ${setting_axes.map(words).join(", ")}`, value: "energy"}),
        table("kernels-table", cells.map((c) => ({...c, setting: nameOf.get(c.run_id)})), ["kernel", "setting", "pass", "class", "energy_share_pct", "time_change_pct", "energy_change_pct"], {bar: "energy_share_pct", sort: "energy_share_pct", of: "kernels"}));
    }
  }
  section("units", "Units", "", table("units-table", units, ["energy_change_pct", "time_change_pct", "energy_change_low_pct", "energy_change_high_pct", "granularity", "slack_pct", ...varied.filter((axis) => !["granularity", "slack_pct"].includes(axis) && (axis !== "trace_name" || units.some((u) => u.model === null))), "status", "measured_pct", "clock_changes", "gap_pct", "notes"].filter((c) => ["energy_change_pct", "time_change_pct"].includes(c) || new Set(units.map((u) => u[c])).size > 1), {cut: 50, sort: "energy_change_pct", chosen: (u) => best && u.plan_id === best.plan_id, of: "units"}));
  kept.get("units-table").down = false;
  dataSection([["Experiment", e.experiment_id], ...axes.filter((axis) => !varied.includes(axis) && valuesOf(axis).length === 1).map((axis) => [words(axis), String(units[0][axis])]).filter(([, v]) => v !== "0"), ["varied", varied.map(words).join(", ") || "nothing"]], null, made("details", {}, made("summary", {}, "Experiment file"), made("pre", {id: "file"}, page.file)));
}

// What rubato serve begins with.
function indexPage() {
  const runs = rowsOf("runs"), experiments = rowsOf("experiments"), live = experiments.filter((e) => e.finished_units < e.planned_units).length;
  top(page.title, {planned: `${runs.length} run${runs.length === 1 ? "" : "s"}, ${experiments.length} experiment${experiments.length === 1 ? "" : "s"}${live > 0 ? `, ${live} not finished` : ""}`}, null);
  if (runs.length > 0) section("runs", "Runs", "The plan to set of each, newest first.", table("runs-table", runs.map((r) => ({...r, work: r.work.split("\n").map((file) => file.split("/").pop()).join(", ")})), ["run_id", "work", "gpu", "power_limit_w", "slack_pct", "granularity", "set_to", "energy_change_pct", "time_change_pct", "odds_in_time_pct", "kind", "created_utc"], {bar: "energy_change_pct", cut: 100, link: (r) => `run/${r.run_id}`, of: "runs"}));
  if (experiments.length > 0) section("experiments", "Experiments", "", table("experiments-table", experiments.map((e) => ({name: e.name, ...e})), ["name", "finished_units", "planned_units", "first_run_utc", "experiment_id"], {cut: 100, link: (e) => `experiment/${e.experiment_id}`, of: "experiments"}));
  if (runs.length + experiments.length === 0) section("runs", "Runs", "None yet: rubato explore ... --db FILE stores one.");
}

// A page that a command writes: tables, and charts over their columns (tools/drawing/page.hpp says how they are named).
function drawnPage() {
  top(page.title, page.answer, null);
  for (const part of page.sections) {
    const rows = rowsOf(part.name), columns = page.tables[part.name] ? page.tables[part.name].columns : [];
    const charts = part.charts.flatMap((c) => chartsOf(c, rows.filter((row) => !c.where || String(row[c.where[0]]).includes(c.where[1]))));
    section(part.name, part.title, part.text.trim(), made("div", {class: charts.length > 1 ? "panels" : ""}, charts), ...(part.svg ? [svgNode(part.svg)] : []), ...(rows.length > 0 ? [table(`${part.name}-table`, rows, columns.length > 14 ? columns.filter((c) => !/_(low|high)_pct$/.test(c)) : columns, {cut: 20, of: part.name})] : []));
  }
  dataSection([], page.command);
}
function chartsOf(c, all) {
  const by = [c.panels || []].flat(), low = (field) => field.replace(/_change_pct$/, "_change_low_pct"), high = (field) => field.replace(/_change_pct$/, "_change_high_pct");
  const pairs = c.pairs || (c.ratio ? [[c.x, null, ""]] : c.y.map((field) => [c.x, field, c.y.length > 1 ? words(field.replace(/_?(energy|time)_change_pct$/, "")).replace(/^.*of default, /, "") || "plan" : "", low(field), high(field)]));
  const changes = isChange(pairs[0][1]), unit = named_unit(pairs[0][1])[1] || "", y = c.ratio ? "error, %" : pairs.length === 1 || c.pairs ? words(pairs[0][1]) : `${c.title.toLowerCase()}, ${changes && unit !== "points" ? "% of default" : unit}`;
  const panels = d3.groups(all, (row) => by.map((field) => row[field]).join("\n")).slice(0, 48).map(([, rows]) => {
    const names = rows.length > 0 && typeof rows[0][c.x] === "string" ? [...new Set(rows.map((row) => row[c.x]))] : null;
    const at = (row, field) => names ? names.indexOf(row[field]) : row[field], shown_names = names && distinct(names);
    const groups = c.by ? d3.groups(rows, (row) => row[c.by]) : [["", rows]];
    const heaviest = c.weight ? d3.max(rows, (row) => row[c.weight]) : 0;
    const series = groups.flatMap(([value, some]) => pairs.map(([x, y, name, from, to]) => ({name: [value, name].filter(Boolean).join(", "), line: c.line ? "line" : null, rows: some.map((row) => {
      const v = c.ratio ? 100 * (row[c.ratio[0]] / row[c.ratio[1]] - 1) : row[y], half = c.half ? row[c.half] : null;
      const told = [row.kernel || row.trace || row.class || row.clock, value, name, `${words(x)} ${names ? row[x] : significant(row[x] ?? 0)}`, `${c.ratio ? "error" : words(y)} ${significant(v ?? 0)}`];
      return {x: at(row, x), y: Number.isFinite(v) ? v : null, low: half ? v - half : from && from !== y ? row[from] : null, high: half ? v + half : to && to !== y ? row[to] : null, kernel: row.kernel, size: heaviest > 0 ? Math.max(12, 300 * row[c.weight] / heaviest) : null, tip: told.filter(Boolean).join(", ")};
    }).filter((r) => r.x !== null && r.x !== undefined && r.y !== null)}))).map((s, i) => ({...s, color: color(i), dash: dashes[i % dashes.length], mark: kinds_of_marks[i % kinds_of_marks.length], hollow: i % 2 === 1, rows: c.line ? s.rows.sort((a, b) => a.x - b.x) : s.rows})).filter((s) => s.rows.length > 0);
    return {rows, series, names: shown_names};
  }).filter((panel) => panel.series.length > 0);
  // Panels of a chart have the same scales.
  const zero = Boolean(c.ratio || changes || unit === "%"), marks = panels.flatMap((panel) => panel.series.flatMap((one) => one.rows));
  const shared = (of) => panels.length > 1 ? d3.extent(of) : undefined;
  const xs = shared(marks.map((m) => m.x)), ys = shared([...(zero ? [0] : []), ...marks.flatMap((m) => [m.y, m.low, m.high])].filter((v) => v !== null && v !== undefined && !(v > c.most)));
  return panels.map(({rows, series, names}) => {
    const panel = by.map((field) => `${words(field)}: ${rows[0][field]}`).join(", ");
    return made("figure", {}, made("figcaption", {}, [c.title, panel].filter(Boolean).join(": ")), xy([c.title, panel].filter(Boolean).join(", "), {title: words(pairs[0][0]), names, extent: xs, log: /x/.test(c.log || ""), percent: isChange(pairs[0][0]) && !names}, {title: y, extent: ys, log: /y/.test(c.log || ""), percent: c.ratio || changes, zero, most: c.most}, series, {height: 320, more: lines({...c, band: (c.band || 0) / 100})}));
  });
}
// The diagonal, a band about it or about zero, and named places on the x axis.
const lines = (c) => (plot, x, y, box) => {
  const [a, b] = x.domain(), [low, high] = y.domain(), band = c.band || 0, of = (v) => c.diagonal ? v : 0;
  const at = (v, share) => y(Math.max(low, Math.min(high, c.diagonal ? v * (1 + share) : 100 * share)));
  if (c.diagonal || band) {
    plot.append("path").attr("class", "band").attr("d", `M${x(a)} ${at(a, band)}L${x(b)} ${at(b, band)}L${x(b)} ${at(b, -band)}L${x(a)} ${at(a, -band)}Z`);
    plot.append("path").attr("class", "zero").attr("d", `M${x(a)} ${y(Math.max(low, of(a)))}L${x(b)} ${y(Math.min(high, of(b)))}`);
  }
  (c.places || []).filter(([v]) => v >= a && v <= b).forEach(([v, name], i) => {
    plot.append("path").attr("class", "zero").attr("stroke-dasharray", "2 3").attr("d", `M${x(v)} ${box.top}V${box.height - box.bottom}`);
    plot.append("text").attr("class", "soft").attr("x", x(v) + (x(v) > box.width / 2 ? -3 : 3)).attr("y", box.top + 10 + 13 * (i % 4)).attr("text-anchor", x(v) > box.width / 2 ? "end" : null).text(name);
  });
};
const svgNode = (text) => { const frame = made("div", {class: "chart wide scroll"}); frame.append(document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true)); return frame; };

function dataSection(pairs, command, ...more) {
  const download = (name, text, type) => { const link = made("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name}); link.click(); setTimeout(() => URL.revokeObjectURL(link.href), 1000); };
  section("method", "Data and method", "All numbers of this page are in this file; it loads nothing.", ...commands([command]),
    made("p", {class: "tools"}, made("button", {type: "button", onclick: () => download("rubato.json", JSON.stringify(page), "application/json")}, "Everything (JSON)"), made("button", {type: "button", onclick: () => print()}, "Print")), facts(pairs), ...more);
}
function links() {
  element("links").replaceChildren(...[...main.querySelectorAll("section:not(.first)")].map((s) => made("a", {href: `#${s.id}`, onclick: (event) => { event.preventDefault(); s.scrollIntoView(); }}, short(s.querySelector("h2").textContent, 24))));
}
// Charts are drawn once they have a width; those that left the page are forgotten.
function drawAll() {
  for (let i = redraw.length - 1; i >= 0; --i) {
    const [frame, draw] = redraw[i];
    if (!frame.isConnected) redraw.splice(i, 1);
    else if (frame.dataset.width !== String(frame.clientWidth)) { draw(); frame.dataset.width = String(frame.clientWidth); }
  }
}

const root = document.documentElement, theme = element("theme");
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
nameTheme();
document.title = page.title;
({run: runPage, experiment: experimentPage, drawn: drawnPage, index: indexPage})[page.kind]();
links();
drawAll();
addEventListener("resize", drawAll);
})();

const objects = (table) => table.rows.map((row) => Object.fromEntries(table.columns.map((name, i) => [name, row[i]])));
const asked = objects(data.units);
// A unit that several scenarios ask for is drawn once.
const units = [...d3.group(asked, (u) => u.plan_id).values()].map((same) => ({...same[0],
  scenario: [...new Set(same.map((u) => u.scenario))].filter((name) => name !== "").join(", ")}));
const solved = units.filter((u) => u.energy_j !== null);
// Of those, the one that saves most, among captured plans only where the slack is kept as played.
// The answers of their settings come first.
const bestOf = (rows) => d3.least(rows.filter((u) => u.is_answer), (u) => u.energy_change_pct) ||
  d3.least(rows.filter((u) => u.energy_j !== null && u.in_time !== 0), (u) => u.energy_change_pct);
const axes = ["gpu", "trace_name", "captured_clock", "model", "batch", "sequence", "tensor_parallel", "data_parallel", "stages", "microbatches", "schedule", "power_limit_w", "host_power_w", "clock_grid",
  "switch_stall_us", "switch_energy_j", "switch_latency_us", "switch_dwell_us", "seed", "granularity", "aggregation", "goal", "slack_pct", "tolerance_pct", "odds_pct", "scenario", "program_version"];
const byValue = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
const valuesOf = (axis, rows = units) => [...new Set(rows.map((u) => u[axis]))].sort(byValue);
// A fixed trace has no batch: null is no value of an axis.
const varied = axes.filter((axis) => valuesOf(axis).filter((v) => v !== null).length > 1);
const show = (value) => value === null || value === "" ? "-" : typeof value === "number" ? String(+value.toPrecision(6)) : words(value);
const grains = ["iteration", "pass", "kernel", "segment", "gpu", "launch"];
const presentGrains = grains.filter((name) => units.some((u) => u.granularity === name));
const grainColor = (name) => color(grains.indexOf(name));
const differingAxes = varied.filter((axis) => !["granularity", "aggregation", "goal", "slack_pct", "tolerance_pct", "scenario", "trace_name"].includes(axis));
// An axis that those before it imply, such as the power limit of each GPU, tells no settings apart.
const settingAxes = differingAxes.reduce((kept, axis) => {
  const told = (by) => new Set(units.map((u) => by.map((one) => `${show(u[one])}`).join("\n"))).size;
  return told([...kept, axis]) > told(kept) ? [...kept, axis] : kept;
}, []);
const settingName = (u) => [...(settingAxes.length === 0 || u.model === null ? [u.trace_name] : []),
  ...settingAxes.filter((axis) => u[axis] !== null).map((axis) => with_value(axis, show(u[axis])))].join(", ");
const questionName = (u) => `${u.granularity}, ${u.aggregation}, ${words(u.goal)}${u.slack_pct > 0 ? ` +${show(u.slack_pct)} %` : ""}`;

// What fit and cross-validation of each GPU left on energy (or, failing that, power): the worst.
const errors = d3.group(objects(data.errors), (e) => e.gpu);
const modelError = (gpu) => errorText(worstError((errors.get(gpu) || []).map((e) => [e.name, e.value])));
const coverage = (u) => `${u.measured_pct.toFixed(0)} %`;
const interval = (u) => u.energy_change_low_pct === null ? "" : `${u.captured_clock === null ? "90 % interval" : "shifted 90 % interval"} ${percent(u.energy_change_low_pct, 1)} to ${percent(u.energy_change_high_pct, 1)}, `;
const trust = (u) => `${interval(u)}${coverage(u)} measured, ${u.anchored_pct > 0 ? `${u.anchored_pct.toFixed(0)} % anchored, ` : ""}${u.scaled_pct > 0 ? `${u.scaled_pct.toFixed(0)} % scaled, ` : ""}model error ${modelError(u.gpu)}` +
  `${u.gpu_calibrated ? "" : ", not calibrated"}${u.notes ? `; ${u.notes}` : ""}`;

function drawModel() {
  const settings = [...d3.group(units, (u) => u.gpu)];
  table("#model", [["GPU", (g) => g[0]], ["Calibrated", (g) => g[1][0].gpu_calibrated ? "yes" : "no: numbers are rough"],
    ["Least coverage", (g) => `${d3.min(g[1], (u) => u.measured_pct).toFixed(0)} %`, true],
    ["Most guessed, times or their split", (g) => `${d3.max(g[1], (u) => u.guessed_pct + u.guessed_split_pct).toFixed(0)} %`, true],
    ["Worst error of energy", (g) => modelError(g[0]), true], ["where", (g) => { const e = worstError((errors.get(g[0]) || []).map((one) => [one.name, one.value])); return e ? errorName(e[0]) : "-"; }]], settings);
  const rough = settings.filter((g) => !g[1][0].gpu_calibrated).map((g) => g[0]);
  if (rough.length > 0) {
    element("warning").hidden = false;
    element("warning").textContent = `Not calibrated, so that numbers are rough: ${rough.join(", ")}.`;
  }
}

const maxPanels = 144, widestPanels = 12;
const hasUnit = (list) => list.some((u) => u.energy_j !== null && u.time_change_pct <= 100);
// Two axes that are crossed: every panel has a unit; of those the pair with most panels. Else one axis.
function crossedAxes() {
  const candidates = varied.filter((axis) => !["granularity", "trace_name", "program_version"].includes(axis));
  const values = (axis) => valuesOf(axis).filter((v) => v !== null);
  let best = null;
  for (const row of ["", ...candidates]) for (const column of candidates) {
    if (row === column) continue;
    const rows = row ? values(row) : [null], columns = values(column), panels = rows.length * columns.length;
    if (columns.length > widestPanels || panels > maxPanels || (best && panels <= best.panels)) continue;
    const groups = d3.group(units, (u) => row ? u[row] : null, (u) => u[column]);
    if (rows.every((r) => columns.every((c) => hasUnit((groups.get(r) || new Map()).get(c) || [])))) best = {row, column, panels};
  }
  return best || {row: "", column: ""};
}
const axisText = (axis, value) => axis ? with_value(axis, short(show(value), 24)) : "";
function drawPanel(svg, {x, y, size, pad, here, best, name}) {
  svg.attr("class", "panel").attr("width", size).attr("height", size).attr("viewBox", `0 0 ${size} ${size}`)
    .attr("role", "img").attr("tabindex", 0).attr("aria-label", `${name}: ${here.length} units, best ${percent(best.energy_change_pct, 2)} energy at ${percent(best.time_change_pct, 2)} time, ${questionName(best)}; ${trust(best)}`);
  svg.append("rect").attr("width", size).attr("height", size).attr("class", "ground");
  svg.append("path").attr("class", "zero").attr("d", `M${x(0)} 0 V${size} M0 ${y(0)} H${size}`);
  const ticks = size < 130 ? 2 : 4, inside = (at) => at > 12 && at < size - 12;
  const shown = (scale) => { const list = scale.ticks(ticks); return [list, list.every(Number.isInteger) ? 0 : 1]; };
  const [downs, down_digits] = shown(y), [acrosses, across_digits] = shown(x);
  for (const v of downs) if (v !== 0 && inside(y(v))) svg.append("text").attr("class", "tick").attr("x", 2).attr("y", y(v) + 3).text(percent(v, down_digits));
  for (const v of acrosses) if (v !== 0 && inside(x(v)) && x(v) > 34) svg.append("text").attr("class", "tick").attr("x", x(v)).attr("y", size - 3).attr("text-anchor", "middle").text(percent(v, across_digits));
  svg.selectAll("circle").data(here).join("circle").attr("class", "unit").attr("cx", (u) => x(u.time_change_pct)).attr("cy", (u) => y(u.energy_change_pct))
    .attr("r", 2.6).attr("fill", (u) => grainColor(u.granularity)).append("title").text((u) => `${questionName(u)}: energy ${percent(u.energy_change_pct, 2)}, time ${percent(u.time_change_pct, 2)}`);
  svg.append("text").attr("class", "label").attr("x", size - pad).attr("y", 14).attr("text-anchor", "end").text(percent(best.energy_change_pct, 1));
}
function drawMultiples() {
  const rowAxis = element("row-axis").value, columnAxis = element("column-axis").value;
  const groups = d3.group(units, (u) => rowAxis ? u[rowAxis] : null, (u) => columnAxis ? u[columnAxis] : null);
  const present = (axis) => axis ? valuesOf(axis).filter((v) => v !== null) : [null];
  const at = (row, column) => ((groups.get(row) || new Map()).get(column) || []).filter((u) => u.energy_j !== null && u.time_change_pct <= 100);
  const columns = present(columnAxis), allRows = present(rowAxis);
  const shownColumns = columns.slice(0, widestPanels);
  const rows = allRows.slice(0, Math.max(1, Math.floor(maxPanels / shownColumns.length)));
  // On a telephone the name of a row stands above it.
  const width = drawWidth("#multiples"), slim = width < narrow, pad = 5;
  const size = Math.max(80, Math.min(220, Math.floor((width - (slim || !rowAxis ? 0 : 150)) / shownColumns.length) - 6));
  const within = solved.filter((u) => u.time_change_pct <= 100);
  const x = d3.scaleLinear(d3.extent([0, ...within.map((u) => u.time_change_pct)]), [pad, size - pad]).nice(4);
  const y = d3.scaleLinear(d3.extent([0, ...within.map((u) => u.energy_change_pct)]), [size - pad, pad]).nice(4);
  const box = d3.select("#multiples").html("").append("table");
  const head = box.append("thead").append("tr");
  if (!slim) head.append("th").text("");
  head.selectAll("th.column").data(shownColumns).join("th").attr("class", "column").attr("scope", "col").text((v) => axisText(columnAxis, v));
  const numbers = [];
  for (const rowValue of rows) {
    const body = box.append("tbody");
    if (slim && rowAxis) body.append("tr").append("th").attr("scope", "rowgroup").attr("colspan", shownColumns.length).text(axisText(rowAxis, rowValue));
    const line = body.append("tr");
    if (!slim) line.append("th").attr("scope", "row").text(axisText(rowAxis, rowValue));
    for (const columnValue of shownColumns) {
      const here = at(rowValue, columnValue), best = bestOf(here);
      const name = [rowAxis && with_value(rowAxis, show(rowValue)), columnAxis && with_value(columnAxis, show(columnValue))].filter(Boolean).join(", ") || "all units";
      const cell = line.append("td");
      if (!best) continue;
      drawPanel(cell.append("svg"), {x, y, size, pad, here, best, name});
      numbers.push({name, best, count: here.length});
    }
  }
  const left = allRows.length * columns.length - rows.length * shownColumns.length;
  element("multiples-note").textContent = (units.some((u) => (rowAxis && u[rowAxis] === null) || (columnAxis && u[columnAxis] === null)) ? "Fixed traces without these axes are in the table of units only. " : "") +
    (left > 0 ? `${left} more panels are not drawn; the table of units has all.` : "");
  key("#multiples-key", presentGrains.map((name) => ({name: `by ${name}`, color: grainColor(name)})));
  table("#multiples-table", [["Panel", (n) => n.name], ["Units", (n) => n.count, true], ["Best energy", (n) => percent(n.best.energy_change_pct, 2), true],
    ["its time", (n) => percent(n.best.time_change_pct, 2), true], ["Coverage", (n) => coverage(n.best), true], ["Model error", (n) => modelError(n.best.gpu), true], ["Question", (n) => questionName(n.best)]], numbers);
}

const settings = [...d3.group(units, (u) => u.run_id)].map(([run, list]) => ({run, unit: list[0], name: settingName(list[0]), best: bestOf(list)}));
const fronts = d3.group(data.fronts.map(([run, granularity, flat]) => ({run, granularity, points: d3.range(flat.length / 2).map((i) => [flat[2 * i], flat[2 * i + 1]])})), (f) => f.run);

// Captured runs have names, others numbers.
const runOf = (id) => Number(element(id).value);

function drawFronts() {
  const chosen = [[runOf("front-a"), null], [runOf("front-b"), "5 4"]];
  const lines = chosen.flatMap(([run, dash]) => (fronts.get(run) || []).map((front) => ({...front, dash})));
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) return;
  const width = drawWidth("#fronts"), height = width < narrow ? 320 : 420, margin = {top: 20, right: 22, bottom: 44, left: 58};
  const x = d3.scaleLinear(d3.extent([[0, 0], ...points], (p) => p[0]), [margin.left, width - margin.right]).nice();
  const y = d3.scaleLinear(d3.extent([[0, 0], ...points], (p) => p[1]), [height - margin.bottom, margin.top]).nice();
  const name = (run) => settings.find((s) => s.run === run).name;
  const svg = chart("#fronts", width, height, `Fronts of energy over time: ${name(chosen[0][0])} solid, ${name(chosen[1][0])} dashed. The numbers are in the table below.`);
  timeEnergyAxes(svg, x, y, width, height, margin, "an iteration");
  svg.selectAll("path.front").data(lines).join("path").attr("class", "front").attr("fill", "none").attr("stroke", (l) => grainColor(l.granularity)).attr("stroke-width", 2)
    .attr("stroke-dasharray", (l) => l.dash).attr("d", (l) => d3.line().x((p) => x(p[0])).y((p) => y(p[1]))(l.points));
  svg.append("g").selectAll("circle").data(lines.flatMap((l) => l.points.map((p) => ({l, p})))).join("circle").attr("cx", (d) => x(d.p[0])).attr("cy", (d) => y(d.p[1])).attr("r", 2).attr("fill", (d) => grainColor(d.l.granularity))
    .append("title").text((d) => `${name(d.l.run)}, one clock per ${d.l.granularity}: energy ${percent(d.p[1], 2)}, time ${percent(d.p[0], 2)}`);
  const present = grains.filter((grain) => lines.some((l) => l.granularity === grain));
  key("#fronts-key", [...present.map((grain) => ({name: `by ${grain}`, color: grainColor(grain)})), {name: short(name(chosen[0][0])), color: "var(--ink)", path: "M0 6 h14"},
    {name: short(name(chosen[1][0])), color: "var(--ink)", path: "M0 6 h14", dash: "4 3"}]);
  const budgets = [0, 1, 2, 5, 10, 20];
  // The least energy on a front within a budget of time.
  const within = (line, budget) => { const last = d3.least(line.points.filter((p) => p[0] <= budget + 1e-6), (p) => p[1]); return last ? percent(last[1], 2) : "-"; };
  const unitOf = (run) => settings.find((s) => s.run === run).unit;
  table("#fronts-table", [["Setting", (l) => name(l.run)], ["One clock by", (l) => l.granularity], ...budgets.map((b) => [`Energy at ${percent(b, 0)} time`, (l) => within(l, b), true]),
    ["Coverage", (l) => coverage(unitOf(l.run)), true], ["Model error", (l) => modelError(unitOf(l.run).gpu), true]], lines);
}

function drawLatency() {
  const stalls = valuesOf("switch_latency_us", solved);
  if (stalls.length < 2) {
    element("latency-note").textContent = "This experiment has one switching latency; give the axis switch_latency_us or switch_stall_us several values to see what is left of a saving.";
    element("latency-details").hidden = true;
    return;
  }
  // At each latency and granularity the middle of all units, and the range of their savings.
  const rows = [];
  for (const grain of presentGrains) {
    for (const stall of stalls) {
      const here = solved.filter((u) => u.granularity === grain && u.switch_latency_us === stall);
      if (here.length === 0) continue;
      const sorted = here.map((u) => u.energy_change_pct).sort(d3.ascending);
      rows.push({grain, stall, middle: d3.quantile(sorted, 0.5), least: d3.quantile(sorted, 0.1), most: d3.quantile(sorted, 0.9), time: d3.median(here, (u) => u.time_change_pct),
        measured: d3.min(here, (u) => u.measured_pct), gpus: [...new Set(here.map((u) => u.gpu))]});
    }
  }
  const width = drawWidth("#latency"), height = 360, margin = {top: 14, right: 14, bottom: 46, left: 58};
  const x = d3.scalePoint(stalls, [margin.left + 20, width - margin.right - 20]);
  const y = d3.scaleLinear(d3.extent([0, ...rows.flatMap((r) => [r.least, r.most])]), [height - margin.bottom, margin.top]).nice();
  const svg = chart("#latency", width, height, "Energy change over the latency of a change of clock, by granularity: middle of all units and the range of the inner 80 %. The numbers are in the table below.");
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickFormat(show));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).tickFormat((v) => percent(v, 0)));
  svg.append("line").attr("class", "zero").attr("x1", margin.left).attr("x2", width - margin.right).attr("y1", y(0)).attr("y2", y(0));
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", height - 8).attr("text-anchor", "end").text(width < narrow ? "latency of a change of clock, us" : "latency of a change of clock, us (values as given, not to scale)");
  presentGrains.forEach((grain, i) => {
    const line = rows.filter((r) => r.grain === grain), at = (r) => x(r.stall) + 4 * (i - presentGrains.length / 2);
    svg.append("path").attr("class", "latency").attr("fill", "none").attr("stroke", grainColor(grain)).attr("stroke-width", 2).attr("d", d3.line().x(at).y((r) => y(r.middle))(line));
    svg.append("g").selectAll("line").data(line).join("line").attr("x1", at).attr("x2", at).attr("y1", (r) => y(r.least)).attr("y2", (r) => y(r.most)).attr("stroke", grainColor(grain));
    svg.append("g").selectAll("circle").data(line).join("circle").attr("cx", at).attr("cy", (r) => y(r.middle)).attr("r", 3.6).attr("fill", grainColor(grain))
      .append("title").text((r) => `${r.grain}, ${show(r.stall)} us: ${percent(r.middle, 2)} energy, ${percent(r.time, 2)} time`);
  });
  element("latency-note").textContent = "The middle of all units at that latency, with the range that holds 80 % of them. Only granularity segment knows of the latency when it plans; the others may take more time than allowed.";
  key("#latency-key", presentGrains.map((grain) => ({name: `by ${grain}`, color: grainColor(grain)})));
  table("#latency-table", [["One clock by", (r) => r.grain], ["Latency, us", (r) => show(r.stall), true], ["Middle energy", (r) => percent(r.middle, 2), true], ["Best 10 %", (r) => percent(r.least, 2), true],
    ["Worst 10 %", (r) => percent(r.most, 2), true], ["Middle time", (r) => percent(r.time, 2), true], ["Least coverage", (r) => `${r.measured.toFixed(0)} %`, true], ["Model error", (r) => r.gpus.map(modelError).join(", "), true]], rows);
}

function drawKernels() {
  const cells = objects(data.kernels);
  if (cells.length === 0) {
    element("kernels-note").textContent = units.every((u) => u.captured_clock !== null)
      ? "Captured runs only: rubato report --run N draws the clock of every kernel of one." : "No plan of a trace was found.";
    element("kernels-details").hidden = true;
    return;
  }
  const runs = [...new Set(cells.map((c) => c.run_id))].map((run) => settings.find((s) => s.run === run)).sort((a, b) => a.best.energy_change_pct - b.best.energy_change_pct);
  const names = [...new Set(cells.map((c) => c.name))];
  const width = drawWidth("#kernels"), slim = width < narrow, line = 18, margin = {top: 8, right: 8, bottom: 34, left: slim ? 118 : 190}, letters = slim ? 17 : 26;
  const height = margin.top + margin.bottom + names.length * line;
  const x = d3.scaleBand(runs.map((s) => s.run), [margin.left, width - margin.right]).padding(0.05);
  const y = d3.scaleBand(names, [margin.top, height - margin.bottom]).padding(0.08);
  const most = Math.max(1, d3.max(cells, (c) => Math.abs(c.energy_change_pct)));
  const position = new Map(runs.map((s, i) => [s.run, i + 1]));
  const svg = chart("#kernels", width, height, "Energy change of each kernel (rows) in each setting (columns) under its best plan. The numbers are in the table below.");
  const cell = svg.selectAll("g.cell").data(cells).join("g").attr("class", "cell").attr("data-kernel", (c) => c.name).attr("transform", (c) => `translate(${x(c.run_id)},${y(c.name)})`);
  cell.append("rect").attr("width", x.bandwidth()).attr("height", y.bandwidth()).attr("fill", "var(--mid)");
  cell.append("rect").attr("width", x.bandwidth()).attr("height", y.bandwidth()).attr("fill", (c) => c.energy_change_pct < 0 ? "var(--low)" : "var(--high)")
    .attr("fill-opacity", (c) => 0.9 * Math.sqrt(Math.abs(c.energy_change_pct) / most))
    .append("title").text((c) => `${c.name}, ${settings.find((s) => s.run === c.run_id).name}: energy ${percent(c.energy_change_pct, 2)}, time ${percent(c.time_change_pct, 2)}, ${c.share_pct.toFixed(1)} % of the energy`);
  if (x.bandwidth() > 26) cell.append("text").attr("x", x.bandwidth() / 2).attr("y", y.bandwidth() / 2 + 4).attr("text-anchor", "middle").text((c) => signed(c.energy_change_pct, 0));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).tickSize(0).tickPadding(6).tickFormat((name) => short(name, letters)));
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickSize(0).tickPadding(6).tickFormat((run) => position.get(run)));
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", height - 4).attr("text-anchor", "end").text(slim ? "setting, most saving first" : "setting, most saving first; the table names them");
  element("kernels-note").textContent = `Energy of each kernel against default clocks under the best plan of the setting. Blue is less, orange is more; the colour is full at ${most.toFixed(0)} %.` +
    (settings.length > runs.length ? ` The ${runs.length} of ${settings.length} settings that save most.` : "");
  const byName = d3.group(cells, (c) => c.name, (c) => c.run_id);
  const value = (name, run) => { const found = byName.get(name).get(run); return found ? percent(found[0].energy_change_pct, 1) : "-"; };
  table("#kernels-table", [["No.", (s) => position.get(s.run), true], ["Setting", (s) => s.name], ["Plan", (s) => questionName(s.best)], ["Energy", (s) => percent(s.best.energy_change_pct, 2), true],
    ["Coverage", (s) => coverage(s.best), true], ["Model error", (s) => modelError(s.best.gpu), true], ...names.map((name) => [short(name, 26), (s) => value(name, s.run), true])], runs);
}

const cellText = {time_change_pct: (u) => percent(u.time_change_pct, 2), energy_change_pct: (u) => u.energy_change_pct === null ? show(u.status) : percent(u.energy_change_pct, 2),
  energy_change_low_pct: (u) => u.energy_change_low_pct === null ? "-" : range(u.energy_change_low_pct, u.energy_change_high_pct), measured_pct: coverage,
  gpu_error: (u) => modelError(u.gpu) + (u.gpu_calibrated ? "" : " (not calibrated)"), gap_pct: (u) => u.gap_pct === null ? "-" : `${u.gap_pct.toFixed(3)} %`};
const textOf = (u, field) => cellText[field] ? cellText[field](u) : show(u[field]);
// What was asked for beside the question; a trace that its axes describe needs no name.
const named_by_axes = units.every((u) => u.model !== null);
const follows = (axis, other) => valuesOf(other).every((v) => valuesOf(axis, units.filter((u) => u[other] === v)).length === 1);
const told = (axis) => ["power_limit_w", "clock_grid", "scenario"].includes(axis) && ["gpu", "model", "captured_clock"].some((other) => varied.includes(other) && follows(axis, other));
const unit_axes = axes.filter((axis) => !told(axis) && varied.includes(axis) && !["granularity", "slack_pct"].includes(axis) && (axis !== "trace_name" || !named_by_axes) &&
  (axis !== "goal" || valuesOf("goal").some((goal) => !["strict_waste", "relaxed_waste"].includes(goal))));
// The answer first; what is the same in all units is below, in how this was made.
const unitColumns = [["Energy", "energy_change_pct", true], ["Time", "time_change_pct", true], ["90 % interval", "energy_change_low_pct", true], ["One clock by", "granularity", false], ["Slack, %", "slack_pct", true],
  ...unit_axes.map((axis) => [words(axis), axis, typeof units[0][axis] === "number"]),
  ["Measured", "measured_pct", true], ["Model error", "gpu_error", false], ["Changes", "clock_changes", true], ["Proven gap", "gap_pct", true], ["Notes", "notes", false]]
  .filter(([, field], i) => i < 2 || new Set(units.map((u) => textOf(u, field))).size > 1);
let order = {field: "energy_change_pct", down: false}, everything = false;

function drawUnits() {
  const wanted = element("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = units.filter((u) => { const text = unitColumns.map((c) => textOf(u, c[1])).join(" ").toLowerCase(); return wanted.every((word) => text.includes(word)); });
  const missing = (value) => value === null || value === undefined;
  found.sort((a, b) => missing(a[order.field]) - missing(b[order.field]) || (order.down ? -1 : 1) * byValue(a[order.field], b[order.field]) || byValue(a.plan_id, b.plan_id));
  const rows = everything ? found : found.slice(0, 50);
  const box = d3.select("#units").html("").append("table");
  const heads = box.append("thead").append("tr").selectAll("th").data(unitColumns).join("th").attr("scope", "col").classed("number", (c) => c[2])
    .attr("aria-sort", (c) => c[1] === order.field ? (order.down ? "descending" : "ascending") : null);
  heads.append("button").attr("type", "button").text((c) => `${c[0]}${c[1] === order.field ? (order.down ? " ▾" : " ▴") : ""}`)
    .on("click", (c) => { order = {field: c[1], down: order.field === c[1] && !order.down}; drawUnits(); element("units").querySelectorAll("th button")[unitColumns.indexOf(c)].focus(); });
  box.append("tbody").selectAll("tr").data(rows).join("tr").attr("class", "unit-row").selectAll("td").data((u) => unitColumns.map((c) => [textOf(u, c[1]), c[2]])).join("td")
    .classed("number", (cell) => cell[1]).classed("words", (cell) => String(cell[0]).length > longest_line).attr("data-full", (cell) => cell[0]).text((cell) => short(cell[0]));
  element("units-note").textContent = `${rows.length} of ${found.length} units`;
  element("all").hidden = rows.length === found.length;
}

const e = data.experiment;
document.title = e.name;
element("title").textContent = short(e.name, 200);
element("subtitle").textContent = `${e.finished_units} of ${e.planned_units} units, ${settings.length} settings, begun ${e.first_run_utc}.`;
const kept = units.find((u) => u.plan_id === data.best);
const unitName = (u) => `${questionName(u)}${settings.length > 1 ? `, ${u.trace_name} on ${u.gpu}` : ""}; ${trust(u)}.`;
if (kept) {
  const target = d3.select("#answer");
  target.append("b").text(`Energy ${percent(kept.energy_change_pct, 2)}`);
  target.append("span").text(` at ${percent(kept.time_change_pct, 2)} time is the most that was saved: ${unitName(kept)}`);
} else element("answer").textContent = "No plan is in time and can be set on a GPU as it is.";
facts("#run", [["experiment", e.experiment_id], ...axes.filter((axis) => !varied.includes(axis) && units.length > 0)
  .map((axis) => [words(axis), show(units[0][axis])]).filter(([, value]) => value !== "-" && value !== "0"), ["varied", varied.map(words).join(", ") || "nothing"]]);
element("file").textContent = data.file;
if (units.length > 0) {
  drawModel();
  const options = [["", "none"], ...varied.filter((axis) => axis !== "trace_name" || !varied.includes("model")).map((axis) => [axis, words(axis)])];
  const crossed = crossedAxes();
  fill("row-axis", options, crossed.row, drawMultiples);
  fill("column-axis", options, crossed.column, drawMultiples);
  drawMultiples();
  const ranked = settings.filter((s) => s.best).sort((a, b) => a.best.energy_change_pct - b.best.energy_change_pct);
  if (ranked.length > 0) {
    const entries = settings.map((s) => [s.run, s.name || s.unit.trace_name]);
    fill("front-a", entries, ranked[0].run, drawFronts);
    fill("front-b", entries, ranked[ranked.length - 1].run, drawFronts);
    drawFronts();
    drawLatency();
    drawKernels();
    whenResized(() => { drawMultiples(); drawFronts(); drawLatency(); drawKernels(); });
  }
  element("find").addEventListener("input", drawUnits);
  element("all").addEventListener("click", () => { everything = true; drawUnits(); });
  drawUnits();
}
document.documentElement.dataset.readyMs = performance.now().toFixed(0);
})();

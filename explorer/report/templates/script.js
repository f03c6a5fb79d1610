const granularities = ["iteration", "pass", "kernel"];
const passes = ["embedding", "forward", "loss", "backward", "embedding_backward", "optimizer", "unknown"];
const passColor = (pass) => color(Math.max(passes.indexOf(pass), 0));


const planName = (p) => p.goal === "default" ? "default clocks"
  : `${p.granularity}, ${p.aggregation}, ${words(p.goal)}` + (p.slack_frac > 0 ? ` +${(100 * p.slack_frac).toFixed(0)} %` : "");

function published(plan) {
  return data.published.find((row) => row.granularity === plan.granularity &&
    row.aggregation === plan.aggregation && row.goal === plan.goal);
}

function drawPlans() {
  const columns = [
    ["Plan", planName], ["Status", (p) => p.status],
    ["Time", (p) => p.time_s === null ? "-" : percent(p.time_change_pct, 2), true],
    ["Energy", (p) => p.energy_j === null ? "-" : percent(p.energy_change_pct, 2), true],
    ["90 % interval", (p) => p.energy_change_low_pct === null ? "-" : `${percent(p.energy_change_low_pct, 1)} to ${percent(p.energy_change_high_pct, 1)}`, true],
    ["Mean power", (p) => p.energy_j === null ? "-" : `${p.average_power_w.toFixed(0)} W`, true],
    ["Switches", (p) => p.clock_switches === null ? "-" : p.clock_switches, true],
    ["Proven gap", (p) => p.gap_frac === null ? "-" : `${(100 * p.gap_frac).toFixed(3)} %`, true],
  ];
  if (data.published.length > 0) {
    const cell = (field) => (p) => { const row = published(p); return row ? percent(row[field], 2) : "-"; };
    columns.push(["Paper time", cell("time_change_pct"), true], ["Paper energy", cell("energy_change_pct"), true]);
  }
  if (data.verifications.length > 0) {
    const last = (p) => data.verifications.filter((v) => v.plan_id === p.plan_id).at(-1);
    const measured = (p) => { const v = last(p); return v
      ? `${percent(v.measured_energy_change_pct, 2)} (${percent(v.measured_energy_change_low_pct, 2)} to ${percent(v.measured_energy_change_high_pct, 2)}), ${v.energy_verdict}` : "-"; };
    columns.push(["Measured energy", measured, true]);
  }
  if (data.notes.length > 0) columns.push(["Notes", (p) => p.notes || ""]);
  table("#plans", columns, data.plans);
  listNotes("#notes", data.notes);
}

function drawFront() {
  const width = 900, height = 460, margin = {top: 14, right: 20, bottom: 46, left: 64};
  const shown = data.front.filter((p) => p.time_change_pct <= 100);
  const plans = data.plans.filter((p) => p.energy_j !== null && p.time_change_pct <= 100);
  const all = [...shown, ...plans, ...data.published];
  const x = d3.scaleLinear(d3.extent(all, (p) => p.time_change_pct), [margin.left, width - margin.right]).nice();
  const y = d3.scaleLinear(d3.extent(all, (p) => p.energy_change_pct), [height - margin.bottom, margin.top]).nice();
  const svg = chart("#front", width, height, "Energy change over time change: fronts of the three granularities, the plans of this run and the published results. The numbers are in the table below.");
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickFormat((v) => percent(v, 0)));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).tickFormat((v) => percent(v, 0)));
  svg.append("line").attr("class", "zero").attr("x1", x(0)).attr("x2", x(0)).attr("y1", margin.top).attr("y2", height - margin.bottom).attr("stroke-dasharray", "3 3");
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", height - 8).attr("text-anchor", "end").text("time of an iteration against default clocks");
  svg.append("text").attr("class", "soft").attr("transform", `translate(14,${margin.top}) rotate(-90)`).attr("text-anchor", "end").text("energy against default clocks");
  granularities.forEach((name, i) => {
    const points = shown.filter((p) => p.granularity === name);
    if (points.length === 0) return;
    svg.append("path").attr("class", "front").attr("fill", "none").attr("stroke", color(i)).attr("stroke-width", 2)
      .attr("d", d3.line().x((p) => x(p.time_change_pct)).y((p) => y(p.energy_change_pct))
        .curve(name === "kernel" ? d3.curveLinear : d3.curveStepAfter)(points));
    if (points.length < 80) {
      svg.append("g").selectAll("circle").data(points).join("circle").attr("r", 2.5).attr("fill", color(i))
        .attr("cx", (p) => x(p.time_change_pct)).attr("cy", (p) => y(p.energy_change_pct));
    }
  });
  const planColor = (p) => color(Math.max(granularities.indexOf(p.granularity), 0));
  const tip = (p, who) => `${who}: ${planName(p)}: time ${percent(p.time_change_pct, 2)}, energy ${percent(p.energy_change_pct, 2)}`;
  svg.append("g").selectAll("rect").data(plans).join("rect").attr("class", "mark").attr("tabindex", 0)
    .attr("x", (p) => x(p.time_change_pct) - 4).attr("y", (p) => y(p.energy_change_pct) - 4).attr("width", 8).attr("height", 8)
    .attr("fill", planColor).attr("stroke", "var(--paper)").append("title").text((p) => tip(p, "this run"));
  svg.append("g").selectAll("path").data(data.published).join("path").attr("class", "mark published").attr("tabindex", 0)
    .attr("d", "M0 -7 L7 0 L0 7 L-7 0 Z").attr("fill", "none").attr("stroke", planColor).attr("stroke-width", 1.8)
    .attr("transform", (p) => `translate(${x(p.time_change_pct)},${y(p.energy_change_pct)})`)
    .append("title").text((p) => tip(p, "paper"));
  const entries = granularities.map((name, i) => ({name: `one clock per ${name}`, color: color(i)}));
  if (data.published.length > 0) entries.push({name: "published (arXiv 2601.08539, Table 2), same colours", color: "var(--ink)", path: "M7 1 L12 6 L7 11 L2 6 Z"});
  key("#front-key", entries);
  table("#front-table", [["Granularity", (p) => p.granularity], ["Time", (p) => percent(p.time_change_pct, 3), true],
    ["Energy", (p) => percent(p.energy_change_pct, 3), true]], data.front);
}

function drawKernels(planId) {
  const rows = data.kernels.filter((k) => k.plan_id === planId);
  const line = 19, margin = {top: 26, right: 150, bottom: 10, left: 190}, width = 900;
  const height = margin.top + margin.bottom + line * rows.length;
  const values = rows.flatMap((k) => [k.energy_change_pct, k.time_change_pct]);
  const x = d3.scaleLinear([Math.min(-1, d3.min(values)), Math.max(1, d3.max(values))], [margin.left, width - margin.right]).nice();
  const svg = chart("#kernels", width, height, "Energy and time change of each kernel under the selected plan. The numbers are in the table below.");
  svg.append("g").attr("transform", `translate(0,${margin.top - 4})`).call(d3.axisTop(x).tickFormat((v) => percent(v, 0)).tickSize(-(height - margin.top)));
  const row = svg.selectAll("g.row").data(rows).join("g").attr("class", "row")
    .attr("transform", (k, i) => `translate(0,${margin.top + i * line})`);
  row.append("text").attr("x", margin.left - 8).attr("y", line * 0.7).attr("text-anchor", "end").text((k) => k.name);
  row.append("rect").attr("class", "mark").attr("tabindex", 0).attr("y", 4).attr("height", line - 8)
    .attr("x", (k) => Math.min(x(0), x(k.energy_change_pct))).attr("width", (k) => Math.abs(x(k.energy_change_pct) - x(0)))
    .attr("fill", (k) => passColor(k.pass))
    .append("title").text((k) => `${k.name} (${words(k.pass)}), clock ${k.clock}: energy ${percent(k.energy_change_pct, 2)}, time ${percent(k.time_change_pct, 2)}`);
  row.append("circle").attr("cx", (k) => x(k.time_change_pct)).attr("cy", line / 2).attr("r", 3.4)
    .attr("fill", "var(--paper)").attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
  row.append("text").attr("class", "soft").attr("x", width - margin.right + 36).attr("y", line * 0.7).text((k) => k.clock);
  svg.append("line").attr("class", "zero").attr("x1", x(0)).attr("x2", x(0)).attr("y1", margin.top).attr("y2", height - margin.bottom);
  svg.append("text").attr("class", "soft").attr("x", width - margin.right + 36).attr("y", margin.top - 8).text("memory/core MHz");
  const present = passes.filter((pass) => rows.some((k) => k.pass === pass));
  key("#kernels-key", [...present.map((pass) => ({name: `energy, ${words(pass)}`, color: passColor(pass)})), {name: "time", color: "var(--ink)", path: "M3 6 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0"}]);
  table("#kernels-table", [["Kernel", (k) => k.name], ["Label", (k) => k.label], ["Pass", (k) => words(k.pass)], ["Clock", (k) => k.clock],
    ["Launches", (k) => k.launches, true], ["Time", (k) => percent(k.time_change_pct, 2), true],
    ["Energy", (k) => percent(k.energy_change_pct, 2), true], ["Saved per iteration", (k) => `${k.saved_j.toFixed(2)} J`, true]], rows);
}

function drawGrid() {
  const pass = document.getElementById("pass").value, quantity = document.getElementById("quantity").value;
  const cells = data.grid.filter((c) => c.pass === pass);
  const base = cells.find((c) => c.is_default)[quantity];
  const change = (c) => 100 * (c[quantity] / base - 1);
  const mems = [...new Set(cells.map((c) => c.mem_state))];
  const cores = [...new Set(cells.map((c) => c.core_mhz))].sort((a, b) => (a === null ? 1e9 : a) - (b === null ? 1e9 : b));
  const coreName = (v) => v === null ? "auto" : String(v);
  const width = 900, margin = {top: 8, right: 8, bottom: 44, left: 74};
  const x = d3.scaleBand(cores.map(coreName), [margin.left, width - margin.right]).padding(0.04);
  const cell = Math.min(44, Math.max(26, x.bandwidth()));
  const height = margin.top + margin.bottom + mems.length * cell;
  const y = d3.scaleBand(mems, [height - margin.bottom, margin.top]).padding(0.06);
  const most = Math.min(100, d3.max(cells, (c) => Math.abs(change(c))) || 1);
  const share = (c) => Math.min(1, Math.abs(change(c)) / most);
  const svg = chart("#grid", width, height, `Change of ${quantity === "time_s" ? "time" : "energy"} of the pass over memory and core clock. The numbers are in the table below.`);
  const box = svg.selectAll("g.cell").data(cells).join("g").attr("class", "cell")
    .attr("transform", (c) => `translate(${x(coreName(c.core_mhz))},${y(c.mem_state)})`);
  box.append("rect").attr("width", x.bandwidth()).attr("height", y.bandwidth()).attr("fill", "var(--mid)");
  box.append("rect").attr("width", x.bandwidth()).attr("height", y.bandwidth())
    .attr("fill", (c) => change(c) < 0 ? "var(--low)" : "var(--high)").attr("fill-opacity", (c) => 0.85 * Math.sqrt(share(c)))
    .append("title").text((c) => `memory ${c.mem_state}, core ${coreName(c.core_mhz)}: ${percent(change(c), 1)}`);
  if (cores.length <= 14) {
    box.append("text").attr("x", x.bandwidth() / 2).attr("y", y.bandwidth() / 2 + 4).attr("text-anchor", "middle").text((c) => signed(change(c), 0));
  }
  const ticks = cores.map(coreName).filter((name, i) => cores.length <= 14 || i % 14 === 0);
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickValues(ticks).tickSize(0).tickPadding(8));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).tickSize(0).tickPadding(8));
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", height - 6).attr("text-anchor", "end").text("requested core clock, MHz");
  svg.append("text").attr("class", "soft").attr("transform", `translate(14,${margin.top}) rotate(-90)`).attr("text-anchor", "end").text("memory, MHz");
  document.getElementById("grid-note").textContent = `Change of ${quantity === "time_s" ? "time" : "energy"} against default clocks, %. Blue is less, orange is more; the colour is full at ${most.toFixed(0)} %.`;
  table("#grid-table", [["Memory", (c) => c.mem_state], ["Core", (c) => coreName(c.core_mhz), true],
    ["Time", (c) => `${c.time_s.toFixed(4)} s`, true], ["Energy", (c) => `${c.energy_j.toFixed(1)} J`, true], ["Change", (c) => percent(change(c), 2), true]], cells);
}

function fill(id, entries, change) {
  const select = document.getElementById(id);
  d3.select(select).selectAll("option").data(entries).join("option").attr("value", (e) => e[0]).text((e) => e[1]);
  select.addEventListener("change", change);
  return select;
}

const run = data.run;
document.getElementById("subtitle").textContent = `${run.trace_name} on ${run.gpu}, power limit ${run.power_limit_w} W, clock grid ${run.clock_grid}. Run ${run.run_id}, ${run.created_utc}.`;
document.title = `${run.trace_name} on ${run.gpu}`;
if (!run.gpu_calibrated) {
  const warning = document.getElementById("warning");
  warning.hidden = false;
  warning.textContent = `${run.gpu} is not calibrated: these numbers are rough.`;
}
drawPlans();
drawFront();
const plans = data.plans.filter((p) => p.energy_j !== null && p.goal !== "default");
if (plans.length > 0) {
  const best = plans.find((p) => p.granularity === "kernel" && p.aggregation === "global" && p.goal === "strict_waste") || plans[plans.length - 1];
  const select = fill("plan", plans.map((p) => [p.plan_id, planName(p)]), () => drawKernels(Number(select.value)));
  select.value = best.plan_id;
  drawKernels(best.plan_id);
}
const present = passes.filter((pass) => data.grid.some((c) => c.pass === pass));
fill("pass", present.map((pass) => [pass, words(pass)]), drawGrid);
document.getElementById("quantity").addEventListener("change", drawGrid);
if (present.includes("forward")) document.getElementById("pass").value = "forward";
drawGrid();
table("#run", [["", (e) => words(e[0])], ["", (e) => e[1] === null ? "-" : String(e[1])]], Object.entries(run));
})();

const run = data.run;
const grains = ["iteration", "gpu", "pass", "kernel", "auto", "launch"];
const passes = ["forward", "backward", "optimizer", "unknown"];
const grainColor = (name) => color(grains.indexOf(name));
const change = (value, base) => 100 * (value / base - 1);
const ms = (s) => fixed(1e3 * s, 3);
const kernels = data.kernels.rows.map((row) => Object.fromEntries(row.map((v, i) => [data.kernels.columns[i], v])));
const found = data.plans.filter((p) => p.energy_j !== null);
const whole = {iteration: "one clock for the whole run", gpu: "one clock per GPU", pass: "one clock per pass", kernel: "one clock per kernel",
  launch: "one clock per launch", auto: "runs of launches"};
const planName = (p) => `${whole[p.granularity] || p.granularity}, slack ${fixed(p.slack_pct, 1)} %`;
const clocksOf = (p) => [...new Set(kernels.filter((k) => k.graph_plan_id === p.graph_plan_id).map((k) => k.clock))];
const clocksText = (p) => { const all = clocksOf(p); return all.length === 1 ? all[0] : `${all.length} clocks`; };
const range = (low, high, digits) => `${percent(low, digits)} to ${percent(high, digits)}`;
const label = (clock) => { const [mem, core] = clock.split("/"); return `memory ${mem} MHz, core ${core} MHz`; };


const saves = (p) => `energy ${percent(p.energy_change_pct)} (${range(p.energy_change_low_pct, p.energy_change_high_pct)}), ` +
  `time ${percent(p.time_change_pct)} (${range(p.time_change_low_pct, p.time_change_high_pct)})`;

function answer() {
  const files = run.captures.split("\n");
  document.getElementById("subtitle").textContent = `${files[0].split("/").pop()}${files.length > 1 ? ` and ${files.length - 1} more ranks` : ""}: ` +
    `${run.gpus} GPU${run.gpus > 1 ? "s" : ""}, ${run.gpu}`;
  const least = (list) => list.length === 0 ? undefined : list.reduce((a, b) => b.energy_j < a.energy_j ? b : a);
  const element = d3.select("#answer");
  const single = least(found.filter((p) => p.granularity === "iteration"));
  // With its changes of clock counted, where it is known what they take, and still in time.
  const energy = (p) => p.counted_energy_change_pct ?? p.energy_change_pct;
  const best = found.filter((p) => p.counted_in_time !== 0).sort((a, b) => energy(a) - energy(b))[0] || least(found);
  const shown = single || best;
  if (!shown) {
    element.text("No plan keeps the time that was asked for.");
    return;
  }
  element.append("b").text(single ? label(clocksText(single)) : planName(best));
  element.append("span").text(`, within ${fixed(shown.slack_pct, 1)} % more time: ${saves(shown)}.`);
  if (best !== shown)
    document.getElementById("finer").textContent = `The most that was found: ${planName(best)}, ${Math.round(best.clock_changes_per_s).toLocaleString("en")} changes of clock per second` +
      (best.counted_in_time === null ? `: ${saves(best)}` : `, counted: energy ${percent(energy(best))}, time ${percent(best.counted_time_change_pct)}`) +
      `. Bound ${percent(best.bound_change_pct)}, gap ${fixed(best.gap_pct, 2)} %.`;
  const notes = [];
  if (run.captured_clock_source === "default") notes.push("The clocks of the capture are assumed, not known: give --captured-clock or --power.");
  const off = change(run.reproduced_s, run.captured_s);
  if (Math.abs(off) > 0.1) notes.push(`The simulator gives the captured run back ${percent(off, 2)} off.`);
  const guessed = 100 * run.source_guessed_split_s / total();
  if (guessed > 20) notes.push(`The split between core and memory is guessed for ${fixed(guessed, 0)} % of the GPU time.`);
  const warning = document.getElementById("warning");
  warning.hidden = notes.length === 0;
  warning.textContent = notes.join(" ");
}

const total = () => Math.max(run.source_measured_s + run.source_anchored_s + run.source_fixed_s, 1e-12);

function trust() {
  const arcs = run.arcs_read + run.arcs_inferred;
  table("#trust", [["", (r) => r[0]], ["", (r) => r[1], true], ["", (r) => r[2]]], [
    ["Captured", `${ms(run.captured_s)} ms`, `at ${run.captured_clock} (${run.captured_clock_source === "default" ? "the GPU's default, assumed" : run.captured_clock_source})`],
    ["Reproduced", `${ms(run.reproduced_s)} ms`, `${percent(change(run.reproduced_s, run.captured_s), 3)}: simulated at the captured clocks`],
    ["Default clocks", `${ms(run.default_s)} ms`, `${fixed(run.default_j, 2)} J, simulated: what changes are against`],
    ["Waits", `${arcs.toLocaleString("en")}`, `${run.arcs_read.toLocaleString("en")} read from the files, ${run.arcs_inferred.toLocaleString("en")} inferred, between ${run.activities.toLocaleString("en")} activities`]]);
  const parts = [["fitted to the kernel at several clocks", run.source_measured_s], ["captured time, split from work or counters", run.source_anchored_s - run.source_guessed_split_s],
    ["captured time, split guessed", run.source_guessed_split_s], ["no clock changes it", run.source_fixed_s]];
  const width = 900, svg = chart("#coverage", width, 26, "GPU time by what is known of the kernels");
  let x = 0;
  parts.forEach(([name, s], i) => {
    const w = width * s / total();
    svg.append("rect").attr("class", "part").attr("x", x).attr("y", 4).attr("width", w).attr("height", 18).attr("fill", color(i)).append("title").text(`${name}: ${fixed(100 * s / total(), 1)} %`);
    x += w;
  });
  key("#coverage-key", parts.map(([name, s], i) => ({name: `${name}: ${fixed(100 * s / total(), 1)} % of the GPU time`, color: color(i)})));
}

function front() {
  const width = 900, height = 460, margin = {top: 14, right: 20, bottom: 46, left: 64};
  const point = (p) => ({...p, x: change(p.time_s, run.default_s), y: change(p.energy_j ?? p.bound_j, run.default_j)});
  const plans = found.map(point);
  const last = Math.max(12, 1.3 * (d3.max(plans, (p) => p.x) ?? 0));
  const singles = data.singles.map(point).filter((p) => p.x <= last), bound = data.front.map(point).filter((p) => p.x <= last);
  const ys = [...singles.map((p) => p.y), ...bound.map((p) => p.y), ...plans.flatMap((p) => [p.energy_change_low_pct, p.energy_change_high_pct, p.y])];
  const x = d3.scaleLinear(d3.extent([0, ...singles.map((p) => p.x), ...plans.map((p) => p.x)]), [margin.left, width - margin.right]).nice();
  const y = d3.scaleLinear([Math.min(0, d3.min(ys) ?? -1), Math.min(Math.max(0, d3.max(ys) ?? 0), 60)], [height - margin.bottom, margin.top]).nice();
  const svg = chart("#front", width, height, "Energy change over time change of single clocks, plans and bound. The numbers of the plans are in the table below.");
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickFormat((v) => percent(v, 0)));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).tickFormat((v) => percent(v, 0)));
  for (const [x1, x2, y1, y2] of [[x(0), x(0), margin.top, height - margin.bottom], [margin.left, width - margin.right, y(0), y(0)]])
    svg.append("line").attr("class", "zero").attr("x1", x1).attr("x2", x2).attr("y1", y1).attr("y2", y2).attr("stroke-dasharray", "3 3");
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", height - 8).attr("text-anchor", "end").text("time of the run against default clocks");
  svg.append("text").attr("class", "soft").attr("transform", `translate(14,${margin.top}) rotate(-90)`).attr("text-anchor", "end").text("energy against default clocks");
  const inside = bound.filter((p) => p.x >= x.domain()[0] && p.x <= x.domain()[1]);
  if (inside.length > 1)
    svg.append("path").attr("class", "bound").attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.6)
      .attr("d", d3.line().x((p) => x(p.x)).y((p) => y(p.y))(inside));
  svg.append("g").selectAll("circle").data(singles).join("circle").attr("class", "single").attr("r", (p) => p.is_default ? 5 : 2.2)
    .attr("cx", (p) => x(p.x)).attr("cy", (p) => y(p.y)).attr("fill", "var(--soft)")
    .append("title").text((p) => `${p.clock}: time ${percent(p.x, 2)}, energy ${percent(p.y, 2)}`);
  const marks = svg.append("g").selectAll("g").data(plans).join("g").attr("class", "plan");
  marks.append("line").attr("x1", (p) => x(p.x)).attr("x2", (p) => x(p.x)).attr("y1", (p) => y(p.energy_change_low_pct))
    .attr("y2", (p) => y(p.energy_change_high_pct)).attr("stroke", (p) => grainColor(p.granularity)).attr("stroke-width", 1.6);
  marks.append("rect").attr("class", "mark").attr("tabindex", 0).attr("x", (p) => x(p.x) - 4).attr("y", (p) => y(p.y) - 4).attr("width", 8).attr("height", 8)
    .attr("fill", (p) => grainColor(p.granularity)).attr("stroke", "var(--paper)").append("title").text((p) => `${planName(p)}: ${saves(p)}`);
  const there = grains.filter((name) => found.some((p) => p.granularity === name));
  key("#front-key", [...there.map((name) => ({name: whole[name], color: grainColor(name)})), {name: "every single clock; large: default", color: "var(--soft)", path: "M5 6 a2 2 0 1 0 4 0 a2 2 0 1 0 -4 0"},
    ...(inside.length > 1 ? [{name: "bound", color: "var(--ink)", path: "M1 6 h12"}] : [])]);
  const cell = (f) => (p) => p.energy_j === null ? "-" : f(p);
  table("#plans", [["Granularity", (p) => p.granularity], ["Slack", (p) => `${fixed(p.slack_pct, 1)} %`, true],
    ["Time", cell((p) => percent(p.time_change_pct, 2)), true], ["at most", cell((p) => percent(p.time_change_high_pct, 2)), true],
    ["Energy", cell((p) => percent(p.energy_change_pct, 2)), true], ["from", cell((p) => percent(p.energy_change_low_pct, 1)), true], ["to", cell((p) => percent(p.energy_change_high_pct, 1)), true],
    ["Bound", cell((p) => percent(p.bound_change_pct, 2)), true], ["Gap", cell((p) => `${fixed(p.gap_pct, 2)} %`), true],
    ["Clocks", cell(clocksText)], ["Changes/s", cell((p) => Math.round(p.clock_changes_per_s).toLocaleString("en")), true],
    ...(data.notes.length > 0 ? [["Notes", (p) => p.notes || ""]] : [])], data.plans);
  listNotes("#notes", data.notes);
}

const most = 40;
function drawKernels(planId) {
  const rows = kernels.filter((k) => k.graph_plan_id === planId);
  const groups = d3.groups(rows, (k) => `${k.pass}\n${k.kernel}`).map(([, list]) => ({pass: list[0].pass, kernel: list[0].kernel, list,
    energy_j: d3.sum(list, (k) => k.energy_j), time_s: d3.sum(list, (k) => k.time_s), launches: d3.sum(list, (k) => k.launches)}));
  groups.sort((a, b) => b.energy_j - a.energy_j);
  const shown = groups.slice(0, most), all_j = d3.sum(groups, (g) => g.energy_j);
  document.getElementById("kernels-note").textContent = `Each circle is a clock; its area is the share of the kernel's energy at that clock. ` +
    (groups.length > most ? `The ${most} kernels that take most energy (${fixed(100 * d3.sum(shown, (g) => g.energy_j) / all_j, 0)} %) of ${groups.length}.` : `Most energy first.`);
  const line = 20, margin = {top: 40, right: 90, bottom: 8, left: 330}, width = 900, height = margin.top + margin.bottom + line * shown.length;
  const core = (k) => Number(k.clock.split("/")[1]) || 0;
  const x = d3.scaleLinear(d3.extent(kernels, core), [margin.left + 12, width - margin.right - 12]).nice();
  const svg = chart("#kernels", width, height, "Core clock of each kernel under the selected plan. The numbers are in the table below.");
  svg.append("g").attr("transform", `translate(0,${margin.top - 6})`).call(d3.axisTop(x).ticks(8).tickSize(-(height - margin.top)));
  svg.append("text").attr("class", "soft").attr("x", width - margin.right).attr("y", 12).attr("text-anchor", "end").text("core clock, MHz");
  svg.append("text").attr("class", "soft").attr("x", width - 4).attr("y", 12).attr("text-anchor", "end").text("of the energy");
  const row = svg.selectAll("g.row").data(shown).join("g").attr("class", "row").attr("transform", (g, i) => `translate(0,${margin.top + i * line})`);
  const short = (name) => name.length > 40 ? `${name.slice(0, 39)}…` : name;
  row.append("text").attr("x", margin.left - 8).attr("y", line * 0.65).attr("text-anchor", "end").text((g) => short(g.kernel)).append("title").text((g) => g.kernel);
  row.selectAll("circle").data((g) => g.list.map((k) => ({...k, share: k.energy_j / g.energy_j}))).join("circle").attr("class", "mark").attr("tabindex", 0)
    .attr("cx", (k) => x(core(k))).attr("cy", line / 2).attr("r", (k) => 1.5 + 7 * Math.sqrt(k.share)).attr("fill", (k) => color(Math.max(passes.indexOf(k.pass), 0))).attr("fill-opacity", .75)
    .append("title").text((k) => `${k.kernel} (${k.pass}) at ${k.clock}: ${k.launches} launches, ${ms(k.time_s)} ms, ${fixed(k.energy_j, 3)} J`);
  row.append("text").attr("class", "soft").attr("x", width - 4).attr("y", line * 0.65).attr("text-anchor", "end").text((g) => `${fixed(100 * g.energy_j / all_j, 1)} %`);
  key("#kernels-key", passes.filter((pass) => groups.some((g) => g.pass === pass)).map((pass) => ({name: pass, color: color(passes.indexOf(pass))})));
  table("#kernels-table", [["Kernel", (k) => k.kernel], ["Pass", (k) => k.pass], ["Clock", (k) => k.clock], ["Launches", (k) => k.launches.toLocaleString("en"), true],
    ["Time", (k) => `${ms(k.time_s)} ms`, true], ["Energy", (k) => `${fixed(k.energy_j, 3)} J`, true]], d3.sort(rows, (k) => -k.energy_j));
}

function planChoice() {
  const select = d3.select("#plan");
  select.selectAll("option").data(found).join("option").attr("value", (p) => p.graph_plan_id).text((p) => `${planName(p)}: ${percent(p.energy_change_pct)} energy`);
  const finest = found.find((p) => p.granularity === "kernel") || found[found.length - 1];
  if (!finest) return;
  select.property("value", finest.graph_plan_id).on("change", (event) => drawKernels(Number(event.target.value)));
  drawKernels(finest.graph_plan_id);
}

function collectives() {
  if (data.collectives.length === 0) return;
  document.getElementById("ranks").hidden = false;
  const late = d3.rollups(data.collectives, (list) => [list.length, d3.sum(list, (c) => c.start_skew_s)], (c) => c.last_rank).sort((a, b) => b[1][1] - a[1][1]);
  document.getElementById("late").textContent = `${data.collectives.length} collectives join ${run.ranks} ranks. ` +
    late.slice(0, 4).map(([rank, [count, s]]) => `Rank ${rank} came last ${count} times, ${fixed(1e3 * s, 3)} ms after the first`).join("; ") + ".";
  const us = (s) => fixed(1e6 * s, 0);
  table("#collectives", [["Collective", (c) => c.name], ["Kind", (c) => c.collective.replace(/_/g, " ")], ["Ranks", (c) => c.ranks, true], ["Last rank", (c) => c.last_rank, true],
    ["First to last, us", (c) => us(c.start_skew_s), true], ["Transfer, us", (c) => us(c.transfer_s), true], ["Ends apart, us", (c) => us(c.end_spread_s), true]], data.collectives);
}

answer();
trust();
front();
planChoice();
collectives();
table("#run", [["", (r) => r[0]], ["", (r) => r[1]]], [["Captures", run.captures.split("\n").join(", ")], ["GPU", run.gpu], ["Power limit", `${run.power_limit_w} W`], ["Command", run.command],
  ["Made", run.created_utc], ["Program", run.program_version], ["Planning took", `${fixed(run.wall_time_s, 2)} s`]]);
})();

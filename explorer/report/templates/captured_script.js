const run = data.run;
const grains = ["iteration", "gpu", "pass", "kernel", "segment", "launch", "microbatch"];
const passes = [...new Set(["forward", "backward", "optimizer", "unknown", ...data.kernels.rows.map((row) => row[1])])];
const grainColor = (name) => color(grains.indexOf(name));
const change = (value, base) => 100 * (value / base - 1);
const ms = (s) => fixed(1e3 * s, 3);
const kernels = data.kernels.rows.map((row) => Object.fromEntries(row.map((v, i) => [data.kernels.columns[i], v])));
const found = data.plans.filter((p) => p.energy_j !== null);
const whole = {iteration: "one clock for the whole run", gpu: "one clock per GPU", pass: "one clock per pass", kernel: "one clock per kernel",
  launch: "one clock per launch", segment: "one clock per segment",
  microbatch: "a clock for each pass"};
const planName = (p) => `${whole[p.granularity] || p.granularity}, ${p.goal === "least_cost" ? "least cost" : `slack ${fixed(p.slack_pct, 1)} %`}`;
const clocksOf = (p) => [...new Set(kernels.filter((k) => k.plan_id === p.plan_id).map((k) => k.clock))];
const clocksText = (p) => { const all = clocksOf(p); return all.length === 1 ? all[0] : `${all.length} clocks`; };

const isForTime = (p) => p.goal.endsWith("_waste");
// As it is applied.
const playedTime = (p) => p.time_change_pct, playedEnergy = (p) => p.energy_change_pct;
const saves = (p) => `energy ${percent(p.energy_change_pct)}${p.energy_change_low_pct === null ? "" : ` (90 %: ${range(p.energy_change_low_pct, p.energy_change_high_pct)})`}, ` +
  `time ${percent(p.time_change_pct)}${p.time_change_low_pct === null ? "" : ` (${range(p.time_change_low_pct, p.time_change_high_pct)})`}`;
const coreOf = (clock) => Number(clock.split("/").pop().split(" ")[0]);

function answer() {
  const files = run.work.split("\n");
  element("subtitle").textContent = `${files[0].split("/").pop()}${files.length > 1 ? ` and ${files.length - 1} more ranks` : ""}: ` +
    (run.kind === "pipeline" ? `${run.schedule}, ${run.stages} stages, ${run.microbatches} microbatches` : `${run.gpus} GPU${run.gpus > 1 ? "s" : ""}`) +
    `${run.gpu === null ? "" : `, ${run.gpu}, power limit ${run.power_limit_w} W`}`;
  const energy = playedEnergy;
  const planOf = (a) => a && found.find((p) => p.plan_id === a.plan_id);
  const named = data.answers[0], best = planOf(named);
  const later = data.answers.filter((a) => a !== named && a.slack_pct !== null).sort((a, b) => a.slack_pct - b.slack_pct).map(planOf).filter((p) => p).map((p) =>
    `${withinText(p.slack_pct).trim()}, ${clocksText(p).includes("/") ? clockWords(clocksText(p)) : clocksText(p)}: energy ${percent(energy(p))}, time ${percent(playedTime(p))}`);
  const laterText = later.length > 0 ? `With more time: ${later.join("; ")}. The slider says what to set.` : "";
  if (!named) {
    headline("", found.length > 0 ? "No plan is in time once changes of clock are counted: keep the default clocks." : "No plan keeps the time that was asked for.");
    return;
  }
  if (!best) {
    headline("", `No plan saves energy${named.slack_pct === null ? "" : withinText(named.slack_pct)}: keep the default clocks.`, null, laterText);
    warnings();
    return;
  }
  const anySingle = d3.least(found.filter((p) => p.granularity === "iteration" && p.goal === best.goal && p.slack_pct === best.slack_pct && p.in_time !== 0), energy);
  const single = anySingle && energy(anySingle) <= -least_shown_pct ? anySingle : null, shown = single || best;
  const finer = best === shown ? "" : `The most that was found: ${planName(best)}, ${Math.round(best.clock_changes_per_s).toLocaleString("en")} changes of clock per second: ${saves(best)}` +
      (best.bound_change_pct === null ? `. Gap ${fixed(best.gap_pct, 2)} % of its cost.` : `. Bound ${percent(best.bound_change_pct)}, gap ${fixed(best.gap_pct, 2)} %.`);
  const noSingle = anySingle && !single && isForTime(shown) ? `No single clock saves energy in that time${shown.odds_pct > 0 ? ` with ${shown.odds_pct} % odds` : ""}.` : "";
  headline(single ? clockWords(clocksText(single)) : `${whole[best.granularity]}, ${clocksText(best)}`, `${isForTime(shown) ? withinText(shown.slack_pct) + oddsText(shown) : ` for ${words(shown.goal)}`}: ${saves(shown)}.${unknownText(shown)}`, single && isKnown(single) && data.lines[clocksText(single)], `${noSingle} ${finer} ${laterText}`.trim(), best !== single && isKnown(best) ? data.play[best.plan_id] : null);
  warnings();
}

function warnings() {
  const notes = [];
  if (run.captured_clock_source === "default") notes.push("The clocks of the capture are assumed, not known: give --captured-clock or --power.");
  const off = run.captured_s === null ? 0 : change(run.reproduced_s, run.captured_s);
  if (Math.abs(off) > 0.1) notes.push(`The simulator gives the captured run back ${percent(off, 2)} off.`);
  if (run.guessed_split_pct > 20) notes.push(`The split between core and memory is guessed for ${fixed(run.guessed_split_pct, 0)} % of the GPU time.`);
  if (run.gpu_calibrated === 0) notes.push(`${run.gpu} is not calibrated: these numbers are rough.`);
  const warning = element("warning");
  warning.hidden = notes.length === 0;
  warning.textContent = notes.join(" ");
}

function trust() {
  const arcs = run.arcs_read + run.arcs_inferred, worst = worstError(Object.entries(data.errors));
  const captured = run.captured_s === null ? [] : [
    ["Captured", `${timeText(run.captured_s)} at ${run.captured_clock} (${run.captured_clock_source === "default" ? "the GPU's default, assumed" : run.captured_clock_source})`],
    ["Reproduced", `${timeText(run.reproduced_s)}, ${percent(change(run.reproduced_s, run.captured_s), 3)}: simulated at the captured clocks`]];
  facts("#trust", [...captured,
    ["Default clocks", `${timeText(run.default_time_s)}, ${fixed(run.default_energy_j, 2)} J, simulated: what changes are against`],
    ...(run.captured_s === null ? [] : [["Waits", `${arcs.toLocaleString("en")}: ${run.arcs_read.toLocaleString("en")} read from the files, ${run.arcs_inferred.toLocaleString("en")} inferred`]]),
    ...(run.gpu === null ? [] : [["Model error", worst ? `${errorText(worst)} at most in fit and cross-validation (${errorName(worst[0])}), within the intervals` : "not known for this spec"]])]);
  if (run.measured_pct === null) return;
  shareBar("#coverage", "#coverage-key", [["measured: fitted to the kernel at several clocks", run.measured_pct], ["anchored: captured time, split from work or counters", run.anchored_pct - run.guessed_split_pct],
    ["anchored: captured time, split guessed", run.guessed_split_pct], ["no clock changes it", run.fixed_pct]].filter((part) => part[1] > 0), "GPU time by what is known of the kernels");
}

function front() {
  const width = drawWidth("#front"), height = width < narrow ? 340 : 460, margin = {top: 20, right: 22, bottom: 44, left: 58};
  const point = (p) => ({...p, x: change(p.time_s, run.default_time_s), y: change(p.energy_j ?? p.bound_j, run.default_energy_j)});
  const plans = found.map(point);
  const last = Math.max(12, 1.3 * (d3.max(plans, (p) => p.x) ?? 0));
  const singles = data.singles.map(point).filter((p) => p.x <= last), bound = data.front.map(point).filter((p) => p.x <= last);
  const ys = [...singles.map((p) => p.y), ...bound.map((p) => p.y), ...plans.flatMap((p) => [p.energy_change_low_pct ?? p.y, p.energy_change_high_pct ?? p.y, p.y])];
  const x = d3.scaleLinear(d3.extent([0, ...singles.map((p) => p.x), ...plans.map((p) => p.x)]), [margin.left, width - margin.right]).nice();
  const y = d3.scaleLinear([Math.min(0, d3.min(ys) ?? -1), Math.min(Math.max(0, d3.max(ys) ?? 0), 60)], [height - margin.bottom, margin.top]).nice();
  const svg = chart("#front", width, height, "Energy change over time change of single clocks, plans and bound. The numbers of the plans are in the table below.");
  timeEnergyAxes(svg, x, y, width, height, margin, "the run");
  const inside = bound.filter((p) => p.x >= x.domain()[0] && p.x <= x.domain()[1]);
  if (inside.length > 1)
    svg.append("path").attr("class", "bound").attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.6)
      .attr("d", d3.line().x((p) => x(p.x)).y((p) => y(p.y))(inside));
  svg.append("g").selectAll("circle").data(singles).join("circle").attr("class", "single").attr("r", (p) => p.is_default ? 5 : 2.2)
    .attr("cx", (p) => x(p.x)).attr("cy", (p) => y(p.y)).attr("fill", "var(--soft)")
    .append("title").text((p) => `${p.clock}: time ${percent(p.x, 2)}, energy ${percent(p.y, 2)}`);
  const marks = svg.append("g").selectAll("g").data(plans).join("g").attr("class", "plan");
  marks.append("line").attr("x1", (p) => x(p.x)).attr("x2", (p) => x(p.x)).attr("y1", (p) => y(p.energy_change_low_pct ?? p.y))
    .attr("y2", (p) => y(p.energy_change_high_pct ?? p.y)).attr("stroke", (p) => grainColor(p.granularity)).attr("stroke-width", 1.6);
  marks.append("rect").attr("class", "mark").attr("x", (p) => x(p.x) - 4).attr("y", (p) => y(p.y) - 4).attr("width", 8).attr("height", 8)
    .attr("fill", (p) => grainColor(p.granularity)).attr("stroke", "var(--paper)").append("title").text((p) => `${planName(p)}: ${saves(p)}`);
  const there = grains.filter((name) => found.some((p) => p.granularity === name));
  key("#front-key", [...there.map((name) => ({name: whole[name], color: grainColor(name)})), {name: "every single clock; large: default", color: "var(--soft)", path: "M5 6 a2 2 0 1 0 4 0 a2 2 0 1 0 -4 0"},
    ...(inside.length > 1 ? [{name: "bound", color: "var(--ink)", path: "M1 6 h12"}] : [])]);
  const cursor = svg.append("g").attr("class", "chosen");
  markChosen = () => {
    cursor.html("");
    marks.select("rect").attr("stroke", (p) => isWithin(p) ? "var(--ink)" : "var(--paper)").attr("stroke-width", (p) => isWithin(p) ? 2.5 : 1);
    if (!chosen) return;
    const at = Number(element("slack").value);
    if (at <= x.domain()[1]) cursor.append("line").attr("x1", x(at)).attr("x2", x(at)).attr("y1", margin.top).attr("y2", height - margin.bottom).attr("stroke", "var(--ink)").attr("stroke-width", 1.2);
    cursor.append("circle").attr("cx", x(chosen.x)).attr("cy", y(chosen.y)).attr("r", 6).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 2);
  };
  svg.on("click", function () { element("slack").value = x.invert(d3.mouse(this)[0]); slide(); showWithin(); });
  markChosen();
  const cell = (f) => (p) => p.energy_j === null ? "-" : f(p);
  const measured = (p) => { const v = data.verifications.filter((one) => one.plan_id === p.plan_id).at(-1);
    return v ? `${percent(v.measured_energy_change_pct, 2)} (${range(v.measured_energy_change_low_pct, v.measured_energy_change_high_pct, 2)}), ${v.energy_verdict}` : "-"; };
  table("#plans", [["Granularity", (p) => p.granularity], ["Slack", (p) => `${fixed(p.slack_pct, 1)} %`, true],
    ["Time", cell((p) => percent(p.time_change_pct, 2)), true], ["at most", cell((p) => percent(p.time_change_high_pct, 2)), true],
    ["Energy", cell((p) => percent(p.energy_change_pct, 2)), true], ["from", cell((p) => percent(p.energy_change_low_pct, 1)), true], ["to", cell((p) => percent(p.energy_change_high_pct, 1)), true],
    ["Bound", cell((p) => percent(p.bound_change_pct, 2)), true], ["Gap", cell((p) => `${fixed(p.gap_pct, 2)} %`), true],
    ["Clocks", cell(clocksText)], ["Changes/s", cell((p) => Math.round(p.clock_changes_per_s).toLocaleString("en")), true],
    ...(data.verifications.length > 0 ? [["Measured energy", measured, true]] : []),
    ...(data.notes.length > 0 ? [["Notes", (p) => p.notes || ""]] : [])], data.plans);
  listNotes("#notes", data.notes);
}

// The line is a lower bound that takes each launch as if it ran alone, on the SMs of the capture. There is none where launches that run at once reach the power limit.
const sameSms = found.some((p) => p.comm_sms !== null) ? ", as long as collectives keep the SMs they were captured on" : "";
function boundNote() {
  const several = found.some((p) => p.granularity !== "iteration" && p.bound_change_pct !== null);
  element("bound-note").textContent = data.front.length > 1 ? `No plan lies below the line${sameSms}. It takes each launch to be as fast as alone; the bounds in the table also know what runs at once.` :
    several ? "There is no line below which no plan lies: launches that run at once reach the power limit, and what they take alone is no bound then. The bounds in the table know that." : "";
}

// One clock for the whole run within a slack, simulated, and the stored plan that saves most in it: nothing is modelled again here.
let opened = null;  // how the slider stood when the page was opened: there the headline is of the stored plans
let chosen = null, within = null, markChosen = () => {};
const isWithin = (p) => within !== null && p.plan_id === within.plan_id;
function slide() {
  const slack = Number(element("slack").value);
  element("slack-shown").textContent = percent(slack);
  const fits = data.singles.filter((s) => s.time_s <= run.default_time_s * (1 + slack / 100) * (1 + 1e-9));
  const least = d3.least(fits, (s) => s.energy_j);
  chosen = least && {x: change(least.time_s, run.default_time_s), y: change(least.energy_j, run.default_energy_j)};
  // A bound at some time holds for every plan that is at least as fast: the first one at or beyond the limit.
  const bound = least && d3.least(data.front.filter((p) => p.time_s >= run.default_time_s * (1 + slack / 100) * (1 - 1e-9)), (p) => p.time_s);
  element("slider-answer").textContent = !least ? "No single clock is that fast." : `One clock for the whole run, whatever its odds, ${clockWords(least.clock)}: energy ${percent(chosen.y, 2)}, time ${percent(chosen.x, 2)}.` +
    (bound ? ` No plan of any kind saves more than ${fixed(-change(bound.bound_j, run.default_energy_j), 1)} % in that time${sameSms}.` : "");
  const [set, back] = (least && data.lines[least.clock]) || [];
  commandLine("slider-line", "To set:", set && `${set}   # back: ${back}`);
  // What keeps a shorter time with the odds asked for keeps a longer one with no less.
  const hasOdds = (p) => p.odds_in_time_pct === null || p.odds_in_time_pct >= p.odds_pct - 1e-7;
  within = d3.least(found.filter((p) => (p.slack_pct === null ? playedTime(p) : Math.max(p.slack_pct, playedTime(p))) <= slack + 1e-7 && hasOdds(p)), playedEnergy) ?? null;
  const single = within && within.granularity === "iteration";
  if (opened === element("slack").value) answer();
  else if (opened !== null && !within) headline("", `No stored plan is in time${withinText(slack)}, with the odds asked for: keep the default clocks.`);
  else if (opened !== null) headline(single ? clockWords(clocksText(within)) : `${whole[within.granularity]}, ${clocksText(within)}`, `${withinText(slack)}${oddsText(within)}, as the slider says: ${saves(within)}.${unknownText(within)}`, single && isKnown(within) && data.lines[clocksText(within)]);
  element("slider-plan").textContent = found.length === 0 ? "" : !within ? "No stored plan is that fast." :
    `Of the stored plans: ${planName(within)}, ${clocksText(within)}: energy ${percent(playedEnergy(within), 2)}, time ${percent(playedTime(within), 2)}.`;
  commandLine("slider-play", "To play it:", within && within.granularity !== "iteration" && data.play[within.plan_id]);
  markChosen();
}

// The clocks of the kernels follow the slider.
function showWithin() {
  if (!within) return;
  element("plan").value = within.plan_id;
  drawKernels(within.plan_id);
}

const most = 40;
function drawKernels(planId) {
  const rows = kernels.filter((k) => k.plan_id === planId);
  const groups = d3.groups(rows, (k) => `${k.pass}\n${k.kernel}`).map(([, list]) => ({pass: list[0].pass, kernel: list[0].kernel, list,
    energy_j: d3.sum(list, (k) => k.energy_j), time_s: d3.sum(list, (k) => k.time_s), launches: d3.sum(list, (k) => k.launches)}));
  groups.sort((a, b) => b.energy_j - a.energy_j);
  const shown = groups.slice(0, most), all_j = d3.sum(groups, (g) => g.energy_j);
  element("kernels-note").textContent = `Each circle is a clock; its area is the share of the kernel's energy at that clock. ` +
    (groups.length > most ? `The ${most} kernels that take most energy (${fixed(100 * d3.sum(shown, (g) => g.energy_j) / all_j, 0)} %) of ${groups.length}.` : `Most energy first.`);
  const width = drawWidth("#kernels"), slim = width < narrow, line = slim ? 34 : 20, margin = {top: 40, right: slim ? 20 : 90, bottom: 8, left: slim ? 20 : 330}, height = margin.top + margin.bottom + line * shown.length;
  // What is left to the driver stands beyond the clocks that are set.
  const set = (k) => coreOf(k.clock), most_mhz = d3.max(kernels, (k) => set(k) || null) ?? 1000, left = 1.1 * most_mhz, core = (k) => set(k) || left;
  const x = d3.scaleLinear(d3.extent(kernels, core), [margin.left + 12, width - margin.right - 12]).nice();
  const ticks = [...x.ticks(slim ? 4 : 8).filter((v) => v <= most_mhz), ...(kernels.some((k) => !set(k)) ? [left] : [])];
  const middle = slim ? 24 : line / 2;
  const svg = chart("#kernels", width, height, "Core clock of each kernel under the selected plan. The numbers are in the table below.");
  svg.append("g").attr("transform", `translate(0,${margin.top - 6})`).call(d3.axisTop(x).tickValues(ticks).tickFormat((v) => v === left ? "auto" : v.toLocaleString("en")).tickSize(-(height - margin.top)));
  svg.append("text").attr("class", "soft").attr("x", slim ? width - 110 : width - margin.right - 24).attr("y", 12).attr("text-anchor", "end").text("core clock, MHz");
  svg.append("text").attr("class", "soft").attr("x", width - 4).attr("y", 12).attr("text-anchor", "end").text("of the energy");
  const row = svg.selectAll("g.row").data(shown).join("g").attr("class", "row").attr("data-kernel", (g) => g.kernel).attr("transform", (g, i) => `translate(0,${margin.top + i * line})`);
  row.append("text").attr("class", "label").attr("x", slim ? 4 : margin.left - 8).attr("y", slim ? 13 : line * 0.65).attr("text-anchor", slim ? "start" : "end").text((g) => short(g.kernel, slim ? 34 : 40)).append("title").text((g) => g.kernel);
  row.selectAll("circle").data((g) => g.list.map((k) => ({...k, share: k.energy_j / g.energy_j}))).join("circle").attr("class", "mark")
    .attr("cx", (k) => x(core(k))).attr("cy", middle).attr("r", (k) => 1.5 + 7 * Math.sqrt(k.share)).attr("fill", (k) => color(Math.max(passes.indexOf(k.pass), 0))).attr("fill-opacity", .75)
    .append("title").text((k) => `${k.kernel} (${k.pass}) at ${k.clock}: ${k.launches} launches, ${ms(k.time_s)} ms, ${fixed(k.energy_j, 3)} J`);
  row.append("text").attr("class", "soft label").attr("x", width - 4).attr("y", slim ? 13 : line * 0.65).attr("text-anchor", "end").text((g) => `${fixed(100 * g.energy_j / all_j, 1)} %`);
  key("#kernels-key", passes.filter((pass) => groups.some((g) => g.pass === pass)).map((pass) => ({name: pass, color: color(passes.indexOf(pass))})));
  table("#kernels-table", [["Kernel", (k) => k.kernel], ["Pass", (k) => k.pass], ["Clock", (k) => k.clock], ["Launches", (k) => k.launches.toLocaleString("en"), true],
    ["Time", (k) => `${ms(k.time_s)} ms`, true], ["Energy", (k) => `${fixed(k.energy_j, 3)} J`, true]], d3.sort(rows, (k) => -k.energy_j), (k) => k.kernel);
}

function planChoice() {
  const finest = found.find((p) => p.granularity === "kernel") || found[found.length - 1];
  if (!finest) { element("h-kernels").parentNode.hidden = true; return; }
  const select = fill("plan", found.map((p) => [p.plan_id, `${planName(p)}: ${percent(p.energy_change_pct)} energy`]), finest.plan_id, () => drawKernels(Number(select.value)));
  drawKernels(finest.plan_id);
}

function collectives() {
  if (data.collectives.length === 0) return;
  element("ranks").hidden = false;
  const late = d3.rollups(data.collectives, (list) => [list.length, d3.sum(list, (c) => c.start_skew_s)], (c) => c.last_rank).sort((a, b) => b[1][1] - a[1][1]);
  // Of one capture the GPUs take part, like ranks.
  const [many, count_of, one] = run.work.includes("\n") ? ["ranks", run.work.split("\n").length, "Rank"] : ["GPUs", run.gpus, "GPU"];
  element("late").textContent = `${data.collectives.length} collectives join ${count_of} ${many}. ` +
    late.slice(0, 4).map(([rank, [count, s]]) => `${one} ${rank} came last ${count} times, ${timeText(s)} after the first`).join("; ") + ".";
  const us = (s) => fixed(1e6 * s, 0);
  table("#collectives", [["Collective", (c) => c.name], ["Kind", (c) => c.collective.replace(/_/g, " ")], ["Ranks", (c) => c.ranks, true], ["Last rank", (c) => c.last_rank, true],
    ["First to last, us", (c) => us(c.start_skew_s), true], ["Transfer, us", (c) => us(c.transfer_s), true], ["Ends apart, us", (c) => us(c.end_spread_s), true]], data.collectives);
}

answer();
trust();
element("slack").max = Math.max(20, Math.ceil(d3.max(found, playedTime) ?? 0));
element("slack").value = found.length > 0 ? Math.max(d3.min(found, (p) => p.slack_pct), Math.ceil(10 * Math.max(0, d3.min(found, playedTime))) / 10) : 5;
element("slack").addEventListener("input", () => { slide(); showWithin(); });
slide();
opened = element("slack").value;
front();
boundNote();
planChoice();
whenResized(() => { front(); if (found.length > 0) drawKernels(Number(element("plan").value)); });
collectives();
facts("#run", [[run.kind === "pipeline" ? "Profile" : "Captures", run.work.split("\n").join(", ")], ["GPU", run.gpu], ["Power limit", run.power_limit_w && `${run.power_limit_w} W`], ["Command", run.command],
  ["Made", run.created_utc], ["Program", run.program_version], ["Planning took", run.wall_time_s && timeText(run.wall_time_s)]].filter(([, value]) => value !== null));
})();

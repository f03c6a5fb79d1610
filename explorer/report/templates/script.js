const run = data.run;
const granularities = ["iteration", "pass", "kernel"];
const passes = ["embedding", "forward", "loss", "backward", "embedding_backward", "optimizer", "unknown"];
const passColor = (pass) => color(Math.max(passes.indexOf(pass), 0));
const grainColor = (name) => color(name === "segment" ? granularities.length : Math.max(granularities.indexOf(name), 0));
const plans = data.plans.filter((p) => p.energy_j !== null);
const baseline = {goal: "default", time_s: run.default_time_s, energy_j: run.default_energy_j, time_change_pct: 0, energy_change_pct: 0, energy_change_low_pct: null,
  planned_time_change_pct: 0, planned_energy_change_pct: 0, power_w: run.default_power_w, gap_pct: null, clock_changes: null};
const whole = {iteration: "one clock for everything", pass: "one clock per pass", kernel: "one clock per kernel", segment: "one clock per segment"};
const planName = (p) => p.goal === "default" ? "default clocks"
  : `${p.granularity}, ${p.aggregation}, ${words(p.goal)}` + (p.slack_pct > 0 ? ` +${fixed(p.slack_pct, 1)} %` : "");
const intervalText = (p) => p.energy_change_low_pct === null ? "" : ` (90 %: ${range(p.energy_change_low_pct, p.energy_change_high_pct)})`;
const saves = (p) => `energy ${percent(p.energy_change_pct)}${intervalText(p)}, time ${percent(p.time_change_pct)}`;
const kernelsOf = (plan) => data.kernels.filter((k) => k.plan_id === plan.plan_id);

// The answer that every command names (of a run of an experiment that of the least slack); without a plan where the default clocks are it.
const inTime = plans.filter((p) => p.in_time);
const named = data.answers[0], best = named && plans.find((p) => p.plan_id === named.plan_id);
const leastEnergy = (list) => d3.least(list, (p) => p.energy_change_pct);

function answer() {
  element("subtitle").textContent = `${run.work} on ${data.gpu_title}, power limit ${run.power_limit_w} W, ${new Set(data.grid.map((c) => c.clock)).size} clocks`;
  document.title = `${run.work} on ${run.gpu}`;
  const single = best && (leastEnergy(inTime.filter((p) => p.clocks === 1 && p.goal === best.goal && p.slack_pct === best.slack_pct &&
    p.energy_change_pct <= -least_shown_pct)) || null);
  const shown = single || best;
  if (!named) {
    headline("", `${plans.length > 0 ? "No plan is in time once changes of clock are counted: keep the default clocks" : "No plan does what was asked for"}. The default clocks take ${timeText(baseline.time_s)} and ${fixed(baseline.energy_j, 1)} J.`);
  } else if (!best) {
    headline("", "No plan that is in time saves energy: keep the default clocks.");
  } else {
    const clock = kernelsOf(shown)[0]?.clock;
    const finer = best === shown ? "" : `${whole[best.granularity][0].toUpperCase()}${whole[best.granularity].slice(1)}: ${saves(best)}. ` +
      `${clockCount(best.clocks)}, ${Math.round(best.clock_changes_per_s).toLocaleString("en")} changes of clock per second, counted where it is known what they take.`;
    headline(shown.clocks === 1 ? clockWords(clock) : whole[shown.granularity] || shown.granularity,
      `${shown.slack_pct === null ? ` for ${words(shown.goal)}` : withinText(shown.slack_pct) + oddsText(shown)}: ${saves(shown)}.${unknownText(shown)}`,
      single && isKnown(single) && data.slider.lines[clock], finer, best !== single && isKnown(best) ? data.play[best.plan_id] : null);
  }
  if (!run.gpu_calibrated) {
    element("warning").hidden = false;
    element("warning").textContent = `${run.gpu} is not calibrated: these numbers are rough.`;
  }
}

const sources = {measured: "measured", anchored: "anchored (captured time, modelled split)", scaled: "scaled from other shapes", derived: "derived from FLOPs and bytes", guessed: "guessed"};
const others = Object.keys(sources).filter((s) => s !== "measured");
function trust() {
  const errors = Object.entries(data.errors), worst = worstError(errors);
  const share = (source) => run[`${source}_pct`] / 100;
  const last = best && data.verifications.filter((v) => v.plan_id === best.plan_id).at(-1);
  facts("#trust", [
    ["Kernels", `${fixed(100 * share("measured"), 0)} % of the time in kernels that were measured on this GPU` +
      others.filter((s) => share(s) > 0).map((s) => `, ${fixed(100 * share(s), 0)} % ${sources[s]}`).join("")],
    ["Model error", worst ? `${errorText(worst)} ${worst[0].includes("energy") ? "of energy" : "of power"} at most in fit and cross-validation (${errorName(worst[0])})` : "not known: nothing was measured on this GPU"],
    ["Interval", best && best.energy_change_low_pct !== null ? `90 %: energy ${range(best.energy_change_low_pct, best.energy_change_high_pct)}, time ${range(best.time_change_low_pct, best.time_change_high_pct)} (${planName(best)})` : "none: too little is known of these kernels"],
    ["Proof", best && best.gap_pct !== null ? `no plan of this kind ${best.goal === "least_cost" ? "costs less by more" : "saves more"} than ${fixed(best.gap_pct, 3)} % beyond it, by the model` : "-"],
    ["Measured", last ? `energy ${percent(last.measured_energy_change_pct, 2)} (${range(last.measured_energy_change_low_pct, last.measured_energy_change_high_pct, 2)}): ${last.energy_verdict}` : "not yet: rubato verify sets a measured saving beside this one"]]);
  shareBar("#coverage", "#coverage-key", Object.keys(sources).filter((s) => share(s) > 0).map((s) => [sources[s], share(s)]), "Time at default clocks by what is known of the kernels");
  listNotes("#notes", data.notes);
  table("#errors", [["What was left out or fitted", (e) => errorName(e[0])], ["Error", (e) => errorText(e), true]], errors);
}

function drawPlans() {
  const columns = [
    ["Plan", planName], ...(data.plans.some((p) => p.energy_j === null) ? [["Status", (p) => p.status]] : []),
    ["Time", (p) => p.time_s === null ? "-" : percent(p.time_change_pct, 2), true],
    ["Energy", (p) => p.energy_j === null ? "-" : percent(p.energy_change_pct, 2), true],
    ["90 % interval", (p) => p.energy_change_low_pct === null ? "-" : range(p.energy_change_low_pct, p.energy_change_high_pct), true],
    ...(data.plans.some((p) => p.energy_j !== null && p.planned_energy_change_pct !== p.energy_change_pct) ? [["Energy, changes free", (p) => p.energy_j === null ? "-" : percent(p.planned_energy_change_pct, 2), true]] : []),
    ["Mean power", (p) => p.energy_j === null ? "-" : `${p.power_w.toFixed(0)} W`, true],
    ["Clocks", (p) => p.goal === "default" || p.energy_j === null ? "-" : p.clocks, true],
    ["Changes of clock", (p) => p.clock_changes === null ? "-" : p.clock_changes, true],
    ["Proven gap", (p) => p.gap_pct === null ? "-" : `${p.gap_pct.toFixed(3)} %`, true],
  ];
  const inPaper = (p) => data.published.some((row) => row.granularity === p.granularity && row.aggregation === p.aggregation && row.goal === p.goal);
  if (data.plans.some(inPaper)) {
    const published = (plan) => data.published.find((row) => row.granularity === plan.granularity && row.aggregation === plan.aggregation && row.goal === plan.goal);
    const cell = (field) => (p) => { const row = published(p); return row ? percent(row[field], 2) : "-"; };
    columns.push(["Paper: time", cell("time_change_pct"), true], ["energy", cell("energy_change_pct"), true]);
  }
  if (data.verifications.length > 0) {
    const last = (p) => data.verifications.filter((v) => v.plan_id === p.plan_id).at(-1);
    const measured = (p) => { const v = last(p); return v
      ? `${percent(v.measured_energy_change_pct, 2)} (${range(v.measured_energy_change_low_pct, v.measured_energy_change_high_pct, 2)}), ${v.energy_verdict}` : "-"; };
    columns.push(["Measured energy", measured, true]);
  }
  if (data.notes.length > 0) columns.push(["Notes", (p) => p.notes || ""]);
  table("#plans", columns, [baseline, ...data.plans]);
}

const few = 3;
const free = data.slider;  // of each granularity, what has a clock of its own: options as [clock, time, energy], fastest first
const unitOf = (pass) => ["embedding", "forward", "loss"].includes(pass) ? "forward" : ["backward", "embedding_backward"].includes(pass) ? "backward" : pass;
// The least energy within a time (a multiple-choice knapsack). Of a few groups all choices are tried. Of kernels it is dynamic programming over time in bins: close to the best, not proven.
function planWithin(grain, time_s) {
  const groups = free[grain];
  if (groups.length <= few) {
    let best = null;
    const tryAll = (picked, time, energy) => {
      if (time > time_s) return;
      if (picked.length === groups.length) { if (!best || energy < best.energy) best = {energy, picked}; return; }
      for (const option of groups[picked.length].options) tryAll([...picked, option], time + option[1], energy + option[2]);
    };
    tryAll([], 0, 0);
    return best && best.picked;
  }
  const fastest_s = d3.sum(groups, (g) => g.options[0][1]), bins = groups.length > 100 ? 1000 : 4000, bin_s = (time_s - fastest_s) / bins;
  if (bin_s < 0) return null;
  // Kernel by kernel: the least energy of choices that end in each bin, and the kernel's option in them.
  let least = new Float64Array(bins + 1).fill(Infinity);
  least[0] = 0;
  const steps = (g, o) => bin_s > 0 ? Math.round((o[1] - g.options[0][1]) / bin_s) : o === g.options[0] ? 0 : bins + 1;
  const taken = groups.map((g) => {
    const next = new Float64Array(bins + 1).fill(Infinity), of = new Uint16Array(bins + 1);
    g.options.forEach((o, j) => {
      for (let from = 0, to = steps(g, o); to <= bins; ++from, ++to)
        if (least[from] + o[2] < next[to]) { next[to] = least[from] + o[2]; of[to] = j; }
    });
    least = next;
    return of;
  });
  // Bins round times, so ends are tried by energy: the first that is in time is taken.
  for (const end of d3.range(bins + 1).filter((bin) => least[bin] < Infinity).sort((x, y) => least[x] - least[y])) {
    let bin = end;
    const picked = groups.map(() => null);
    for (let i = groups.length - 1; i >= 0; --i) { picked[i] = groups[i].options[taken[i][bin]]; bin -= steps(groups[i], picked[i]); }
    const left_s = time_s - d3.sum(picked, (o) => o[1]);
    if (left_s >= 0) return exchanged(groups, picked, left_s);
  }
  return null;
}
// Uses the time that rounding left: a slower clock for one kernel, or together with it a faster one for another, as long as the time holds.
function exchanged(groups, picked, left_s) {
  for (let round = 0; round < 30; ++round) {
    const steps = groups.flatMap((g, i) => g.options.map((option) => ({i, option, time: option[1] - picked[i][1], energy: option[2] - picked[i][2]})));
    const slower = steps.filter((s) => s.energy < 0), faster = steps.filter((s) => s.time < 0);
    let best = null, least = -1e-9;
    for (const a of slower) {
      if (a.time <= left_s && a.energy < least) [best, least] = [[a], a.energy];
      for (const b of faster)
        if (a.i !== b.i && a.time + b.time <= left_s && a.energy + b.energy < least) [best, least] = [[a, b], a.energy + b.energy];
    }
    if (!best) break;
    for (const step of best) { picked[step.i] = step.option; left_s -= step.time; }
  }
  return picked;
}

let chosen = null;  // what the slider gives: {grain, slack, time, energy, clocks by pass or kernel}
let opened = null;  // how the slider stood when the page was opened: there the headline is of the stored plans
function follow(what, clock) {
  if (!opened) return;
  if (opened.slack === element("slack").value && opened.grain === element("grain").value) return answer();
  headline(what, chosen ? `${withinText(chosen.slack)}, as the slider says, whatever the odds: energy ${percent(chosen.y)}, time ${percent(chosen.x)}.` : "",
    clock && data.slider.lines[clock], chosen && !clock ? "By the model, changes of clock free; below stands what plans it with its proof." : "", null);
}
function slide() {
  const slack = Number(element("slack").value), grain = element("grain").value;
  element("slack-shown").textContent = percent(slack);
  const options = planWithin(grain, baseline.time_s * (1 + slack / 100) * (1 + 1e-9));
  const names = free[grain].map((g) => g.name);
  chosen = options && {grain, slack, x: 100 * (d3.sum(options, (o) => o[1]) / baseline.time_s - 1), y: 100 * (d3.sum(options, (o) => o[2]) / baseline.energy_j - 1),
    clocks: new Map(names.map((name, i) => [name, options[i]]))};
  const count = options ? new Set(options.map((o) => o[0])).size : 0;
  const what = !chosen ? "No plan is that fast." : grain === "iteration" ? clockWords(options[0][0]) : `${whole[grain]}, ${clockCount(count)}`;
  follow(what, chosen && grain === "iteration" ? options[0][0] : null);
  element("slider-answer").textContent = !chosen ? what : `${what[0].toUpperCase()}${what.slice(1)}: energy ${percent(chosen.y, 2)}, time ${percent(chosen.x, 2)}` +
    (grain === "pass" ? ` (${names.map((name, i) => `${words(name)} ${options[i][0]}`).join(", ")}).` : ".") +
    (grain === "iteration" ? "" : " By the model, changes of clock free.");
  const [set, back] = (chosen && grain === "iteration" && data.slider.lines[options[0][0]]) || [];
  if (grain === "iteration") commandLine("slider-line", "To set:", set && `${set}   # back: ${back}`);
  else commandLine("slider-line", "To plan it, with its proof:", chosen && data.planning_line && `${data.planning_line} --granularity ${grain} --slack ${slack}`);
  if (farthest() !== drawn_to) drawFront();
  markChosen();
  if (plans.length > 0) element("plan").value = "slider";
  if (chosen && plans.length > 0) drawKernels("slider");
}

let markChosen = () => {};
// The front goes far; what is asked for is at its beginning.
const near_pct = 20, far_pct = 100;
let drawn_to = null;
const farthest = () => element("far").checked || Number(element("slack").value) > near_pct ? far_pct : near_pct;
function drawFront() {
  const width = drawWidth("#front"), height = width < narrow ? 340 : 460, margin = {top: 20, right: 22, bottom: 44, left: 58};
  const last = drawn_to = farthest(), near = (p) => p.time_change_pct <= last;
  const shown = data.front.filter(near), within = plans.filter(near), published = data.published.filter(near);
  const all = [...shown, ...within, ...published, {time_change_pct: 0, energy_change_pct: 0}];
  const ys = [...all.map((p) => p.energy_change_pct), ...within.flatMap((p) => p.energy_change_low_pct === null ? [] : [p.energy_change_low_pct, p.energy_change_high_pct])];
  const x = d3.scaleLinear(d3.extent(all, (p) => p.time_change_pct), [margin.left, width - margin.right]).nice();
  const y = d3.scaleLinear(d3.extent(ys), [height - margin.bottom, margin.top]).nice();
  const svg = chart("#front", width, height, "Energy change over time change: fronts of the three granularities, the plans of this run and the published results. The numbers are in the table below.");
  timeEnergyAxes(svg, x, y, width, height, margin, "an iteration");
  granularities.forEach((name, i) => {
    const points = shown.filter((p) => p.granularity === name);
    if (points.length === 0) return;
    svg.append("path").attr("class", "front").attr("fill", "none").attr("stroke", color(i)).attr("stroke-width", 2)
      .attr("d", d3.line().x((p) => x(p.time_change_pct)).y((p) => y(p.energy_change_pct))
        .curve(name === "kernel" ? d3.curveLinear : d3.curveStepAfter)(points));
    svg.append("g").selectAll("circle").data(points).join("circle").attr("r", points.length < 80 ? 2.5 : 1).attr("fill", color(i))
      .attr("cx", (p) => x(p.time_change_pct)).attr("cy", (p) => y(p.energy_change_pct))
      .append("title").text((p) => `front, one clock per ${name}: time ${percent(p.time_change_pct, 2)}, energy ${percent(p.energy_change_pct, 2)}`);
  });
  const tip = (p, who) => `${who}: ${planName(p)}: energy ${percent(p.energy_change_pct, 2)}, time ${percent(p.time_change_pct, 2)}`;
  svg.append("g").selectAll("line").data(within.filter((p) => p.energy_change_low_pct !== null)).join("line").attr("class", "interval").attr("x1", (p) => x(p.time_change_pct)).attr("x2", (p) => x(p.time_change_pct))
    .attr("y1", (p) => y(p.energy_change_low_pct)).attr("y2", (p) => y(p.energy_change_high_pct)).attr("stroke", (p) => grainColor(p.granularity)).attr("stroke-width", 1.4);
  svg.append("g").selectAll("rect").data([...within, baseline]).join("rect").attr("class", "mark")
    .attr("x", (p) => x(p.time_change_pct) - 4).attr("y", (p) => y(p.energy_change_pct) - 4).attr("width", 8).attr("height", 8)
    .attr("fill", (p) => p.goal === "default" ? "var(--ink)" : grainColor(p.granularity)).attr("stroke", "var(--paper)").append("title").text((p) => `${tip(p, "this run")}${intervalText(p)}`);
  svg.append("g").selectAll("path").data(published).join("path").attr("class", "mark published")
    .attr("d", "M0 -7 L7 0 L0 7 L-7 0 Z").attr("fill", "none").attr("stroke", (p) => grainColor(p.granularity)).attr("stroke-width", 1.8)
    .attr("transform", (p) => `translate(${x(p.time_change_pct)},${y(p.energy_change_pct)})`)
    .append("title").text((p) => tip(p, "paper"));
  const ink = inkOf(svg), cursor = svg.append("g").attr("class", "chosen");
  markChosen = () => {
    cursor.html("");
    if (!chosen || chosen.x > x.domain()[1]) return;
    cursor.append("line").attr("x1", x(chosen.slack)).attr("x2", x(chosen.slack)).attr("y1", margin.top).attr("y2", height - margin.bottom).attr("stroke", "var(--ink)").attr("stroke-width", 1.2);
    cursor.append("circle").attr("cx", x(chosen.x)).attr("cy", y(chosen.y)).attr("r", 6).attr("fill", grainColor(chosen.grain)).attr("stroke", "var(--ink)").attr("stroke-width", 2)
      .append("title").text(element("slider-answer").textContent);
    const slack = x(chosen.slack);
    labelBeside(cursor, `${percent(chosen.y)} energy`, [x(chosen.x), y(chosen.y)], [...ink, [slack, margin.top, slack, height - margin.bottom]], [margin.left, margin.top, width - margin.right, height - margin.bottom]);
  };
  svg.on("click", function () {
    element("slack").value = x.invert(d3.mouse(this)[0]);
    slide();
  });
  const entries = granularities.map((name, i) => ({name: `one clock per ${name}`, color: color(i)}));
  if (plans.some((p) => p.granularity === "segment")) entries.push({name: "plan per segment, changes of clock counted", color: grainColor("segment")});
  entries.push({name: "default clocks", color: "var(--ink)"});
  if (data.published.length > 0) entries.push({name: "published (arXiv 2601.08539, Table 2), same colours", color: "var(--ink)", path: "M7 1 L12 6 L7 11 L2 6 Z"});
  key("#front-key", entries);
  table("#front-table", [["One clock per", (p) => p.granularity], ["Time", (p) => percent(p.time_change_pct, 3), true],
    ["Energy", (p) => percent(p.energy_change_pct, 3), true]], data.front);
  markChosen();
}

// Kernels under the plan that the slider gives, as rows of v_kernels.
function slidKernels() {
  const cells = new Map(free.kernel.map((k) => [k.name, k]));
  return kernelsOf(plans[0]).map((k) => {
    const of = cells.get(k.name);
    const [clock, t, e] = chosen.grain === "kernel" ? chosen.clocks.get(k.name) : of.cells.find((c) => c[0] === chosen.clocks.get(chosen.grain === "pass" ? unitOf(k.pass) : "iteration")[0]);
    return {...k, clock, time_change_pct: 100 * (t / k.default_time_s - 1), energy_change_pct: 100 * (e / k.default_energy_j - 1), saved_j: k.default_energy_j - e};
  });
}

function drawKernels(planId) {
  const rows = planId === "slider" ? slidKernels() : data.kernels.filter((k) => k.plan_id === Number(planId));
  const width = drawWidth("#kernels"), slim = width < narrow, line = slim ? 32 : 19, margin = {top: 42, right: slim ? 20 : 110, bottom: 10, left: slim ? 20 : 190};
  const height = margin.top + margin.bottom + line * rows.length, bar = slim ? 18 : 4;
  const values = rows.flatMap((k) => [k.energy_change_pct, k.time_change_pct]);
  const x = d3.scaleLinear([Math.min(-1, d3.min(values)), Math.max(1, d3.max(values))], [margin.left, width - margin.right]).nice();
  const svg = chart("#kernels", width, height, "Energy and time change of each kernel under the selected plan. The numbers are in the table below.");
  svg.append("g").attr("transform", `translate(0,${margin.top - 4})`).call(d3.axisTop(x).ticks(slim ? 5 : 10).tickFormat((v) => percent(v, 0)).tickSize(-(height - margin.top)));
  svg.append("line").attr("class", "zero").attr("x1", x(0)).attr("x2", x(0)).attr("y1", margin.top).attr("y2", height - margin.bottom);
  const row = svg.selectAll("g.row").data(rows).join("g").attr("class", "row").attr("data-kernel", (k) => k.name)
    .attr("transform", (k, i) => `translate(0,${margin.top + i * line})`);
  row.append("text").attr("class", "label").attr("x", slim ? 4 : margin.left - 8).attr("y", slim ? 13 : line * 0.7).attr("text-anchor", slim ? "start" : "end").text((k) => short(k.name, 28));
  row.append("rect").attr("class", "mark").attr("y", bar).attr("height", 11)
    .attr("x", (k) => Math.min(x(0), x(k.energy_change_pct))).attr("width", (k) => Math.max(0.5, Math.abs(x(k.energy_change_pct) - x(0))))
    .attr("fill", (k) => passColor(k.pass))
    .append("title").text((k) => `${k.name} (${words(k.pass)}), clock ${k.clock}: energy ${percent(k.energy_change_pct, 2)}, time ${percent(k.time_change_pct, 2)}`);
  row.append("circle").attr("cx", (k) => x(k.time_change_pct)).attr("cy", bar + 5.5).attr("r", 3.4)
    .attr("fill", "var(--paper)").attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
  row.append("text").attr("class", "soft label").attr("x", width - 4).attr("y", slim ? 13 : line * 0.7).attr("text-anchor", "end").text((k) => k.clock);
  svg.append("text").attr("class", "soft").attr("x", width - 4).attr("y", 12).attr("text-anchor", "end").text("clock, memory/core MHz");
  const present = passes.filter((pass) => rows.some((k) => k.pass === pass));
  key("#kernels-key", [...present.map((pass) => ({name: `energy, ${words(pass)}`, color: passColor(pass)})), {name: "time", color: "var(--ink)", path: "M3 6 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0"}]);
  table("#kernels-table", [["Kernel", (k) => k.name], ["Label", (k) => k.label], ["Pass", (k) => words(k.pass)], ["Clock", (k) => k.clock],
    ["Launches", (k) => k.launches, true], ["Time", (k) => percent(k.time_change_pct, 2), true],
    ["Energy", (k) => percent(k.energy_change_pct, 2), true], ["Saved per iteration", (k) => `${k.saved_j.toFixed(2)} J`, true]], rows, (k) => k.name);
}

function drawGrid() {
  const pass = document.getElementById("pass").value, quantity = document.getElementById("quantity").value;
  const cells = data.grid.filter((c) => c.pass === pass);
  const base = cells.find((c) => c.is_default)[quantity];
  const change = (c) => 100 * (c[quantity] / base - 1);
  const mems = [...new Set(cells.map((c) => c.mem_state))];
  const cores = [...new Set(cells.map((c) => c.core_mhz))].sort((a, b) => (a === null ? 1e9 : a) - (b === null ? 1e9 : b));
  const coreName = (v) => v === null ? "auto" : String(v);
  // On a telephone core clocks go down and memory clocks across.
  const width = drawWidth("#grid"), slim = width < narrow, margin = {top: slim ? 34 : 8, right: 8, bottom: slim ? 8 : 44, left: slim ? 56 : 74};
  const across = slim ? mems : cores.map(coreName), down = slim ? cores.map(coreName).reverse() : mems;
  const x = d3.scaleBand(across, [margin.left, width - margin.right]).padding(0.04);
  const cell = slim ? Math.min(26, Math.max(4, 900 / down.length)) : Math.min(44, Math.max(26, x.bandwidth()));
  const height = margin.top + margin.bottom + down.length * cell;
  const y = d3.scaleBand(down, [height - margin.bottom, margin.top]).padding(0.06);
  const most = Math.min(100, d3.max(cells, (c) => Math.abs(change(c))) || 1);
  const share = (c) => Math.min(1, Math.abs(change(c)) / most);
  const svg = chart("#grid", width, height, `Change of ${quantity === "time_s" ? "time" : "energy"} of the pass over memory and core clock. The numbers are in the table below.`);
  const box = svg.selectAll("g.cell").data(cells).join("g").attr("class", "cell")
    .attr("transform", (c) => slim ? `translate(${x(c.mem_state)},${y(coreName(c.core_mhz))})` : `translate(${x(coreName(c.core_mhz))},${y(c.mem_state)})`);
  box.append("rect").attr("width", x.bandwidth()).attr("height", y.bandwidth()).attr("fill", "var(--mid)");
  box.append("rect").attr("width", x.bandwidth()).attr("height", y.bandwidth())
    .attr("fill", (c) => change(c) < 0 ? "var(--low)" : "var(--high)").attr("fill-opacity", (c) => 0.85 * Math.sqrt(share(c)))
    .append("title").text((c) => `${clockWords(c.clock)}: ${quantity === "time_s" ? "time" : "energy"} ${percent(change(c), 1)}`);
  if (cores.length <= (slim ? 40 : 14)) {
    box.append("text").attr("x", x.bandwidth() / 2).attr("y", y.bandwidth() / 2 + 4).attr("text-anchor", "middle").text((c) => signed(change(c), 0));
  }
  const every = slim ? Math.ceil(14 / cell) : 14, few_cores = slim ? cell >= 14 : cores.length <= 14;
  const ticks = cores.map(coreName).filter((name, i) => few_cores || i % every === 0);
  const axis = slim ? d3.axisTop(x) : d3.axisBottom(x).tickValues(ticks), side = slim ? d3.axisLeft(y).tickValues(ticks) : d3.axisLeft(y);
  svg.append("g").attr("transform", `translate(0,${slim ? margin.top : height - margin.bottom})`).call(axis.tickSize(0).tickPadding(slim ? 4 : 8));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(side.tickSize(0).tickPadding(8));
  svg.append("text").attr("class", "soft").attr("x", slim ? 4 : width - margin.right).attr("y", slim ? 12 : height - 6).attr("text-anchor", slim ? "start" : "end").text(slim ? "core clock asked for, MHz" : "requested core clock, MHz");
  svg.append("text").attr("class", "soft").attr("x", slim ? width - margin.right : 4).attr("y", slim ? 12 : height - 6).attr("text-anchor", slim ? "end" : "start").text("memory, MHz");
  document.getElementById("grid-note").textContent = `Change of ${quantity === "time_s" ? "time" : "energy"} against default clocks, %. Blue is less, orange is more; the colour is full at ${most.toFixed(0)} %.`;
  table("#grid-table", [["Memory", (c) => c.mem_state], ["Core", (c) => coreName(c.core_mhz), true],
    ["Time", (c) => `${c.time_s.toFixed(4)} s`, true], ["Energy", (c) => `${c.energy_j.toFixed(1)} J`, true], ["Change", (c) => percent(change(c), 2), true]], cells);
}


answer();
trust();
drawPlans();
const present = passes.filter((pass) => data.grid.some((c) => c.pass === pass));
fill("pass", present.map((pass) => [pass, words(pass)]), present.includes("forward") ? "forward" : null, drawGrid);
element("quantity").addEventListener("change", drawGrid);
drawGrid();
drawFront();
const first = best || plans[plans.length - 1];
const select = fill("plan", [["slider", "as the slider above says"], ...plans.map((p) => [p.plan_id, planName(p)])], null, () => drawKernels(select.value));
const last_pct = 100 * (d3.sum(free.kernel, (k) => k.options[k.options.length - 1][1]) / baseline.time_s - 1);
Object.assign(element("slack"), {min: 0, max: Math.min(50, Math.max(5, Math.ceil(last_pct)))});
fill("grain", granularities.map((name) => [name, name]), first && granularities.includes(first.granularity) ? first.granularity : inTime.some((p) => p.granularity === "iteration") ? "iteration" : "kernel", slide);
element("slack").value = first && first.slack_pct !== null ? first.slack_pct : 0;
element("slack").addEventListener("input", slide);
element("far").addEventListener("change", drawFront);
slide();
opened = {slack: element("slack").value, grain: element("grain").value};
const shownPlan = () => {
  if (plans.length === 0) { element("h-kernels").parentNode.hidden = true; return; }
  drawKernels(select.value);
};
if (first) select.value = first.plan_id;
shownPlan();
whenResized(() => { drawFront(); drawGrid(); shownPlan(); });
// Options without a value are left out, and so are zeros, such as what a free change of clock takes.
const said = (value) => Array.isArray(value) ? value.join(", ") : String(value);
const options = Object.entries(JSON.parse(run.options_json || "{}")).filter(([, value]) => value !== null && value !== "" && value !== 0 && said(value) !== "")
  .map(([name, value]) => `${words(name)}: ${said(value)}`).join("; ");
facts("#run", Object.entries(run).filter(([name, value]) => value !== null && value !== 0 && value !== "" && !/_hash$|_pct$|want$/.test(name))
  .map(([name, value]) => name === "options_json" ? ["options", options] : name.endsWith("_s") ? [named_unit(name)[0], timeText(value)] : [words(name), name === "gpu_calibrated" ? "yes" : value]));
})();

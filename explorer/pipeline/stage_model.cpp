#include "explorer/pipeline/stage_model.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "explorer/pareto.hpp"
#include "explorer/solver.hpp"
#include "models/kernel/model.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/simulator.hpp"
#include "traces/held_memory.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

bool has_limits(const ClockGrid& grid) {
  return std::ranges::any_of(grid.pairs(),
                             [](const ClockPair& pair) { return pair.power_limit_w.has_value(); });
}

// Time and energy of a pass's kernels at all clocks, launch counts included.
class PassTable {
 public:
  PassTable(const GpuModel& model, const ClockGrid& grid, const Trace& trace)
      : model_(model), grid_(grid), clocks_(grid.size()), cells_(evaluate_all(model, grid)) {
    const std::vector<std::uint64_t> counts = launch_counts(trace);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      cells_[i].time_s *= static_cast<double>(counts[i / clocks_]);
      cells_[i].energy_j *= static_cast<double>(counts[i / clocks_]);
    }
  }

  [[nodiscard]] std::size_t kernels() const { return cells_.size() / clocks_; }
  [[nodiscard]] const OperatingPoint& cell(std::size_t kernel, std::size_t clock) const {
    return cells_[kernel * clocks_ + clock];
  }

  /// @param clock_of_kernel  shape [kernels]
  [[nodiscard]] ClockOption option(const std::vector<std::size_t>& clock_of_kernel) const {
    CompensatedSum time_s, energy_j, core_cycles, mem_cycles;
    for (std::size_t k = 0; k < kernels(); ++k) {
      const OperatingPoint& point = cell(k, clock_of_kernel[k]);
      const ClockPair& pair = grid_[id_at<ClockId>(clock_of_kernel[k])];
      time_s.add(point.time_s);
      energy_j.add(point.energy_j);
      core_cycles.add(point.core_mhz * point.time_s);
      mem_cycles.add(model_.spec().mem_states[index(pair.mem)].mem_mhz * point.time_s);
    }
    return {core_cycles.value() / time_s.value(), time_s.value(), energy_j.value(),
            mem_cycles.value() / time_s.value()};
  }

  /// Default clocks, then every other clock of the grid for all kernels.
  void add_uniform_options(PassType& type, KernelClocks& clocks) const {
    add_uniform(index(grid_.default_clock()), type, clocks);
    for (std::size_t c = 0; c < clocks_; ++c) {
      if (id_at<ClockId>(c) != grid_.default_clock()) add_uniform(c, type, clocks);
    }
  }

  /// Every clock, the default clocks first, then the lower convex hull of all combinations: from
  /// all kernels at their fastest, one after the other goes to its next slower vertex.
  void add_kernel_options(double blocked_power_w, PassType& type, KernelClocks& clocks) const {
    std::vector<Step> steps;
    std::vector<std::size_t> now;
    for (std::size_t k = 0; k < kernels(); ++k) now.push_back(add_steps(k, blocked_power_w, steps));
    sort_down_by(steps, &Step::saving_w);
    add_uniform_options(type, clocks);
    add(option(now), now, type, clocks);
    const std::size_t stride = steps.size() / (most_kernel_plans - 2) + 1;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      now[steps[i].kernel] = steps[i].clock;
      if ((i + 1) % stride == 0 || i + 1 == steps.size()) add(option(now), now, type, clocks);
    }
  }

  void add(const ClockOption& option, const std::vector<std::size_t>& clock_of_kernel,
           PassType& type, KernelClocks& clocks) const {
    type.options.push_back(option);
    const auto differs = [&](std::size_t clock) { return clock != clock_of_kernel.front(); };
    type.options.back().mixed = std::ranges::any_of(clock_of_kernel, differs);
    auto& labels = clocks.clock_of_kernel.emplace_back();
    for (const std::size_t c : clock_of_kernel) labels.push_back(grid_.label(id_at<ClockId>(c)));
    ClockUse& use = clocks.in_effect.emplace_back();
    for (std::size_t k = 0; k < kernels(); ++k) {
      const OperatingPoint& point = cell(k, clock_of_kernel[k]);
      const ClockPair& pair = grid_[id_at<ClockId>(clock_of_kernel[k])];
      use.add(model_.spec(), pair.power_limit_w.value_or(model_.power_limit_w()),
              model_.coefficients(id_at<KernelId>(k)), point, point.time_s);
    }
  }

 private:
  struct Step {
    double saving_w;
    std::size_t kernel, clock;
  };

  // Appends the steps from vertex to vertex of a kernel's hull. Returns the kernel's fastest clock.
  std::size_t add_steps(std::size_t kernel, double blocked_power_w,
                        std::vector<Step>& steps) const {
    std::vector<double> time_s, cost_j;
    for (std::size_t c = 0; c < clocks_; ++c) {
      time_s.push_back(cell(kernel, c).time_s);
      cost_j.push_back(cell(kernel, c).energy_j - blocked_power_w * cell(kernel, c).time_s);
    }
    const std::vector<std::size_t> hull = lower_hull(time_s, cost_j);
    for (std::size_t v = 1; v < hull.size(); ++v) {
      const double saved_j = cost_j[hull[v - 1]] - cost_j[hull[v]];
      steps.push_back({saved_j / (time_s[hull[v]] - time_s[hull[v - 1]]), kernel, hull[v]});
    }
    return hull.front();
  }

  void add_uniform(std::size_t clock, PassType& type, KernelClocks& clocks) const {
    add(uniform(clock), std::vector<std::size_t>(kernels(), clock), type, clocks);
  }

  [[nodiscard]] ClockOption uniform(std::size_t clock) const {
    ClockOption same = option(std::vector<std::size_t>(kernels(), clock));
    // The clock in effect differs from kernel to kernel at a power limit; the setting does not.
    const ClockPair& pair = grid_[id_at<ClockId>(clock)];
    same.core_mhz = effective_core_mhz(model_.spec(), pair);
    same.mem_mhz = model_.spec().mem_states[index(pair.mem)].mem_mhz;
    // With limits to choose from, other clocks name the spec's own: a plan has to set it back.
    if (has_limits(grid_)) same.power_limit_w = pair.power_limit_w.value_or(model_.power_limit_w());
    return same;
  }

  const GpuModel& model_;
  const ClockGrid& grid_;
  std::size_t clocks_;
  std::vector<OperatingPoint> cells_;
};

// Copies a segment and its kernels.
void append_segment(Trace& to, const Trace& from, std::string_view name, std::uint32_t repeat) {
  const auto found = std::ranges::find(from.segments, name, &Segment::name);
  if (found == from.segments.end()) {
    throw DataError(fmt::format("{}: there is no segment '{}'", from.name, name));
  }
  Segment segment{found->name, repeat, {}};
  for (const KernelId kernel : found->launches) {
    segment.launches.push_back(id_at<KernelId>(to.kernels.size()));
    to.kernels.push_back(from.kernels[index(kernel)]);
  }
  to.segments.push_back(std::move(segment));
}

// The part of a model's parameters that a stage holds.
struct StageWeights {
  const TrainingStep& shape;
  std::uint32_t layers;
  bool first, last;

  // As a share of the model's parameters. The last stage has a copy of the logits' weights.
  [[nodiscard]] double share() const {
    TrainingStep without = shape;
    without.model.layers = 0;
    const double ends = parameters_per_rank(without), all = parameters_per_rank(shape);
    const double of_layers = (all - ends) * layers / static_cast<double>(shape.model.layers);
    return (of_layers + (first ? ends : 0.0) + (last && !first ? ends : 0.0)) / all;
  }
};

StageWeights weights_of(const TrainingStep& shape, std::uint32_t stages, std::uint32_t stage) {
  return {shape,
          static_cast<std::uint32_t>(shape.model.layers * (stage + 1) / stages -
                                     shape.model.layers * stage / stages),
          stage == 0, stage + 1 == stages};
}

// Appends a stage's part of the kernels that end a step of the whole model.
void append_step_end(Trace& to, const Trace& whole, PassKind kind, const StageWeights& stage) {
  if (kind == PassKind::optimizer) {
    append_segment(to, whole, "optimizer", 1);
    for (Kernel& kernel : to.kernels) scale_work(kernel, stage.share());
    return;
  }
  const auto add = [&](std::string_view name, std::uint32_t repeat) {
    const auto found = std::ranges::find(whole.kernels, name, &Kernel::name);
    if (found == whole.kernels.end())
      throw DataError(fmt::format("{}: there is no reduction of gradients", whole.name));
    to.segments.push_back({std::string(name), repeat, {id_at<KernelId>(to.kernels.size())}});
    to.kernels.push_back(*found);
  };
  add("d0_all_reduce_layer", stage.layers);
  if (stage.first || stage.last) add("d1_all_reduce_rest", 1);
}

// Of one stage, whose passes run in a row: the clocks of all kernels with which an iteration takes
// least energy, for each slack, found as for a single GPU. What ends a step has one clock.
void add_best_options(const StageModelInput& input, const ClockGrid& grid, ModelProfile& model) {
  std::vector<double> time_s, energy_j;
  const auto append = [&](double cell_s, double cell_j, std::uint32_t times) {
    time_s.push_back(cell_s * times);
    energy_j.push_back(cell_j * times);
  };
  const std::array traces{stage_trace(input.shape, 1, 0, PassKind::forward),
                          stage_trace(input.shape, 1, 0, PassKind::backward)};
  const std::array models{GpuModel(input.spec, traces[0]), GpuModel(input.spec, traces[1])};
  const std::array tables{PassTable(models[0], grid, traces[0]),
                          PassTable(models[1], grid, traces[1])};
  for (const PassTable& table : tables) {
    for (std::size_t k = 0; k < table.kernels(); ++k) {
      for (std::size_t c = 0; c < grid.size(); ++c)
        append(table.cell(k, c).time_s, table.cell(k, c).energy_j, input.microbatches);
    }
  }
  for (std::size_t t = tables.size(); t < model.profile.passes.size(); ++t) {
    std::vector<ClockOption> options = model.profile.passes[t].options;  // default clocks first
    std::swap(options.front(), options[index(grid.default_clock())]);
    for (const ClockOption& option : options) append(option.time_s, option.energy_j, 1);
  }
  const std::size_t rows = time_s.size() / grid.size();
  const ProfileTable table(rows, grid.size(), std::move(time_s), std::move(energy_j));
  for (const double slack_frac : input.slacks_frac) {
    const Solution best = solve_global(table, LeastWaste{slack_frac}, grid.default_clock());
    auto next = best.clock_of_unit.begin();
    for (std::size_t t = 0; t < tables.size() && !best.clock_of_unit.empty(); ++t) {
      std::vector<std::size_t> clocks;
      for (std::size_t k = 0; k < tables[t].kernels(); ++k) clocks.push_back(index(*next++));
      tables[t].add(tables[t].option(clocks), clocks, model.profile.passes[t], model.clocks[t]);
    }
  }
}

}  // namespace

PassClocks pass_clocks_from_name(std::string_view name) {
  static const std::vector<std::string> names{"pass", "kernel"};
  if (name == names[0]) return PassClocks::per_pass;
  if (name == names[1]) return PassClocks::per_kernel;
  throw UsageError(fmt::format("--clock-per '{}' is not known{}", name, did_you_mean(name, names)));
}

std::size_t clocks_entry(const PipelinePass& pass, const PipelineShape& shape,
                         std::size_t entries) {
  const std::size_t all = std::size_t{shape.stages} * shape.chunks;
  const std::size_t stage = std::size_t{pass.chunk} * shape.stages + pass.stage;
  if (ends_step(pass.kind)) {  // one or two of each stage, optimizers last
    assert(entries >= 3 * all);
    const std::size_t each = entries / all - 2;
    return 2 * all + stage * each + (pass.kind == PassKind::optimizer ? each - 1 : 0);
  }
  const bool forward = pass.kind == PassKind::forward || pass.kind == PassKind::recompute;
  return 2 * stage + (forward ? 0 : 1);
}

std::vector<std::size_t> clocks_entries(const PipelinePass& pass, const PipelineShape& shape,
                                        std::size_t entries) {
  if (pass.kind == PassKind::embedding_all_reduce) return {};  // runs no kernels of the model
  if (!ends_step(pass.kind)) return {clocks_entry(pass, shape, entries)};
  std::vector<std::size_t> of_chunks;
  for (PipelinePass of = pass; of.chunk < shape.chunks; ++of.chunk)
    of_chunks.push_back(clocks_entry(of, shape, entries));
  return of_chunks;
}

Trace stage_trace(const TrainingStep& shape, std::uint32_t stages, std::uint32_t stage,
                  PassKind kind) {
  const Trace whole = generate_training_step(shape).trace;
  const StageWeights weights = weights_of(shape, stages, stage);
  const bool forward = kind == PassKind::forward;
  Trace part{fmt::format("{}, stage {}, {}", whole.name, stage, name_of(kind)),
             whole.provenance,
             whole.captured,
             {},
             {}};
  if (ends_step(kind)) {
    append_step_end(part, whole, kind, weights);
    return part;
  }
  if (forward && stage == 0) append_segment(part, whole, "embedding", 1);
  if (!forward && stage + 1 == stages) append_segment(part, whole, "head backward", 1);
  append_segment(part, whole, forward ? "layer forward" : "layer backward", weights.layers);
  if (forward && stage + 1 == stages) append_segment(part, whole, "loss", 1);
  if (!forward && stage == 0) append_segment(part, whole, "embedding backward", 1);
  validate(part, part.name);
  return part;
}

ModelProfile model_profile(const StageModelInput& input) {
  if (input.stages == 0 || input.stages > input.shape.model.layers) {
    throw UsageError(fmt::format("{} stages for {} layers; expected 1 to {}", input.stages,
                                 input.shape.model.layers, input.shape.model.layers));
  }
  const ClockGrid grid = make_clock_grid(input.spec, input.grid);
  if (input.clocks == PassClocks::per_kernel && has_limits(grid))
    throw UsageError("power limits are set for whole passes",
                     {.in = {}, .hint = "leave --power-limits or --clock-per kernel out"});
  ModelProfile model{{fmt::format("{} on {}", input.shape.model.name, input.spec.name), {}}, {}};
  const auto add = [&](std::uint32_t stage, PassKind kind) {
    TrainingStep shape = input.shape;
    if (kind == PassKind::all_reduce) shape.data_parallel = input.replicas;
    shape.optimizer = kind == PassKind::optimizer;
    const Trace trace = stage_trace(shape, input.stages, stage, kind);
    const GpuModel gpu(input.spec, trace);
    const PassTable table(gpu, grid, trace);
    PassType& type = model.profile.passes.emplace_back(PassType{stage, kind, {}});
    KernelClocks& clocks = model.clocks.emplace_back();
    for (const Kernel& kernel : trace.kernels) clocks.kernels.push_back(kernel.name);
    if (input.clocks == PassClocks::per_pass || ends_step(kind)) {
      table.add_uniform_options(type, clocks);
    } else {
      table.add_kernel_options(input.blocked_power_w, type, clocks);
    }
  };
  for (std::uint32_t stage = 0; stage < input.stages; ++stage) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) add(stage, kind);
  }
  for (std::uint32_t stage = 0; input.step_end && stage < input.stages; ++stage) {
    if (input.replicas > 1) add(stage, PassKind::all_reduce);
    add(stage, PassKind::optimizer);
  }
  if (input.stages == 1 && input.clocks == PassClocks::per_kernel)
    add_best_options(input, grid, model);
  return model;
}

std::vector<Mark> marks_of_stages(const StageModelInput& input, std::uint32_t chunks) {
  TrainingStep shape = input.shape;
  shape.optimizer = input.step_end;
  std::vector<Mark> marks;
  if (std::optional<HeldMemory> held = held_memory(generate_training_step(shape).trace)) {
    const std::uint32_t gpus = input.stages / chunks;
    double most = 0.0;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      double share = 0.0;
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
        share += weights_of(shape, input.stages, chunk * gpus + gpu).share();
      most = std::max(most, share);
    }
    held->bytes *= most;
    if (auto mark = mark_of_memory(*held, input.spec)) {
      mark->reason = "of a stage " + mark->reason;
      marks.push_back(*std::move(mark));
    }
  }
  const Trace step = generate_training_step(input.shape).trace;
  const GpuModel model(input.spec, step);
  const ClockGrid grid = make_clock_grid(input.spec, input.grid);
  std::vector<CoefficientSource> sources;
  for (std::size_t k = 0; k < model.kernels(); ++k)
    sources.push_back(model.source(id_at<KernelId>(k)));
  const SimResult run = simulate(step, model, grid, uniform_plan(step, grid.default_clock()));
  if (const auto scaled = mark_of_scaled(sources, run.by_kernel)) marks.push_back(*scaled);
  return marks;
}

std::vector<Mark> marks_of_clocks(const GpuSpec& spec, std::span<const KernelClocks> clocks,
                                  const PipelineWork& work, const PipelinePlan& plan) {
  ClockUse use;
  for (std::size_t i = 0; i < plan.option_of_pass.size(); ++i) {
    for (const std::size_t entry :
         clocks_entries(work.schedule.passes[i], work.schedule.shape, clocks.size()))
      use.add(clocks[entry].in_effect[index(plan.option_of_pass[i])]);
  }
  return use.marks(spec);
}

void add_recompute(PipelineProfile& profile) {
  const std::vector<PassType> passes = profile.passes;
  for (PassType pass : passes) {
    if (pass.kind != PassKind::forward) continue;
    pass.kind = PassKind::recompute;
    profile.passes.push_back(std::move(pass));
  }
}

double model_idle_power_w(const GpuSpec& spec, const std::string& grid) {
  const ClockGrid clocks = make_clock_grid(spec, grid);
  const GpuModel model(spec, Trace{});
  double least_w = model.idle_power_w(clocks[clocks.default_clock()]);
  for (std::size_t c = 0; c < clocks.size(); ++c) {
    least_w = std::min(least_w, model.idle_power_w(clocks[id_at<ClockId>(c)]));
  }
  return least_w;
}

}  // namespace rubato

#include "explorer/pipeline/captured_profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/pass_power.hpp"
#include "sim/pipeline_run.hpp"
#include "traces/graph/stage_links.hpp"

namespace rubato {

namespace {

// Captured passes of one kind on one rank.
struct PassSample {
  std::size_t rank = 0;
  std::vector<const CapturedPass*> passes;
  std::vector<double> times_s;  // ascending
};

// The middle 90 % of a normal distribution end so many standard deviations from its mean.
constexpr double normal_90 = 1.645;
constexpr std::size_t most_counted = 100;  // beyond, the binomial distribution is taken as normal

// A quantile of sorted values, linear between two neighbours.
double quantile(const std::vector<double>& ascending, double at) {
  const double place = at * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], place - static_cast<double>(below));
}

// The median and its 90 % interval from order statistics: how many of n times lie below the true
// median is binomial, for many times nearly normal.
Estimate median_time(const std::vector<double>& ascending) {
  if (ascending.size() <= most_counted) {
    const std::size_t rank = median_rank(ascending.size()).value_or(0);
    return {quantile(ascending, 0.5), ascending[rank], ascending[ascending.size() - 1 - rank]};
  }
  const auto n = static_cast<double>(ascending.size());
  const double reach = 0.5 * normal_90 / std::sqrt(n);
  return {quantile(ascending, 0.5), quantile(ascending, std::max(0.5 - reach, 0.0)),
          quantile(ascending, std::min(0.5 + reach, 1.0))};
}

Estimate product(const Estimate& a, const Estimate& b) {
  return {a.value * b.value, a.low * b.low, a.high * b.high};
}

Estimate around(double value, double a, double b) {
  return {value, std::min({value, a, b}), std::max({value, a, b})};
}

class ProfileMaker {
 public:
  explicit ProfileMaker(const CapturedProfileInput& input) : input_(input) {
    profile_.pipeline = find_pipeline(input.captures);
    profile_.notes = profile_.pipeline.notes;
    if (!input.power.empty() && input.power.size() != input.captures.size())
      throw DataError(
          fmt::format("{} power logs for {} ranks; expected one of each", input.power.size(),
                      input.captures.size()),
          {.in = {}, .hint = "of a log of several GPUs, --power-gpu names one of each"});
    if (input.gpu) {
      clocks_ = core_clocks(*input.gpu);
      for (const Capture& capture : input.captures) models_.emplace_back(capture, *input.gpu);
      profile_.idle_power_w = models_.front().idle_power_w();
    }
    for (const CapturedStage& rank : profile_.pipeline.ranks)
      profile_.other_s = std::max(profile_.other_s, rank.other_s);
  }

  CapturedProfile make() && {
    fit_power();
    find_links();
    std::size_t fewest = most_counted;
    for (const auto& [key, samples] : samples_by_type()) {
      CapturedPassType type;
      type.stage = key.first;
      type.kind = key.second;
      describe(samples, type);
      set_options(samples, type);
      profile_.types.push_back(std::move(type));
      fewest = std::min(fewest, deciding(samples).times_s.size());
    }
    if (!median_rank(fewest))
      profile_.notes.push_back(
          fmt::format("{} pass{} of a kind: least to greatest time hold the median in less than 90 "
                      "% of the cases; capture more steps",
                      fewest, fewest == 1 ? "" : "es"));
    replay_step();
    return std::move(profile_);
  }

 private:
  using TypeKey = std::pair<std::uint32_t, PassKind>;

  [[nodiscard]] std::map<TypeKey, std::vector<PassSample>> samples_by_type() const {
    std::map<TypeKey, std::vector<PassSample>> types;
    const CapturedPipeline& pipeline = profile_.pipeline;
    for (std::size_t r = 0; r < pipeline.ranks.size(); ++r) {
      for (const CapturedPass& pass : pipeline.ranks[r].passes)
        add_sample(types[{pipeline.virtual_stage(r, pass), pass.kind}], r, pass);
      for (const CapturedPass& pass : pipeline.ranks[r].ends) {
        if (pass.kind != PassKind::embedding_all_reduce) {
          add_sample(types[{pipeline.stage_of_rank[r], pass.kind}], r, pass);
          continue;
        }
        // One stage waits in it for the other: the shorter of the two times is that of both.
        for (const std::uint32_t stage : {0U, pipeline.shape.stages - 1})
          add_sample(types[{stage, pass.kind}], r, pass);
      }
    }
    for (auto& [key, samples] : types) {
      for (PassSample& sample : samples) std::ranges::sort(sample.times_s);
    }
    return types;
  }

  static void add_sample(std::vector<PassSample>& samples, std::size_t rank,
                         const CapturedPass& pass) {
    if (samples.empty() || samples.back().rank != rank)
      samples.push_back({.rank = rank, .passes = {}, .times_s = {}});
    samples.back().passes.push_back(&pass);
    samples.back().times_s.push_back(pass.time_s());
  }

  // Fits each rank's powers. Blocked power is the mean over ranks, weighted by inverse variance.
  void fit_power() {
    double weights = 0.0, weighted_w = 0.0;
    for (std::size_t r = 0; r < input_.power.size(); ++r) {
      const PassPower& power = power_.emplace_back(
          pass_power(input_.captures[r], profile_.pipeline.ranks[r], input_.power[r]));
      if (!power.waiting_w) continue;
      constexpr double least_sigma_w = 0.1;  // readings come in tenths of a watt
      const double sigma_w = std::max(*power.waiting_sigma_w, least_sigma_w);
      weights += 1.0 / (sigma_w * sigma_w);
      weighted_w += *power.waiting_w / (sigma_w * sigma_w);
    }
    if (weights > 0.0) profile_.blocked_power_w = weighted_w / weights;
  }

  void find_links() {
    const StageLinks links = find_stage_links(input_.captures, profile_.pipeline);
    profile_.pipeline.shape.transfer_s = links.transfer_s;
    profile_.pipeline.shape.hold_s = links.hold_s;
    profile_.notes.insert(profile_.notes.end(), links.notes.begin(), links.notes.end());
  }

  void replay_step() {
    const CapturedPipeline& pipeline = profile_.pipeline;
    const PipelineShape& shape = pipeline.shape;
    const auto first = std::ranges::find(pipeline.stage_of_rank, 0U);
    if (first != pipeline.stage_of_rank.end())
      profile_.captured_step_s = median_step_s(
          pipeline.ranks[static_cast<std::size_t>(first - pipeline.stage_of_rank.begin())]);
    if (!pipeline.order_known || !profile_.complete()) return;
    PipelineProfile times{"captured", {}};
    for (const CapturedPassType& type : profile_.types) {
      if (ends_step(type.kind)) continue;
      times.passes.push_back(
          {type.stage, type.kind, {{1.0, type.captured().time_s.value, 1.0}}});  // times only
    }
    const PipelineWork work = pipeline_work(make_schedule(shape), times, 0.0);
    profile_.replayed_step_s = simulate(work, highest_clocks(work)).time_s;
  }

  static double median_step_s(const CapturedStage& rank) {
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> steps;
    for (const CapturedPass& pass : rank.passes) {
      auto& span = steps.try_emplace(pass.step, pass.start_ns, pass.end_ns).first->second;
      span.second = std::max(span.second, pass.end_ns);
    }
    std::vector<double> lengths_s;
    for (const auto& [step, span] : steps)
      lengths_s.push_back(s_per_ns * static_cast<double>(span.second - span.first));
    return median(std::move(lengths_s));
  }

  void describe(const std::vector<PassSample>& samples, CapturedPassType& type) const {
    constexpr double lowest = 0.05, highest = 0.95;
    std::vector<double> all_s;
    for (const PassSample& sample : samples) {
      all_s.insert(all_s.end(), sample.times_s.begin(), sample.times_s.end());
    }
    std::ranges::sort(all_s);
    type.passes = all_s.size();
    type.low_s = quantile(all_s, lowest);
    type.high_s = quantile(all_s, highest);
    std::vector<double> power_w, low_w, high_w;
    for (const PassSample& sample : samples) {
      const auto watts = measured_w(sample.rank, type.kind);
      if (!watts) continue;
      power_w.push_back(watts->value);
      low_w.push_back(watts->low);
      high_w.push_back(watts->high);
    }
    const auto ranks = static_cast<double>(power_w.size());
    if (!power_w.empty())
      type.measured_power_w =
          Estimate{sum(power_w) / ranks, sum(low_w) / ranks, sum(high_w) / ranks};
  }

  // Measured power of a kind of pass on a rank, with the 90 % interval of the fit to the readings.
  [[nodiscard]] std::optional<Estimate> measured_w(std::size_t rank, PassKind kind) const {
    if (power_.empty() || ends_step(kind)) return std::nullopt;
    const PassPower& power = power_[rank];
    const bool forward = kind == PassKind::forward;
    const auto& watts = forward ? power.forward_w : power.backward_w;
    if (!watts) return std::nullopt;
    constexpr double least_frac = 0.01;  // keeps the lower end above 0, however wide the interval
    const double reach_w = *(forward ? power.forward_reach_w : power.backward_reach_w);
    return Estimate{*watts, std::max(*watts - reach_w, least_frac * *watts), *watts + reach_w};
  }

  // Ranks wait in a reduction for the last of them. What they wait is no part of it.
  [[nodiscard]] static bool holds_waiting(PassKind kind) {
    return kind == PassKind::all_reduce || kind == PassKind::embedding_all_reduce;
  }

  // The rank whose time is taken for the stage.
  [[nodiscard]] static const PassSample& deciding(const std::vector<PassSample>& samples) {
    const auto median_s = [](const PassSample& sample) { return quantile(sample.times_s, 0.5); };
    const auto [fastest, slowest] = std::ranges::minmax_element(samples, {}, median_s);
    return holds_waiting(samples.front().passes.front()->kind) ? *fastest : *slowest;
  }

  void set_options(const std::vector<PassSample>& samples, CapturedPassType& type) const {
    const PassSample& of = deciding(samples);
    const Estimate captured_s = median_time(of.times_s);
    if (!input_.gpu) {
      CapturedOption option{
          .core_mhz = 0.0, .captured = true, .time_s = captured_s, .energy_j = {}};
      if (type.measured_power_w) option.energy_j = product(captured_s, *type.measured_power_w);
      type.options.push_back(option);
      return;
    }
    std::vector<MeanPass> means;
    for (const PassSample& sample : samples)
      means.push_back(models_[sample.rank].mean_pass(
          sample.passes, profile_.pipeline.ranks[sample.rank].main_stream));
    const auto at = static_cast<std::size_t>(&of - samples.data());
    const bool alone = holds_waiting(of.passes.front()->kind);
    const std::span counted = std::span(samples).subspan(alone ? at : 0, alone ? 1 : means.size());
    const std::span counted_means = std::span(means).subspan(alone ? at : 0, counted.size());
    type.kernel_frac = 1.0 - means[at].gap_s / means[at].time_s;
    type.guessed_frac = models_[of.rank].guessed_frac(means[at]);
    for (const ClockPair& clock : clocks_) {
      CapturedOption option;
      option.core_mhz = effective_core_mhz(input_.gpu->spec, clock);
      option.captured = clock == input_.gpu->captured_clock;
      option.time_s = time_at(of.rank, means[at], captured_s, clock);
      option.energy_j = energy_at(counted, counted_means, captured_s, clock);
      type.options.push_back(option);
    }
  }

  [[nodiscard]] Estimate time_at(std::size_t rank, const MeanPass& mean, const Estimate& captured_s,
                                 const ClockPair& clock) const {
    const auto costs = models_[rank].costs(mean, clock);
    const auto before = models_[rank].costs(mean, input_.gpu->captured_clock);
    std::array<double, 3> factor{};
    for (std::size_t i = 0; i < factor.size(); ++i) factor[i] = costs[i].time_s / before[i].time_s;
    const Estimate f = around(factor[0], factor[1], factor[2]);
    return {captured_s.value * f.value, captured_s.low * f.low, captured_s.high * f.high};
  }

  // Mean energy over ranks of a stage. Each rank's pass is as long as its median. At the
  // captured clock its power is the measured one, if there is one.
  [[nodiscard]] Estimate energy_at(std::span<const PassSample> samples,
                                   std::span<const MeanPass> means, const Estimate& captured_s,
                                   const ClockPair& clock) const {
    Estimate mean;
    for (std::size_t r = 0; r < samples.size(); ++r) {
      const CapturedRank& model = models_[samples[r].rank];
      const auto costs = model.costs(means[r], clock);
      const auto before = model.costs(means[r], input_.gpu->captured_clock);
      const double length = quantile(samples[r].times_s, 0.5) / means[r].time_s;
      const auto watts = measured_w(samples[r].rank, samples[r].passes.front()->kind);
      std::array<double, 3> joules{};
      for (std::size_t i = 0; i < joules.size(); ++i) {
        const double modelled_w = before[i].energy_j / before[i].time_s;
        joules[i] = costs[i].energy_j * length * (watts ? watts->value / modelled_w : 1.0);
      }
      Estimate own = around(joules[0], joules[1], joules[2]);
      if (watts)
        own = {own.value, own.low * watts->low / watts->value,
               own.high * watts->high / watts->value};
      const auto ranks = static_cast<double>(samples.size());
      mean.value += own.value / ranks;
      mean.low += own.low / ranks * captured_s.low / captured_s.value;
      mean.high += own.high / ranks * captured_s.high / captured_s.value;
    }
    return mean;
  }

  const CapturedProfileInput& input_;
  CapturedProfile profile_;
  std::vector<ClockPair> clocks_;
  std::vector<CapturedRank> models_;
  std::vector<PassPower> power_;
};

}  // namespace

const CapturedOption& CapturedPassType::captured() const {
  return *std::ranges::find(options, true, &CapturedOption::captured);
}

bool CapturedProfile::complete() const {
  const PipelineShape& shape = pipeline.shape;
  const auto passes = std::ranges::count_if(
      types, [](const CapturedPassType& type) { return !ends_step(type.kind); });
  return passes == std::int64_t{2} * shape.stages * shape.chunks;
}

CapturedProfile profile_captures(const CapturedProfileInput& input) {
  return ProfileMaker(input).make();
}

std::string profile_csv(const CapturedProfile& profile) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (const CapturedPassType& type : profile.types) {
    for (const CapturedOption& option : type.options) {
      if (!option.energy_j || option.core_mhz <= 0.0)
        throw DataError(
            fmt::format("the {} of stage {}, {}, is not known",
                        option.energy_j ? "clock" : "energy", type.stage, name_of(type.kind)),
            {.in = {}, .hint = "--gpu names a GPU to model"});
      // Clocks of the model differ by rounding from those that can be set.
      csv += fmt::format("{},{},{:.9g},{},{}\n", type.stage, name_of(type.kind), option.core_mhz,
                         format_number(option.time_s.value), format_number(option.energy_j->value));
    }
  }
  return csv;
}

}  // namespace rubato

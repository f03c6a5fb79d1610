#include "sim/graph/graph_model.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

namespace {

constexpr double best_guess = 0.5;     // lean in the open range, see anchored()
constexpr double least_time_s = 1e-9;  // for kernels of which all launches were joined or took 0 s

}  // namespace

GraphModel::GraphModel(const ExecutionGraph& graph, GpuSpec spec, const ClockPair& captured_clock,
                       std::optional<double> power_limit_w)
    : graph_(&graph),
      spec_(std::move(spec)),
      captured_clock_(captured_clock),
      power_limit_w_(accepted_power_limit_w(spec_, power_limit_w)),
      work_(graph.size(), 0.0) {
  bind_kernels(best_guess);
  anchor_work();
}

GraphModel GraphModel::with_split(double lean) const {
  GraphModel other = *this;
  other.bind_kernels(lean);
  other.anchor_work();
  other.move_collectives();
  return other;
}

GraphModel GraphModel::with_coefficients(
    const std::vector<std::optional<KernelCoefficients>>& coefficients) const {
  GraphModel other = *this;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    if (coefficients[k]) other.coefficients_[k] = *coefficients[k];
  }
  return other;
}

GraphModel GraphModel::with_whole_launches(
    const std::vector<std::optional<KernelCoefficients>>& coefficients) const {
  GraphModel other = with_coefficients(coefficients);
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const Activity& activity = graph_->activities()[i];
    if (activity.kind == ActivityKind::launch && coefficients[index(activity.kernel)])
      other.work_[i] = 1.0;
  }
  return other;
}

GraphModel GraphModel::with_slowdown(std::vector<double> factor) const {
  assert(moved_.empty());
  GraphModel other = *this;
  other.slowdown_ = std::move(factor);
  other.anchor_work();
  return other;
}

GraphModel GraphModel::with_host_power(double host_power_w) const {
  GraphModel other = *this;
  other.host_power_w_ = host_power_w;
  return other;
}

GraphModel GraphModel::with_throttles(const std::vector<GpuThrottle>& of_gpu) const {
  GraphModel other = *this;
  other.throttle_of_gpu_.clear();
  for (const GpuThrottle& one : of_gpu) {
    if (one.power_limit_w) (void)accepted_power_limit_w(spec_, one.power_limit_w);
    if (!(one.power_factor >= 0.5 && one.power_factor <= 2.0))
      throw UsageError(
          fmt::format("a GPU draws {:g} times as much power; expected 0.5 to 2", one.power_factor));
    const double mhz = one.core_mhz.value_or(spec_.core.max_mhz);
    if (!(mhz >= spec_.core.min_mhz && mhz <= spec_.core.max_mhz)) {
      throw UsageError(fmt::format("a GPU is held at {:g} MHz; {} has {:g} to {:g} MHz", mhz,
                                   spec_.name, spec_.core.min_mhz, spec_.core.max_mhz));
    }
    auto known = std::ranges::find(other.throttles_, one);
    if (known == other.throttles_.end()) known = other.throttles_.insert(known, one);
    other.throttle_of_gpu_.push_back(
        id_at<ThrottleId>(static_cast<std::size_t>(known - other.throttles_.begin())));
  }
  return other;
}

double GraphModel::limit_w(const ClockPair& clock, ThrottleId throttle) const {
  const double of_clock = clock.power_limit_w.value_or(power_limit_w_);
  return std::min(of_clock, throttles_[index(throttle)].power_limit_w.value_or(of_clock));
}

ClockPair GraphModel::held_clock(const ClockPair& asked, ThrottleId throttle) const {
  const GpuThrottle& most = throttles_[index(throttle)];
  ClockPair held = asked;
  if (most.core_mhz)
    held.core_mhz = std::min(asked.core_mhz.value_or(*most.core_mhz), *most.core_mhz);
  if (most.power_limit_w || power_factor(throttle) != 1.0)
    held.power_limit_w = limit_w(asked, throttle) / power_factor(throttle);
  return held;
}

GraphModel GraphModel::with_comm_sms(std::vector<OverlappingCollective> collectives,
                                     double comm_sms) const {
  assert(moved_.empty() && comm_sms >= 1.0);
  GraphModel other = *this;
  other.moved_ = std::move(collectives);
  other.comm_sms_ = comm_sms;
  other.move_collectives();
  return other;
}

// The captured time, which includes the load beside it, follows no clock. Only what is added does.
double GraphModel::transfer_s(std::size_t activity, double core_mhz) const {
  const Activity& of = graph_->activities()[activity];
  if (of.kind != ActivityKind::transfer) return 0.0;
  const double captured_s = of.duration_s * (slowdown_.empty() ? 1.0 : slowdown_[activity]);
  const double added = added_.empty() ? 0.0 : added_[index(of.kernel)];
  if (added == 0.0) return captured_s;
  const CollectiveSharing sharing;
  const double fixed = 1.0 - sharing.core_share;
  if (added < 0.0) return captured_s * (1.0 + added * fixed);
  const double at_clock = fixed + sharing.core_share * sharing.reference_mhz / core_mhz;
  return captured_s * (1.0 + added * at_clock * (1.0 + sharing.load_slowdown));
}

double GraphModel::idle_power_w(const ClockPair& clock, ThrottleId throttle) const {
  return power_factor(throttle) *
         waiting_power_w(spec_, spec_.mem_states[index(clock.mem)],
                         effective_core_mhz(spec_, held_clock(clock, throttle)));
}

void GraphModel::bind_kernels(double lean) {
  const std::size_t kernels = graph_->kernels().size();
  std::vector<double> time_s(kernels, 0.0), launches(kernels, 0.0);
  for (const Activity& activity : graph_->activities()) {
    if (activity.kind != ActivityKind::launch) continue;
    time_s[index(activity.kernel)] += activity.duration_s;
    launches[index(activity.kernel)] += 1.0;
  }
  coefficients_.clear();
  splits_.clear();
  demands_.clear();
  for (std::size_t k = 0; k < kernels; ++k) {
    const Kernel& kernel = graph_->kernels()[k];
    const double mean_s = std::max(time_s[k] / std::max(launches[k], 1.0), least_time_s);
    const AnchoredKernel own =
        anchored(spec_, kernel, {captured_clock_, mean_s, spec_.power_limit.limit_w}, lean);
    coefficients_.push_back(own.coefficients);
    splits_.push_back(own.split);
    demands_.push_back(sm_demand(kernel, spec_.sm_count));
  }
}

void GraphModel::move_collectives() {
  if (moved_.empty()) return;
  added_.assign(coefficients_.size(), 0.0);
  launched_.assign(coefficients_.size(), false);
  for (const Activity& activity : graph_->activities()) {
    if (activity.kind == ActivityKind::launch) launched_[index(activity.kernel)] = true;
  }
  for (const OverlappingCollective& one : moved_) {
    const std::size_t k = index(one.kernel);
    added_[k] = one.added_frac(comm_sms_);
    demands_[k] = {.share = comm_sms_ / spec_.sm_count, .held = comm_sms_};
    coefficients_[k] = on_its_sms(one.kernel, coefficients_[k]);
  }
}

// Power is not known to fall with the number of SMs, nor energy with the time. So a collective that
// gets longer draws the power it had, and one that gets shorter takes the energy it took.
KernelCoefficients GraphModel::on_its_sms(KernelId kernel,
                                          const KernelCoefficients& captured) const {
  // Of a collective joined over ranks the transfer takes the added time: see transfer_s().
  if (moved_.empty() || added_[index(kernel)] == 0.0 || !launched_[index(kernel)]) return captured;
  const ClockState state = clock_state(spec_, captured_clock_, false);
  const double captured_s = unlimited_point(state, captured).time_s;
  KernelCoefficients moved = copying_longer({}, captured, added_[index(kernel)] * captured_s);
  moved.core_j *= std::max(unlimited_point(state, moved).time_s / captured_s, 1.0);
  return moved;
}

// The inverse of a replay: times are given, as captured, and work is found. That is how many
// launches of the model each launch did in its time, at the rates it had beside the others.
void GraphModel::anchor_work() {
  std::ranges::fill(work_, 0.0);
  struct Change {
    double at_s;
    bool begins;
    std::uint32_t activity;  // launch, or arrival, whose departure is the end
  };
  std::vector<std::vector<Change>> changes(graph_->gpus().size());
  std::vector<std::uint32_t> arrived(graph_->streams().size(), 0);
  for (std::uint32_t i = 0; i < graph_->size(); ++i) {
    const Activity& activity = graph_->activities()[i];
    const auto gpu = graph_->gpu_of(activity);
    if (!gpu) continue;
    auto& list = changes[index(*gpu)];
    if (activity.kind == ActivityKind::arrival) arrived[*activity.stream] = i;
    const bool departs = activity.kind == ActivityKind::departure;
    const std::uint32_t first = departs ? arrived[*activity.stream] : i;
    const double start_s = graph_->activities()[first].start_s;
    if (activity.end_s() <= start_s) continue;
    list.push_back({start_s, true, first});
    list.push_back({activity.end_s(), false, first});
  }
  SharedGpu gpu(spec_, coefficients_, demands_, captured_clock_, spec_.power_limit.limit_w);
  for (auto& list : changes) {
    std::ranges::stable_sort(list, [](const Change& a, const Change& b) {
      return std::pair(a.at_s, a.begins) < std::pair(b.at_s, b.begins);
    });
    std::vector<std::pair<std::uint32_t, std::uint32_t>> running;  // kernel, activity
    std::vector<std::uint32_t> kernels;
    double since_s = 0.0;
    for (const Change& change : list) {
      const double passed_s = change.at_s - since_s;
      since_s = change.at_s;
      if (passed_s > 0.0 && !running.empty()) {
        const Sharing& sharing = gpu.at(kernels);
        for (std::size_t k = 0; k < running.size(); ++k) {
          if (graph_->activities()[running[k].second].kind == ActivityKind::launch)
            work_[running[k].second] += sharing.launches_per_s[k] * passed_s;
        }
      }
      const std::pair one{graph_->activities()[change.activity].kernel.value, change.activity};
      const auto at = std::ranges::lower_bound(running, one);
      if (change.begins) {
        running.insert(at, one);
      } else {
        running.erase(at);
      }
      kernels.clear();
      for (const auto& [kernel, activity] : running) kernels.push_back(kernel);
    }
  }
  for (std::size_t i = 0; i < slowdown_.size(); ++i) work_[i] *= slowdown_[i];
}

}  // namespace rubato

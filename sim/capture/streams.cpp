#include "sim/capture/streams.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "models/kernel/anchor.hpp"
#include "sim/capture/sharing.hpp"

namespace rubato {

namespace {

constexpr double s_per_ns = 1e-9;

double share_of_sms(const Kernel& kernel, double sm_count) {
  constexpr double channels = 16.0;  // of NCCL, one block each; 8 to 32 on current GPUs
  if (!kernel.launch)
    return kernel.kind == KernelClass::communication ? std::min(channels / sm_count, 1.0) : 1.0;
  double blocks = 1.0;
  for (const std::uint32_t extent : kernel.launch->grid) blocks *= extent;
  return std::clamp(blocks / sm_count, 1.0 / sm_count, 1.0);
}

// A collective copies while the link is busy, so its copying takes no time of its own.
KernelCoefficients behind_link(KernelCoefficients c, const ClockState& state) {
  constexpr double visible = 0.01;  // of the copy loop's cycles
  c.core_cycles *= visible;
  c.fixed_s -= std::min(c.dram_bytes / state.dram_bytes_per_s, 0.99 * c.fixed_s);
  return c;
}

// The launches that run on one device, sorted by kernel so that equal sets are one.
class RunningSet {
 public:
  void add(std::uint32_t launch, std::uint32_t kernel) {
    const auto at = std::ranges::upper_bound(kernels_, kernel) - kernels_.begin();
    kernels_.insert(kernels_.begin() + at, kernel);
    launches_.insert(launches_.begin() + at, launch);
  }
  void remove(std::uint32_t launch) {
    const auto at = std::ranges::find(launches_, launch) - launches_.begin();
    kernels_.erase(kernels_.begin() + at);
    launches_.erase(launches_.begin() + at);
  }
  [[nodiscard]] const std::vector<std::uint32_t>& kernels() const noexcept { return kernels_; }
  [[nodiscard]] const std::vector<std::uint32_t>& launches() const noexcept { return launches_; }

 private:
  std::vector<std::uint32_t> kernels_, launches_;
};

// One replay under way: launches start when all they wait for is over, and run
// at rates that change whenever one on their device starts or ends.
class Replay {
 public:
  Replay(const Capture& capture, const CaptureOrder& order, SharedGpu& gpu,
         const std::vector<double>& work)
      : capture_(capture),
        order_(order),
        gpu_(gpu),
        left_(work),
        waits_(work.size(), 0),
        ready_s_(work.size(), 0.0),
        followers_(work.size()),
        running_(capture.devices.size()),
        sharing_(capture.devices.size()),
        next_call_(capture.devices.size(), 0),
        call_time_s_(capture.devices.size(), 0.0),
        ended_s_(work.size()) {
    result_.launches.resize(work.size());
  }

  StreamsResult run() {
    prepare();
    for (std::uint32_t d = 0; d < running_.size(); ++d) share(d);
    while (step()) {
    }
    for (const SimulatedLaunch& launch : result_.launches)
      result_.makespan_s = std::max(result_.makespan_s, launch.end_s);
    result_.energy_j = energy_.value();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::uint32_t device_of(std::uint32_t launch) const {
    return capture_.streams[capture_.launches[launch].stream].device;
  }

  void prepare() {
    for (std::uint32_t i = 0; i < order_.launches.size(); ++i) {
      const LaunchOrder& own = order_.launches[i];
      for (const auto& before : {own.previous, own.awaited}) {
        if (!before) continue;
        followers_[*before].push_back(i);
        ++waits_[i];
      }
      if (own.has_call) ++waits_[i];
    }
    for (std::uint32_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) starts_.push({ready_s_[i] + order_.launches[i].lag_s, i});
    }
    for (std::uint32_t d = 0; d < next_call_.size(); ++d) make_calls(d);
  }

  // Makes host calls until one waits for a launch that has not ended.
  void make_calls(std::uint32_t device) {
    const auto& calls = order_.calls[device];
    for (std::size_t& next = next_call_[device]; next < calls.size(); ++next) {
      const HostCall& call = calls[next];
      double& now = call_time_s_[device];
      if (call.awaited) {
        if (!ended_s_[*call.awaited]) return;
        now = std::max(now, *ended_s_[*call.awaited]);
      }
      now += call.gap_s;
      release(call.launch, now);
    }
  }

  void release(std::uint32_t launch, double at_s) {
    ready_s_[launch] = std::max(ready_s_[launch], at_s);
    if (--waits_[launch] == 0)
      starts_.push({ready_s_[launch] + order_.launches[launch].lag_s, launch});
  }

  // To the next start or end. @return false when nothing is left
  bool step() {
    double next_s = infinity;
    if (!starts_.empty()) next_s = std::max(starts_.top().first, now_s_);
    std::optional<std::uint32_t> ending;
    for (std::uint32_t d = 0; d < running_.size(); ++d) {
      for (std::size_t i = 0; i < running_[d].launches().size(); ++i) {
        const std::uint32_t launch = running_[d].launches()[i];
        const double end_s = now_s_ + left_[launch] / sharing_[d]->launches_per_s[i];
        if (end_s > next_s || (end_s == next_s && ending)) continue;
        next_s = end_s;
        ending = launch;
      }
    }
    if (next_s == infinity) return false;
    advance(next_s);
    if (ending) {
      end(*ending);
    } else {
      start(starts_.top().second);
      starts_.pop();
    }
    return true;
  }

  void advance(double to_s) {
    const double passed_s = to_s - now_s_;
    for (std::uint32_t d = 0; d < running_.size(); ++d) {
      const Sharing& sharing = *sharing_[d];
      const auto& launches = running_[d].launches();
      for (std::size_t i = 0; i < launches.size(); ++i) {
        left_[launches[i]] =
            std::max(left_[launches[i]] - sharing.launches_per_s[i] * passed_s, 0.0);
        result_.launches[launches[i]].energy_j +=
            passed_s *
            (sharing.active_w[i] + sharing.idle_w / static_cast<double>(launches.size()));
      }
      energy_.add(sharing.power_w() * passed_s);
      if (sharing.power_limited) result_.power_limited_s += passed_s;
    }
    now_s_ = to_s;
  }

  void start(std::uint32_t launch) {
    result_.launches[launch].start_s = now_s_;
    const std::uint32_t device = device_of(launch);
    running_[device].add(launch, capture_.launches[launch].kernel.value);
    share(device);
  }

  void end(std::uint32_t launch) {
    result_.launches[launch].end_s = now_s_;
    ended_s_[launch] = now_s_;
    const std::uint32_t device = device_of(launch);
    running_[device].remove(launch);
    share(device);
    for (const std::uint32_t follower : followers_[launch]) release(follower, now_s_);
    for (std::uint32_t d = 0; d < next_call_.size(); ++d) make_calls(d);
  }

  void share(std::uint32_t device) {
    sharing_[device] = &gpu_.at(running_[device].kernels());
    const Sharing& now = *sharing_[device];
    result_.phases.push_back({now_s_, device,
                              static_cast<std::uint32_t>(running_[device].launches().size()),
                              now.power_w(), now.core_mhz, now.power_limited});
  }

  static constexpr double infinity = std::numeric_limits<double>::infinity();
  using Start = std::pair<double, std::uint32_t>;

  const Capture& capture_;
  const CaptureOrder& order_;
  SharedGpu& gpu_;
  std::vector<double> left_;          // of each launch, in launches of the model
  std::vector<std::uint32_t> waits_;  // things each launch still waits for
  std::vector<double> ready_s_;
  std::vector<std::vector<std::uint32_t>> followers_;
  std::vector<RunningSet> running_;      // per device
  std::vector<const Sharing*> sharing_;  // per device
  std::vector<std::size_t> next_call_;   // per device
  std::vector<double> call_time_s_;      // per device, of the last call made
  std::vector<std::optional<double>> ended_s_;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  double now_s_ = 0.0;
  CompensatedSum energy_;
  StreamsResult result_;
};

}  // namespace

double StreamsResult::energy_over_j(std::uint32_t device, double from_s, double to_s) const {
  CompensatedSum energy;
  const DevicePhase* now = nullptr;
  const auto add_until = [&](double end_s) {
    if (now == nullptr) return;
    const double covered_s = std::min(end_s, to_s) - std::max(now->start_s, from_s);
    if (covered_s > 0.0) energy.add(now->power_w * covered_s);
  };
  for (const DevicePhase& phase : phases) {
    if (phase.device != device) continue;
    add_until(phase.start_s);
    now = &phase;
  }
  add_until(makespan_s);
  return energy.value();
}

CaptureReplay::CaptureReplay(const Capture& capture, GpuSpec spec, const ClockPair& captured_clock,
                             std::optional<double> power_limit_w)
    : capture_(&capture),
      spec_(std::move(spec)),
      captured_clock_(captured_clock),
      power_limit_w_(power_limit_w.value_or(spec_.power_limit.limit_w)) {
  if (capture.launches.empty())
    throw DataError(fmt::format("{}: no launches to replay", capture.name));
  if (power_limit_w_ < spec_.power_limit.min_w || power_limit_w_ > spec_.power_limit.max_w) {
    throw UsageError(fmt::format(
        "a power limit of {} W is outside what {} accepts; expected {} to {} W",
        format_number(power_limit_w_), spec_.name, format_number(spec_.power_limit.min_w),
        format_number(spec_.power_limit.max_w)));
  }
  origin_ns_ = std::ranges::min_element(capture.launches, {}, &CapturedLaunch::start_ns)->start_ns;
  order_ = capture_order(capture, origin_ns_);
  bind_kernels();
  work_ = captured_work();
}

double CaptureReplay::captured_start_s(std::size_t launch) const {
  return static_cast<double>(capture_->launches[launch].start_ns - origin_ns_) * s_per_ns;
}

double CaptureReplay::captured_end_s(std::size_t launch) const {
  return static_cast<double>(capture_->launches[launch].end_ns() - origin_ns_) * s_per_ns;
}

double CaptureReplay::captured_makespan_s() const {
  double last_s = 0.0;
  for (std::size_t i = 0; i < capture_->launches.size(); ++i)
    last_s = std::max(last_s, captured_end_s(i));
  return last_s;
}

void CaptureReplay::bind_kernels() {
  std::vector<double> time_s(capture_->kernels.size(), 0.0), launches(time_s);
  for (const CapturedLaunch& launch : capture_->launches) {
    time_s[index(launch.kernel)] += static_cast<double>(launch.duration_ns) * s_per_ns;
    launches[index(launch.kernel)] += 1.0;
  }
  const ClockState state = clock_state(spec_, captured_clock_, false);
  for (std::size_t k = 0; k < capture_->kernels.size(); ++k) {
    const Kernel& kernel = capture_->kernels[k];
    sm_share_.push_back(share_of_sms(kernel, spec_.sm_count));
    const double mean_s = std::max(time_s[k] / std::max(launches[k], 1.0), s_per_ns);
    anchored_.push_back(
        anchored(spec_, kernel, {captured_clock_, mean_s, power_limit_w_}).coefficients);
    predicted_.push_back(anchored_.back());
    std::optional<CoefficientSource>& source = sources_.emplace_back();
    const auto found = find_coefficients(spec_, kernel);
    if (!found) continue;
    predicted_.back() =
        kernel.collective ? behind_link(found->coefficients, state) : found->coefficients;
    source = found->source;
  }
}

// Replays the captured times backwards: how much of a model's launch each one
// did while it ran beside those it ran beside.
std::vector<double> CaptureReplay::captured_work() const {
  struct Event {
    std::int64_t at_ns;
    bool starts;
    std::uint32_t launch;
  };
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < capture_->launches.size(); ++i) {
    const CapturedLaunch& launch = capture_->launches[i];
    if (launch.duration_ns <= 0) continue;
    events.push_back({launch.start_ns, true, i});
    events.push_back({launch.end_ns(), false, i});
  }
  std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
    return std::tie(a.at_ns, a.starts) < std::tie(b.at_ns, b.starts);
  });
  SharedGpu gpu(spec_, anchored_, sm_share_, captured_clock_, power_limit_w_);
  std::vector<RunningSet> running(capture_->devices.size());
  std::vector<std::int64_t> since_ns(running.size(), 0);
  std::vector<double> work(capture_->launches.size(), 0.0);
  for (const Event& event : events) {
    const CapturedLaunch& launch = capture_->launches[event.launch];
    const std::uint32_t device = capture_->streams[launch.stream].device;
    RunningSet& set = running[device];
    const double passed_s = static_cast<double>(event.at_ns - since_ns[device]) * s_per_ns;
    if (passed_s > 0.0 && !set.launches().empty()) {
      const Sharing& sharing = gpu.at(set.kernels());
      for (std::size_t i = 0; i < set.launches().size(); ++i)
        work[set.launches()[i]] += sharing.launches_per_s[i] * passed_s;
    }
    since_ns[device] = event.at_ns;
    if (event.starts) {
      set.add(event.launch, launch.kernel.value);
    } else {
      set.remove(event.launch);
    }
  }
  return work;
}

StreamsResult CaptureReplay::run(const ClockPair& clock, DurationSource durations) const {
  std::vector<double> work = work_;
  const bool from_model = durations == DurationSource::model;
  for (std::size_t i = 0; from_model && i < work.size(); ++i) {
    if (sources_[index(capture_->launches[i].kernel)]) work[i] = 1.0;
  }
  SharedGpu gpu(spec_, from_model ? predicted_ : anchored_, sm_share_, clock, power_limit_w_);
  return Replay(*capture_, order_, gpu, work).run();
}

}  // namespace rubato

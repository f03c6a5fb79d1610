#include "sim/capture/step_writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

namespace {

constexpr std::int64_t host_call_ns = 5'000;  // of each call; so the host runs ahead of the GPU
constexpr std::int64_t not_known = -1;

constexpr std::array<std::int64_t, step_streams> stream_numbers{7,  20, 24, 28, 29, 32,
                                                                36, 37, 40, 41, 44};
constexpr std::array<std::string_view, step_streams> group_names{
    "",       "data",        "tensor",      "context",   "context gradients",
    "expert", "activations", "activations", "gradients", "gradients",
    "tables"};

std::size_t slot(StepStream stream) { return static_cast<std::size_t>(stream); }

using Interval = std::pair<std::int64_t, std::int64_t>;

// How long at least one of `these` lasts and none of `others`. `others` are in order and disjoint.
std::int64_t only_in(std::vector<Interval> these, const std::vector<Interval>& others) {
  std::ranges::sort(these);
  std::int64_t sum = 0, done = 0;  // counted up to here
  std::size_t at = 0;
  for (const auto& [first, last] : these) {
    std::int64_t from = std::max(first, done);
    done = std::max(done, last);
    while (at < others.size() && others[at].second <= from) ++at;
    for (std::size_t o = at; from < last && o < others.size() && others[o].first < last; ++o) {
      sum += std::max<std::int64_t>(others[o].first - from, 0);
      from = std::max(from, others[o].second);
    }
    sum += std::max<std::int64_t>(last - from, 0);
  }
  return sum;
}

}  // namespace

StepKernels::StepKernels(const GpuSpec& spec, std::vector<Kernel> kernels) : spec_(spec) {
  for (const Kernel& kernel : kernels) add(kernel);
}

KernelId StepKernels::add(const Kernel& kernel) {
  const auto known = by_name_.find(kernel.name);
  if (known != by_name_.end()) return known->second;
  const Trace alone{
      .name = kernel.name, .provenance = {}, .captured = {}, .kernels = {kernel}, .segments = {}};
  times_s_.push_back(GpuModel(spec_, alone).evaluate(KernelId{0}, spec_.default_clock).time_s);
  kernels_.push_back(kernel);
  const auto id = id_at<KernelId>(kernels_.size() - 1);
  by_name_.emplace(kernel.name, id);
  return id;
}

std::uint32_t StepWriter::stream_index(StepStream stream) {
  auto& known = stream_[slot(stream)];
  if (!known) {
    known = static_cast<std::uint32_t>(capture_.streams.size());
    capture_.streams.push_back({0, stream_numbers[slot(stream)], {}});
  }
  return *known;
}

std::uint32_t StepWriter::call(CallKind kind, StepStream stream) {
  capture_.calls.push_back({.kind = kind,
                            .thread = 0,
                            .start_ns = host_ns_,
                            .duration_ns = 0,
                            .stream = stream_index(stream)});
  host_ns_ += host_call_ns;
  return static_cast<std::uint32_t>(capture_.calls.size() - 1);
}

CapturedLaunch& StepWriter::add(StepStream stream, KernelId kernel) {
  const std::uint32_t own = call(CallKind::launch, stream);
  CapturedLaunch launch;
  launch.kernel = kernel;
  launch.stream = stream_index(stream);
  launch.launch_ns = capture_.calls[own].start_ns;
  launch.call = own;
  launch.step = 0;
  launch.pass = (*kernels_)[kernel].pass;
  launch.start_ns = not_known;
  launch.duration_ns = std::llround(kernels_->time_s(kernel) / s_per_ns);
  auto& last = last_[slot(stream)];
  orders_.push_back({.stream = stream,
                     .host_ns = host_ns_,
                     .first_wait = static_cast<std::uint32_t>(waits_.size()),
                     .before = last,
                     .message = {},
                     .pass = pass_});
  auto& open = open_waits_[slot(stream)];
  waits_.insert(waits_.end(), open.begin(), open.end());
  open.clear();
  last = static_cast<std::uint32_t>(orders_.size() - 1);
  return capture_.launches.emplace_back(launch);
}

void StepWriter::name_group(CapturedLaunch& launch, std::string group,
                            const std::optional<MessageEnd>& end) {
  const auto [at, added] =
      groups_.emplace(group, static_cast<std::uint32_t>(capture_.groups.size()));
  if (added) capture_.groups.push_back({std::move(group), "", std::nullopt});
  CapturedCollective one{.kind = (*kernels_)[launch.kernel].collective->kind, .group = at->second};
  if (end && one.kind == CollectiveKind::send_recv)
    (end->sends ? one.target_rank : one.source_rank) = end->peer * ranks_;
  launch.collective = static_cast<std::uint32_t>(capture_.collectives.size());
  capture_.collectives.push_back(one);
}

void StepWriter::communicate(StepStream stream, KernelId kernel) {
  name_group(add(stream, kernel), fmt::format("{}, stage {}", group_names[slot(stream)], stage_),
             {});
}

void StepWriter::message(StepStream stream, KernelId kernel, const MessageEnd& end) {
  name_group(add(stream, kernel), std::string(group_names[slot(stream)]), end);
  orders_.back().message = end;
}

std::uint32_t StepWriter::mark(StepStream stream) {
  const std::uint32_t event = call(CallKind::event_record, stream);
  launch_before_[event] = last_of(stream);
  return event;
}

void StepWriter::wait(StepStream stream, std::uint32_t mark) {
  const std::optional<std::uint32_t> awaited = launch_before_.at(mark);
  if (!awaited) return;  // there was nothing to wait for
  CapturedCall& waiting = capture_.calls[call(CallKind::stream_wait, stream)];
  waiting.record = mark;
  waiting.recorded_stream = capture_.calls[mark].stream;
  open_waits_[slot(stream)].push_back(*awaited);
}

void StepWriter::follow(StepStream stream, StepStream other) {
  if (used(other)) wait(stream, mark(other));
}

// Ranks take turns. In each turn a rank goes on up to a launch that waits for a message whose end
// is not yet known.
class StepTiming {
 public:
  explicit StepTiming(std::span<StepWriter> ranks) : ranks_(ranks), next_(ranks.size(), 0) {
    for (const StepWriter& rank : ranks) ends_.emplace_back(rank.orders_.size(), not_known);
  }

  std::int64_t run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t r = 0; r < ranks_.size(); ++r) moved |= advance(r);
    }
    std::int64_t end_ns = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const std::int64_t end : ends_[r]) {
        if (end == not_known)
          throw DataError(fmt::format("stage {} waits for a message for ever", r));
        end_ns = std::max(end_ns, end);
      }
    }
    return end_ns;
  }

 private:
  using Route = std::tuple<std::uint32_t, std::uint32_t, std::string_view>;  // from, to, group
  struct Side {
    std::uint32_t rank = 0, launch = 0;
  };

  // @return whether it got any farther
  bool advance(std::uint32_t r) {
    StepWriter& rank = ranks_[r];
    const std::uint32_t first = next_[r];
    for (std::uint32_t& at = next_[r]; at < rank.orders_.size(); ++at) {
      const std::optional<std::int64_t> ready_ns = ready(rank, ends_[r], at);
      if (!ready_ns) break;
      CapturedLaunch& launch = rank.capture_.launches[at];
      launch.start_ns = *ready_ns;
      if (rank.orders_[at].message) {
        arrive({r, at});
      } else {
        ends_[r][at] = launch.end_ns();
      }
    }
    return next_[r] != first;
  }

  // When a launch can start, ns; nothing: the end of a message it waits for is not yet known.
  [[nodiscard]] static std::optional<std::int64_t> ready(const StepWriter& rank,
                                                         const std::vector<std::int64_t>& ends,
                                                         std::uint32_t at) {
    const StepWriter::Order& order = rank.orders_[at];
    std::int64_t ready_ns = order.host_ns;
    bool known = true;
    const auto wait_for = [&](std::uint32_t other) {
      known &= ends[other] != not_known;
      ready_ns = std::max(ready_ns, ends[other]);
    };
    if (order.before) wait_for(*order.before);
    const std::size_t last =
        at + 1 < rank.orders_.size() ? rank.orders_[at + 1].first_wait : rank.waits_.size();
    for (std::size_t w = order.first_wait; w < last; ++w) wait_for(rank.waits_[w]);
    if (!known) return std::nullopt;
    return ready_ns;
  }

  // Matches the sides of messages: on a route, both sides come in the same order.
  void arrive(const Side& side) {
    const StepWriter& rank = ranks_[side.rank];
    const StepWriter::Order& order = rank.orders_[side.launch];
    const std::string_view group = group_names[slot(order.stream)];
    const std::uint32_t peer = order.message->peer, own = rank.stage_;
    std::deque<Side>& waiting =
        order.message->sends ? arrived_[{own, peer, group}] : arrived_[{peer, own, group}];
    if (waiting.empty() || waiting.front().rank == side.rank) {
      waiting.push_back(side);
      return;
    }
    end_both(waiting.front(), side);
    waiting.pop_front();
  }

  void end_both(const Side& a, const Side& b) {
    const auto launch_of = [&](const Side& side) -> CapturedLaunch& {
      return ranks_[side.rank].capture_.launches[side.launch];
    };
    const std::int64_t begin_ns = std::max(launch_of(a).start_ns, launch_of(b).start_ns);
    for (const Side& side : {a, b}) {
      CapturedLaunch& launch = launch_of(side);
      const std::int64_t end_ns = begin_ns + launch.duration_ns;
      launch.duration_ns = end_ns - launch.start_ns;
      ends_[side.rank][side.launch] = end_ns;
    }
  }

  std::span<StepWriter> ranks_;
  std::vector<std::uint32_t> next_;
  std::vector<std::vector<std::int64_t>> ends_;  // shape [ranks][launches]
  std::map<Route, std::deque<Side>> arrived_;    // those whose other side has not come
};

std::int64_t set_times(std::span<StepWriter> ranks) { return StepTiming(ranks).run(); }

RankTimes times_of(const StepWriter& rank) {
  RankTimes times;
  std::vector<Interval> kernels, comm;
  for (std::size_t i = 0; i < rank.orders_.size(); ++i) {
    const CapturedLaunch& launch = rank.capture_.launches[i];
    const double time_s = rank.kernels_->time_s(launch.kernel);
    if (rank.orders_[i].stream == StepStream::compute) {
      times.compute_s += time_s;
      kernels.emplace_back(launch.start_ns, launch.end_ns());
      continue;
    }
    const auto alone_ns = static_cast<std::int64_t>(std::llround(time_s / s_per_ns));
    times.comm_s += time_s;
    times.comm_bytes += (*rank.kernels_)[launch.kernel].collective->message_bytes;
    comm.emplace_back(launch.end_ns() - alone_ns, launch.end_ns());
  }
  const std::int64_t some_ns = only_in(comm, {}), exposed_ns = only_in(std::move(comm), kernels);
  times.exposed_s = static_cast<double>(exposed_ns) * s_per_ns;
  times.hidden_s = static_cast<double>(some_ns - exposed_ns) * s_per_ns;
  return times;
}

FinishedRank finished(StepWriter rank, std::int64_t end_ns) {
  FinishedRank done{std::move(rank.capture_), {}};
  Capture& capture = done.capture;
  capture.kernels = rank.kernels_->list();
  capture.threads.resize(1);
  capture.step_source = StepSource::annotation;
  capture.steps = {{"step", 0, end_ns}};
  capture.rank = rank.stage_ * rank.ranks_;
  std::vector<std::uint32_t> order(capture.launches.size());
  std::iota(order.begin(), order.end(), 0U);
  sort_by(order, [&](std::uint32_t i) { return capture.launches[i].start_ns; });
  std::vector<CapturedLaunch> launches;
  launches.reserve(order.size());
  for (const std::uint32_t i : order) {
    launches.push_back(capture.launches[i]);
    done.pass_of_launch.push_back(rank.orders_[i].pass);
  }
  capture.launches = std::move(launches);
  return done;
}

}  // namespace rubato

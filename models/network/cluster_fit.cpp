#include "models/network/cluster_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/algorithms/parallel.hpp"
#include "common/json.hpp"
#include "common/statistics.hpp"
#include "models/network/collective_time.hpp"
#include "traces/graph/rank_join.hpp"

namespace rubato {

namespace {

using MessageKey = std::tuple<CollectiveKind, std::uint32_t, std::uint32_t, double>;

// Least rise of the loss by which doubling a number shows that messages tell it: as much as an
// error of 10 % in one message's time adds.
constexpr double told_rise = 0.4;

constexpr double wide = 4.6;  // of ln: a factor of 100 up and down

// The numbers of a cluster that are fitted.
enum class Number { inside_gbs, inside_latency, between_gbs, between_latency };

bool is_between(Number which) {
  return which == Number::between_gbs || which == Number::between_latency;
}

double& number(ClusterSpec& cluster, Number which) {
  Link& link = is_between(which) ? *cluster.between : cluster.inside;
  const bool latency = which == Number::inside_latency || which == Number::between_latency;
  return latency ? link.latency_scale : link.bus_gbs;
}

class ClusterProblem {
 public:
  ClusterProblem(std::span<const ObservedCollective> observed, const NetworkParameters& parameters)
      : observed_(observed), parameters_(parameters) {}

  // Pseudo-Huber loss over all messages but one. @param inside_only  only those inside a node
  [[nodiscard]] double loss(const ClusterSpec& cluster, std::size_t without,
                            bool inside_only) const {
    constexpr double usual_error = 0.1;
    double sum = 0.0;
    for (std::size_t i = 0; i < observed_.size(); ++i) {
      if (i == without || (inside_only && !stays_inside(cluster, i))) continue;
      const double error = std::log(time_s(cluster, i) / observed_[i].time_s) / usual_error;
      sum += std::sqrt(1.0 + error * error);
    }
    return sum;
  }

  // How much the loss rises where a number is doubled and the others are fitted again.
  [[nodiscard]] double rise(const ClusterSpec& cluster, const std::vector<Number>& numbers,
                            Number which) const {
    const std::size_t none = observed_.size();
    std::vector<Number> others = numbers;
    std::erase(others, which);
    ClusterSpec twice = cluster;
    number(twice, which) *= 2.0;
    return loss(fitted(twice, others, none), none, false) - loss(cluster, none, false);
  }

  // First the numbers inside nodes, from messages that stay there; then those between nodes; then
  // all together.
  [[nodiscard]] ClusterSpec fitted(const ClusterSpec& frame, const std::vector<Number>& numbers,
                                   std::size_t without) const {
    constexpr double near = 0.3;  // of ln: a factor of 1.35 up and down
    std::vector<Number> inside, between;
    for (const Number which : numbers) (is_between(which) ? between : inside).push_back(which);
    if (between.empty()) return searched(frame, numbers, wide, without, false);
    ClusterSpec cluster = searched(frame, inside, wide, without, true);
    cluster = searched(std::move(cluster), between, wide, without, false);
    return searched(std::move(cluster), numbers, near, without, false);
  }

 private:
  // Coordinate descent: one number after the other, each where the loss is least on a grid around
  // it. The grid gets finer with every round. No number ends further than `wide` from its start.
  [[nodiscard]] ClusterSpec searched(ClusterSpec cluster, const std::vector<Number>& numbers,
                                     double reach, std::size_t without, bool inside_only) const {
    constexpr int grid = 12, rounds = 40;
    constexpr double narrower = 0.8;
    ClusterSpec start = cluster;
    for (int round = 0; round < rounds; ++round, reach *= narrower) {
      for (const Number which : numbers) {
        ClusterSpec best = cluster;
        double best_loss = loss(cluster, without, inside_only);
        for (int k = -grid; k <= grid; ++k) {
          ClusterSpec tried = cluster;
          number(tried, which) *= std::exp(reach * k / grid);
          if (std::abs(std::log(number(tried, which) / number(start, which))) > wide) continue;
          const double tried_loss = loss(tried, without, inside_only);
          if (tried_loss >= best_loss) continue;
          best_loss = tried_loss;
          best = std::move(tried);
        }
        cluster = std::move(best);
      }
    }
    return cluster;
  }

  [[nodiscard]] bool stays_inside(const ClusterSpec& cluster, std::size_t i) const {
    const Collective& message = observed_[i].message;
    return message.group_size * message.stride <= cluster.gpus_per_node;
  }
  [[nodiscard]] double time_s(const ClusterSpec& cluster, std::size_t i) const {
    return collective_time(cluster, observed_[i].message, parameters_).time_s;
  }

  std::span<const ObservedCollective> observed_;
  const NetworkParameters& parameters_;
};

// GPUs from one rank of a group to the next; their mean where the distances differ.
std::uint32_t stride_of(const CaptureGroup& group) {
  if (group.ranks.size() < 2) return 1;
  const auto [first, last] = std::ranges::minmax(group.ranks);
  return std::max(1U, (last - first) / static_cast<std::uint32_t>(group.ranks.size() - 1));
}

// What a launch sends: as recorded with the launch; what is missing there, as its kernel has it.
// @param members  ranks that were seen to take part
std::optional<Collective> message_of(const Capture& capture, std::size_t launch,
                                     std::size_t members) {
  const CapturedLaunch& of = capture.launches[launch];
  const std::optional<Collective>& known = capture.kernels[index(of.kernel)].collective;
  if (!of.collective) return known;
  const CapturedCollective& one = capture.collectives[*of.collective];
  std::optional<std::uint32_t> ranks;
  std::uint32_t stride = known ? known->stride : 1;
  if (one.group) {
    const CaptureGroup& group = capture.groups[*one.group];
    ranks = group.size;
    if (!known) stride = stride_of(group);
  }
  if (!ranks) ranks = known ? known->group_size : static_cast<std::uint32_t>(members);
  // The full buffer is what an all-gather fills and what a reduce-scatter is given.
  const std::uint64_t bytes = std::max(one.in_bytes.value_or(0), one.out_bytes.value_or(0));
  const double recorded = static_cast<double>(bytes);
  return Collective{one.kind, bytes == 0 && known ? known->message_bytes : recorded, *ranks,
                    stride};
}

}  // namespace

std::vector<ObservedCollective> observed_collectives(std::span<const Capture> captures) {
  std::map<MessageKey, std::vector<double>> times_s;
  const auto add = [&](const std::optional<Collective>& message, std::int64_t time_ns) {
    if (!message || message->kind == CollectiveKind::other || message->group_size < 2) return;
    if (!(message->message_bytes > 0.0) || time_ns <= 0) return;
    times_s[{message->kind, message->group_size, message->stride, message->message_bytes}]
        .push_back(1e-9 * static_cast<double>(time_ns));
  };
  const bool joined = captures.size() > 1;
  if (joined) {
    for (const JoinedCollective& one : join_ranks(captures).collectives) {
      const CollectiveMember& member = one.members.front();
      const auto message = message_of(captures[member.capture], member.launch, one.members.size());
      // A missing rank may have been the last to arrive.
      if (message && message->group_size == one.members.size()) add(message, one.transfer_ns());
    }
  } else {
    for (const Capture& capture : captures)
      for (std::size_t i = 0; i < capture.launches.size(); ++i)
        add(message_of(capture, i, 0), capture.launches[i].duration_ns);
  }
  std::vector<ObservedCollective> observed;
  for (auto& [key, times] : times_s) {
    const auto& [kind, ranks, stride, bytes] = key;
    const auto launches = static_cast<std::uint32_t>(times.size());
    const double time_s = joined ? median(std::move(times)) : *std::ranges::min_element(times);
    observed.push_back({{kind, bytes, ranks, stride}, launches, time_s});
  }
  return observed;
}

ClusterFit fit_cluster(const ClusterSpec& frame, std::span<const ObservedCollective> observed,
                       const NetworkParameters& parameters) {
  const ClusterProblem problem(observed, parameters);
  const std::size_t none = observed.size();
  std::vector<Number> numbers{Number::inside_gbs, Number::inside_latency};
  if (frame.between) {
    numbers.push_back(Number::between_gbs);
    numbers.push_back(Number::between_latency);
  }
  // The number that messages tell least goes back to the frame's, one at a time: others may then be
  // told better or worse. As many numbers as messages would fit anything.
  ClusterSpec cluster = problem.fitted(frame, numbers, none);
  while (!numbers.empty()) {
    std::vector<double> rises;
    for (const Number which : numbers) rises.push_back(problem.rise(cluster, numbers, which));
    const auto least = std::ranges::min_element(rises);
    if (*least > told_rise && observed.size() > numbers.size()) break;
    numbers.erase(numbers.begin() + (least - rises.begin()));
    cluster = problem.fitted(frame, numbers, none);
  }
  ClusterFit fit{.cluster = cluster,
                 .inside_gbs = {},
                 .between_gbs = {},
                 .inside_latency = {},
                 .between_latency = {}};
  const auto slot = [&](Number which) -> std::optional<FittedNumber>& {
    switch (which) {
      case Number::inside_latency: return fit.inside_latency;
      case Number::between_gbs: return fit.between_gbs;
      case Number::between_latency: return fit.between_latency;
      case Number::inside_gbs: break;
    }
    return fit.inside_gbs;
  };
  for (const Number which : numbers) {
    const double value = number(cluster, which);
    slot(which) = {value, value, value};
  }
  if (numbers.empty()) return fit;
  std::vector<ClusterSpec> others(observed.size());
  parallel_for(observed.size(), [&](std::size_t without) {
    others[without] = problem.fitted(frame, numbers, without);
  });
  for (ClusterSpec& other : others) {
    for (const Number which : numbers) {
      FittedNumber& found = *slot(which);
      found.low = std::min(found.low, number(other, which));
      found.high = std::max(found.high, number(other, which));
    }
  }
  return fit;
}

std::string cluster_file(const ClusterSpec& cluster) {
  return json_text(cluster_json(cluster), 2) + '\n';
}

}  // namespace rubato

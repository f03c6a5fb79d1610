#include "traces/import/step_period.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "traces/repeats.hpp"

namespace rubato {

namespace {

constexpr std::uint8_t forward_part = 1, backward_part = 2, optimizer_part = 4;
constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

std::uint8_t part_of(Pass pass, KernelClass kind) {
  if (pass == Pass::optimizer || kind == KernelClass::optimizer) return optimizer_part;
  if (pass == Pass::forward) return forward_part;
  return pass == Pass::backward ? backward_part : std::uint8_t{0};
}

// Unsigned, since times of damaged files may be further apart than a signed number can say.
std::int64_t pause_ns(std::int64_t end_ns, std::int64_t start_ns) {
  if (start_ns <= end_ns) return 0;
  const auto apart = static_cast<std::uint64_t>(start_ns) - static_cast<std::uint64_t>(end_ns);
  return static_cast<std::int64_t>(std::min(apart, static_cast<std::uint64_t>(longest_launch_ns)));
}

bool can_be_steps(const NameSequence& sequence, const Repetition& found) {
  const std::size_t size = sequence.names.size(), covered = found.end - found.first;
  if (found.period < least_period || 2 * covered < size) return false;
  if (found.count() == 2 && 10 * covered < 9 * size) return false;
  std::uint8_t all = 0, inside = 0;
  for (const std::uint8_t part : sequence.parts) all |= part;
  for (std::size_t i = found.first; i < found.first + found.period; ++i) {
    inside |= sequence.parts[i];
    // The hashes behind a repetition are checked once, here.
    for (std::size_t j = i + found.period; j < found.end; j += found.period) {
      if (sequence.names[j] != sequence.names[i]) return false;
    }
  }
  // Layers repeat as exactly as steps do: only what a period holds tells them apart.
  const bool trains = (inside & optimizer_part) != 0 || inside == (forward_part | backward_part);
  return trains && inside == all;
}

// Where the first step begins. A repetition may be longer than its whole periods: then any of its
// first positions gives as many whole steps.
std::size_t first_step(const NameSequence& sequence, const Repetition& found) {
  const std::size_t spare = (found.end - found.first) % found.period;
  std::size_t best = found.first;
  std::pair<bool, std::int64_t> best_rank{false, -1};  // behind an optimizer, pauses
  for (std::size_t i = found.first; i <= found.first + spare; ++i) {
    // The launch before the first period may be anything: look one period on.
    const std::size_t next = i + found.period;
    std::pair<bool, std::int64_t> rank{(sequence.parts[next - 1] & optimizer_part) != 0 &&
                                           (sequence.parts[i] & optimizer_part) == 0,
                                       0};
    for (std::size_t j = next; j < found.end; j += found.period)
      rank.second += sequence.pauses_ns[j];
    if (rank > best_rank) {
      best_rank = rank;
      best = i;
    }
  }
  return best;
}

bool computes(const Kernel& kernel) {
  return kernel.kind != KernelClass::memcpy && kernel.kind != KernelClass::memset &&
         kernel.kind != KernelClass::communication;
}

// Where the steps of a device begin, and where the last one ends: shape [count + 1].
struct Boundaries {
  std::uint32_t stream = 0;
  std::vector<std::int64_t> starts_ns;  ///< on the GPU
  std::vector<std::int64_t> calls_ns;   ///< on the host; empty if a call is not known

  [[nodiscard]] std::size_t count() const { return starts_ns.size() - 1; }

  [[nodiscard]] std::optional<std::uint32_t> step_of(const CapturedLaunch& launch) const {
    const bool by_call = launch.stream != stream && launch.launch_ns && !calls_ns.empty();
    const auto& bounds = by_call ? calls_ns : starts_ns;
    const std::int64_t at_ns = by_call ? *launch.launch_ns : launch.start_ns;
    const auto next = std::ranges::upper_bound(bounds, at_ns);
    if (next == bounds.begin() || next == bounds.end()) return std::nullopt;
    return static_cast<std::uint32_t>(next - bounds.begin() - 1);
  }
};

std::optional<Boundaries> boundaries_of(const Capture& capture, std::uint32_t device) {
  std::vector<std::size_t> indices;
  const NameSequence sequence = name_sequence(capture, device, indices);
  const auto period = find_step_period(sequence);
  if (!period) return std::nullopt;
  Boundaries bounds;
  bounds.stream = capture.launches[indices[period->first]].stream;
  bool calls_known = true;
  for (std::size_t s = 0; s <= period->count; ++s) {
    const std::size_t at = period->first + s * period->period;
    if (at == indices.size()) {  // nothing follows the last step
      bounds.starts_ns.push_back(never_ns);
      bounds.calls_ns.push_back(never_ns);
      break;
    }
    const CapturedLaunch& launch = capture.launches[indices[at]];
    bounds.starts_ns.push_back(launch.start_ns);
    calls_known = calls_known && launch.launch_ns.has_value();
    bounds.calls_ns.push_back(launch.launch_ns.value_or(0));
  }
  if (!calls_known || !std::ranges::is_sorted(bounds.calls_ns)) bounds.calls_ns.clear();
  return bounds;
}

}  // namespace

std::optional<StepPeriod> find_step_period(const NameSequence& sequence) {
  std::vector<Repetition> found = all_repetitions(sequence.names);
  std::ranges::stable_sort(found, [](const Repetition& a, const Repetition& b) {
    return std::pair(b.end - b.first, a.period) < std::pair(a.end - a.first, b.period);
  });
  for (const Repetition& candidate : found) {
    if (2 * (candidate.end - candidate.first) < sequence.names.size()) break;
    if (can_be_steps(sequence, candidate))
      return StepPeriod{first_step(sequence, candidate), candidate.period, candidate.count()};
  }
  return std::nullopt;
}

NameSequence name_sequence(const Capture& capture, std::uint32_t device,
                           std::vector<std::size_t>& indices) {
  std::vector<std::int64_t> time_ns(capture.streams.size(), -1);
  const auto wanted = [&](const CapturedLaunch& launch) {
    return capture.streams[launch.stream].device == device &&
           computes(capture.kernels[index(launch.kernel)]);
  };
  for (const CapturedLaunch& launch : capture.launches) {
    if (wanted(launch)) time_ns[launch.stream] += launch.duration_ns;
  }
  const auto stream =
      static_cast<std::uint32_t>(std::ranges::max_element(time_ns) - time_ns.begin());
  std::unordered_map<std::string_view, std::uint32_t> names;
  NameSequence sequence;
  std::int64_t end_ns = 0;
  for (std::size_t i = 0; i < capture.launches.size(); ++i) {
    const CapturedLaunch& launch = capture.launches[i];
    if (launch.stream != stream || !wanted(launch)) continue;
    const Kernel& kernel = capture.kernels[index(launch.kernel)];
    sequence.names.push_back(
        names.emplace(kernel.label, static_cast<std::uint32_t>(names.size())).first->second);
    sequence.parts.push_back(part_of(launch.pass, kernel.kind));
    sequence.pauses_ns.push_back(indices.empty() ? 0 : pause_ns(end_ns, launch.start_ns));
    indices.push_back(i);
    end_ns = launch.end_ns();
  }
  return sequence;
}

void find_periodic_steps(Capture& capture) {
  if (!capture.steps.empty() || capture.launches.empty()) return;
  std::vector<std::uint64_t> launches(capture.devices.size(), 0);
  for (const CapturedLaunch& launch : capture.launches)
    ++launches[capture.streams[launch.stream].device];
  const auto main =
      static_cast<std::uint32_t>(std::ranges::max_element(launches) - launches.begin());
  const auto found = boundaries_of(capture, main);
  if (!found) return;
  // Another device has boundaries of its own if it repeats as often.
  std::vector<Boundaries> bounds(capture.devices.size(), *found);
  for (std::uint32_t device = 0; device < bounds.size(); ++device) {
    if (device == main) continue;
    auto own = boundaries_of(capture, device);
    if (own && own->count() == found->count()) bounds[device] = *std::move(own);
  }
  std::int64_t last_ns = 0;
  for (CapturedLaunch& launch : capture.launches) {
    launch.step = bounds[capture.streams[launch.stream].device].step_of(launch);
    last_ns = std::max(last_ns, launch.end_ns());
  }
  const auto& times_ns = found->calls_ns.empty() ? found->starts_ns : found->calls_ns;
  for (std::size_t s = 0; s < found->count(); ++s) {
    capture.steps.push_back(
        {fmt::format("found step {}", s), times_ns[s], std::min(times_ns[s + 1], last_ns)});
  }
  capture.step_source = StepSource::periodic;
}

}  // namespace rubato

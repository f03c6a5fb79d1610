#include "traces/capture_match.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/sort_by.hpp"
#include "common/statistics.hpp"

namespace rubato {

namespace {

constexpr std::ptrdiff_t most_differences = 4000;  // beyond, two captures are not of the same step

// For each diagonal k = x - y the furthest x that a path of d differences reaches. Diagonal k is at
// position offset + k, the offset being the largest d and one more.
using Furthest = std::vector<std::ptrdiff_t>;

// The furthest point of a path with one difference more that ends on diagonal k.
std::ptrdiff_t next_x(const Furthest& v, std::ptrdiff_t offset, std::ptrdiff_t d,
                      std::ptrdiff_t k) {
  const auto at = [&](std::ptrdiff_t i) { return v[static_cast<std::size_t>(offset + i)]; };
  const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
  return down ? at(k + 1) : at(k - 1) + 1;
}

// Durations of one position of the reference, one per step.
using Positions = std::vector<std::vector<double>>;

TypicalTime summarised(const std::vector<const std::vector<double>*>& positions) {
  TypicalTime typical;
  std::vector<double> deviations;
  for (const std::vector<double>* seen : positions) {
    const double middle = median(*seen);
    typical.time_s += middle / static_cast<double>(positions.size());
    typical.launches += seen->size();
    for (const double time_s : *seen) deviations.push_back(std::abs(time_s / middle - 1.0));
  }
  // 1.4826: of a Gaussian. One launch per position says nothing of its spread: then the usual 2 %.
  constexpr double sigma_per_median_deviation = 1.4826, usual = 0.02, least = 2e-3;
  const bool spread_known = typical.launches > positions.size();
  const double sigma =
      spread_known ? sigma_per_median_deviation * median(std::move(deviations)) : usual;
  typical.relative_error =
      std::hypot(least, std::max(sigma, least) / std::sqrt(static_cast<double>(typical.launches)));
  return typical;
}

// The launches of one step, on one stream, that the reference knows.
struct StepLaunches {
  std::vector<std::uint32_t> kernels;  ///< of the reference
  std::vector<double> time_s;
  std::vector<std::size_t> launches;  ///< index into Capture::launches
};

std::vector<StepLaunches> steps_of(const Capture& capture,
                                   const std::vector<std::optional<KernelId>>& same) {
  std::vector<double> time_s(capture.streams.size(), 0.0);
  for (const CapturedLaunch& launch : capture.launches) {
    if (same[index(launch.kernel)])
      time_s[launch.stream] += static_cast<double>(launch.duration_ns);
  }
  const auto stream = std::ranges::max_element(time_s) - time_s.begin();
  std::vector<StepLaunches> steps(std::max<std::size_t>(capture.steps.size(), 1));
  for (std::size_t i = 0; i < capture.launches.size(); ++i) {
    const CapturedLaunch& launch = capture.launches[i];
    const auto& kernel = same[index(launch.kernel)];
    if (launch.stream != stream || !kernel || launch.duration_ns <= 0) continue;
    if (!capture.steps.empty() && !launch.step) continue;
    StepLaunches& step = steps[launch.step.value_or(0)];
    step.kernels.push_back(kernel->value);
    step.time_s.push_back(1e-9 * static_cast<double>(launch.duration_ns));
    step.launches.push_back(i);
  }
  return steps;
}

}  // namespace

std::string kernel_key(const Kernel& kernel) {
  std::string key = kernel.label;
  if (const auto& l = kernel.launch)
    key += fmt::format("\n{} {}", fmt::join(l->grid, ","), fmt::join(l->block, ","));
  if (const auto& g = kernel.gemm) key += fmt::format("\n{} {} {} {}", g->m, g->n, g->k, g->batch);
  if (const auto& c = kernel.collective) key += fmt::format("\n{}", c->message_bytes);
  if (kernel.kind == KernelClass::memcpy) key += fmt::format("\n{}", kernel.dram_bytes.value_or(0));
  return key;
}

std::vector<std::optional<std::size_t>> matched_positions(std::span<const std::uint32_t> a,
                                                          std::span<const std::uint32_t> b) {
  const std::ptrdiff_t n = std::ssize(a), m = std::ssize(b);
  const std::ptrdiff_t most = std::min(n + m, most_differences), offset = most + 1;
  const auto equal = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    return a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)];
  };
  std::vector<std::optional<std::size_t>> matched(a.size());
  std::vector<Furthest> history;
  Furthest v(static_cast<std::size_t>(2 * most + 3), 0);
  std::ptrdiff_t d = 0;
  bool found = false;
  for (; d <= most && !found; ++d) {
    history.emplace_back(v.begin() + (offset - d - 1), v.begin() + (offset + d + 2));
    for (std::ptrdiff_t k = -d; k <= d && !found; k += 2) {
      std::ptrdiff_t x = next_x(v, offset, d, k);
      while (x < n && x - k < m && x - k >= 0 && equal(x, x - k)) ++x;
      v[static_cast<std::size_t>(offset + k)] = x;
      found = x >= n && x - k >= m;
    }
  }
  if (!found) return matched;
  std::ptrdiff_t x = n, y = m;
  for (std::ptrdiff_t back = d - 1; back >= 0; --back) {
    const Furthest& before = history[static_cast<std::size_t>(back)];
    const std::ptrdiff_t k = x - y, own = back + 1;
    const auto at = [&](std::ptrdiff_t i) { return before[static_cast<std::size_t>(own + i)]; };
    const bool down = k == -back || (k != back && at(k - 1) < at(k + 1));
    const std::ptrdiff_t start = next_x(before, own, back, k);
    while (x > start && y > start - k) {
      --x;
      --y;
      matched[static_cast<std::size_t>(x)] = static_cast<std::size_t>(y);
    }
    if (back > 0) (down ? y : x) -= 1;
  }
  return matched;
}

std::vector<std::optional<KernelId>> same_kernels(const Trace& reference, const Capture& capture) {
  std::unordered_map<std::string, KernelId> known;
  for (std::size_t k = 0; k < reference.kernels.size(); ++k)
    known.emplace(kernel_key(reference.kernels[k]), id_at<KernelId>(k));
  std::vector<std::optional<KernelId>> same;
  for (const Kernel& kernel : capture.kernels) {
    const auto found = known.find(kernel_key(kernel));
    same.push_back(found == known.end() ? std::nullopt : std::optional(found->second));
  }
  return same;
}

std::vector<std::optional<TypicalTime>> typical_times(const Trace& reference,
                                                      const Capture& capture) {
  std::vector<std::uint32_t> sequence;
  for (const KernelId kernel : launches(reference.segments)) sequence.push_back(kernel.value);
  Positions seen(sequence.size());
  for (const StepLaunches& step : steps_of(capture, same_kernels(reference, capture))) {
    const auto matched = matched_positions(sequence, step.kernels);
    for (std::size_t p = 0; p < matched.size(); ++p) {
      if (matched[p]) seen[p].push_back(step.time_s[*matched[p]]);
    }
  }
  std::vector<std::vector<const std::vector<double>*>> positions(reference.kernels.size());
  for (std::size_t p = 0; p < sequence.size(); ++p) {
    if (!seen[p].empty()) positions[sequence[p]].push_back(&seen[p]);
  }
  std::vector<std::optional<TypicalTime>> typical;
  for (const auto& of_kernel : positions)
    typical.push_back(of_kernel.empty() ? std::nullopt : std::optional(summarised(of_kernel)));
  return typical;
}

Capture with_lost_launches(const Trace& reference,
                           std::span<const std::optional<TypicalTime>> typical, Capture capture) {
  constexpr double least_of_usual = 0.8;
  const auto same = same_kernels(reference, capture);
  std::vector<std::optional<KernelId>> own(reference.kernels.size());
  for (std::size_t k = 0; k < same.size(); ++k) {
    if (same[k]) own[index(*same[k])] = id_at<KernelId>(k);
  }
  std::vector<std::uint32_t> sequence;
  for (const KernelId kernel : launches(reference.segments)) sequence.push_back(kernel.value);
  std::vector<CapturedLaunch> lost;
  for (const StepLaunches& step : steps_of(capture, same)) {
    const auto matched = matched_positions(sequence, step.kernels);
    const CapturedLaunch* before = nullptr;
    std::int64_t free_ns = 0;  // from here on nothing runs
    for (std::size_t p = 0; p < matched.size(); ++p) {
      if (matched[p]) {
        before = &capture.launches[step.launches[*matched[p]]];
        free_ns = before->end_ns();
        continue;
      }
      const auto next = std::find_if(matched.begin() + static_cast<std::ptrdiff_t>(p),
                                     matched.end(), [](const auto& m) { return m.has_value(); });
      const auto& time = typical[sequence[p]];
      const auto& kernel = own[sequence[p]];
      if (before == nullptr || next == matched.end() || !time || !kernel) continue;
      const std::int64_t end_ns = capture.launches[step.launches[**next]].start_ns;
      const auto usual_ns = std::llround(1e9 * time->time_s);
      if (static_cast<double>(end_ns - free_ns) < least_of_usual * static_cast<double>(usual_ns))
        continue;
      CapturedLaunch& put_back = lost.emplace_back(*before);
      put_back.kernel = *kernel;
      put_back.start_ns = free_ns;
      put_back.duration_ns = std::min<std::int64_t>(usual_ns, end_ns - free_ns);
      put_back.launch_ns.reset();
      put_back.call.reset();
      free_ns = put_back.end_ns();
    }
  }
  capture.launches.insert(capture.launches.end(), lost.begin(), lost.end());
  sort_by(capture.launches, &CapturedLaunch::start_ns);
  return capture;
}

}  // namespace rubato

#include "traces/repeats.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace rubato {

namespace {

// Polynomial hashes modulo the Mersenne prime 2^61 - 1.
constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  const std::uint64_t sum =
      static_cast<std::uint64_t>(product & prime) + static_cast<std::uint64_t>(product >> 61);
  return sum >= prime ? sum - prime : sum;
}

// How far parts of a sequence agree.
class Agreement {
 public:
  explicit Agreement(std::span<const std::uint32_t> symbols)
      : symbols_(symbols), hash_(symbols.size() + 1, 0), power_(symbols.size() + 1, 1) {
    constexpr std::uint64_t base = 0x1b873593cc9e2d51 % prime;  // any large number
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      hash_[i + 1] = times(hash_[i], base) + symbols[i] + 1;
      if (hash_[i + 1] >= prime) hash_[i + 1] -= prime;
      power_[i + 1] = times(power_[i], base);
    }
  }

  /// Symbols from a and from b on that are equal.
  [[nodiscard]] std::size_t forward(std::size_t a, std::size_t b) const {
    const std::size_t most = symbols_.size() - std::max(a, b);
    return longest(
        most, [&](std::size_t n) { return part(a, n) == part(b, n); },
        [&](std::size_t n) { return symbols_[a + n] == symbols_[b + n]; });
  }
  /// Symbols before a and before b that are equal.
  [[nodiscard]] std::size_t backward(std::size_t a, std::size_t b) const {
    const std::size_t most = std::min(a, b);
    return longest(
        most, [&](std::size_t n) { return part(a - n, n) == part(b - n, n); },
        [&](std::size_t n) { return symbols_[a - n - 1] == symbols_[b - n - 1]; });
  }

 private:
  [[nodiscard]] std::uint64_t part(std::size_t first, std::size_t count) const {
    const std::uint64_t before = times(hash_[first], power_[count]);
    return hash_[first + count] + (hash_[first + count] >= before ? 0 : prime) - before;
  }

  // The largest n with equal(n): a few symbols one by one, then steps that double, then halve.
  template <class Equal, class EqualAt>
  static std::size_t longest(std::size_t most, const Equal& equal, const EqualAt& equal_at) {
    constexpr std::size_t one_by_one = 8;
    std::size_t known = 0;
    for (; known < std::min(most, one_by_one); ++known) {
      if (!equal_at(known)) return known;
    }
    std::size_t step = one_by_one;
    while (known + step <= most && equal(known + step)) {
      known += step;
      step *= 2;
    }
    for (; step > 0; step /= 2) {
      if (known + step <= most && equal(known + step)) known += step;
    }
    return known;
  }

  std::span<const std::uint32_t> symbols_;
  std::vector<std::uint64_t> hash_, power_;
};

// The repetitions whose root is a Lyndon word under one of the two orders of symbols.
void add_repetitions(std::span<const std::uint32_t> symbols, const Agreement& agreement,
                     bool ascending, std::vector<Repetition>& out) {
  const std::size_t n = symbols.size();
  // Whether the suffix from a is smaller than that from b > a; the end is smaller than all symbols.
  const auto smaller = [&](std::size_t a, std::size_t b) {
    const std::size_t equal = agreement.forward(a, b);
    if (b + equal == n) return false;
    return (symbols[a + equal] < symbols[b + equal]) == ascending;
  };
  std::vector<std::size_t> next(n);  // where the next smaller suffix begins
  for (std::size_t i = n; i-- > 0;) {
    std::size_t j = i + 1;
    while (j < n && smaller(i, j)) j = next[j];
    next[i] = j;
    const std::size_t period = j - i;
    const std::size_t after = j < n ? agreement.forward(i, j) : 0;
    const std::size_t before = agreement.backward(i, j);
    if (before + period + after >= 2 * period) out.push_back({i - before, j + after, period});
  }
}

struct SavesLess {
  bool operator()(const Repetition& a, const Repetition& b) const {
    return std::tuple(a.saved(), b.period, b.first) < std::tuple(b.saved(), a.period, a.first);
  }
};

}  // namespace

std::vector<Repetition> all_repetitions(std::span<const std::uint32_t> symbols) {
  const Agreement agreement(symbols);
  std::vector<Repetition> found;
  add_repetitions(symbols, agreement, true, found);
  add_repetitions(symbols, agreement, false, found);
  std::ranges::sort(found, {},
                    [](const Repetition& r) { return std::tuple(r.first, r.end, r.period); });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<Repetition> best_repetitions(std::span<const std::uint32_t> symbols,
                                         std::size_t least_saved) {
  std::priority_queue<Repetition, std::vector<Repetition>, SavesLess> open;
  const auto offer = [&](const Repetition& found) {
    if (found.end >= found.first + 2 * found.period && found.saved() >= least_saved)
      open.push(found);
  };
  for (const Repetition& found : all_repetitions(symbols)) offer(found);
  // Repetitions taken are kept by their ends. One that overlaps them is cut into what is left.
  std::map<std::size_t, Repetition> taken;
  while (!open.empty()) {
    Repetition best = open.top();
    open.pop();
    auto other = taken.upper_bound(best.first);
    if (other == taken.end() || other->second.first >= best.end) {
      best.end = best.first + best.count() * best.period;
      taken.emplace(best.end, best);
      continue;
    }
    for (std::size_t from = best.first; from < best.end; ++other) {
      const bool last = other == taken.end() || other->second.first >= best.end;
      const std::size_t to = last ? best.end : std::max(from, other->second.first);
      offer({from, to, best.period});
      if (last) break;
      from = other->first;
    }
  }
  std::vector<Repetition> result;
  for (const auto& [end, repetition] : taken) result.push_back(repetition);
  return result;
}

}  // namespace rubato

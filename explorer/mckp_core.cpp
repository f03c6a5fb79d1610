#include "explorer/mckp_core.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "explorer/mckp_relaxation.hpp"

namespace rubato {

namespace {

// Doubles in place of 64-bit integers, where bounds are computed, lose at most 2^-53
// of the whole range per operation; 2^-46 leaves room for a sum over many steps.
constexpr double bound_rounding = 0x1p-46;

// Integer units: the sum of all changes stays below 2^60.
constexpr int integer_bits = 60;
constexpr double largest_integer = 0x1p60;

// x in integer units, clamped where no sum of changes gets to.
std::int64_t as_integer(double x, int exponent) {
  return std::llround(std::clamp(std::ldexp(x, exponent), -largest_integer, largest_integer));
}

// The core up to a gap, in integers: widest rows first.
struct IntegerCore {
  std::vector<IntegerRow> rows;
  int weight_exponent = 0;
  int cost_exponent = 0;
};

int exponent_for(double largest_sum) {
  if (largest_sum <= 0.0) return 0;
  int exponent = 0;
  (void)std::frexp(largest_sum, &exponent);
  return integer_bits - exponent;
}

IntegerCore integer_core(const Core& core, double gap) {
  std::size_t used = 0;
  double weight_sum = 0.0, cost_sum = 0.0;
  for (; used < core.rows.size() && core.rows[used].least_reduced <= gap; ++used) {
    double weight = 0.0, cost = 0.0;
    const CoreRow& row = core.rows[used];
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
      if (core.items[i].reduced > gap) continue;
      weight = std::max(weight, std::abs(core.items[i].weight));
      cost = std::max(cost, std::abs(core.items[i].cost));
    }
    weight_sum += weight;
    cost_sum += cost;
  }
  IntegerCore result{.rows = std::vector<IntegerRow>(used),
                     .weight_exponent = exponent_for(weight_sum),
                     .cost_exponent = exponent_for(cost_sum)};
  for (std::size_t r = 0; r < used; ++r) {
    const CoreRow& row = core.rows[r];
    result.rows[r].row = row.row;
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
      const CoreItem& item = core.items[i];
      if (item.reduced > gap) continue;
      result.rows[r].items.push_back({as_integer(item.weight, result.weight_exponent),
                                      as_integer(item.cost, result.cost_exponent), item.item});
    }
  }
  std::ranges::sort(result.rows, {},
                    [](const IntegerRow& row) { return std::pair(-row.spread(), row.row); });
  return result;
}

// A partial choice of one half.
struct State {
  std::int64_t weight = 0;
  std::int64_t cost = 0;
  std::uint32_t node = 0;  ///< its moves up to the row before
  std::uint32_t move = 0;  ///< 1 + position of the item in the row being added, 0 for none
};

// Bounds that both halves share.
struct Limits {
  double room = 0.0;  ///< integer units, margin included
  double cost = 0.0;  ///< no partial choice may be bound to end above it
  std::uint64_t max_states = 0;
};

// All undominated partial choices of some rows, by rising weight and falling cost.
class HalfList {
 public:
  explicit HalfList(const Limits& limits) : limits_(limits) {}

  /// @param rest  relaxation of the rows not in this list, which is to be completed by them
  void add_row(const IntegerRow& row, const Relaxation& rest) {
    std::vector<State> all = hopeful_states(rest);
    shifted_.clear();
    for (std::uint32_t i = 0; i < row.items.size(); ++i) shift(row.items[i], i + 1, rest);
    std::ranges::sort(shifted_, {},
                      [](const State& s) { return std::tuple(s.weight, s.cost, s.node, s.move); });
    merge(all);
    std::swap(all, merged_);
    tried_ += states_.size() * row.items.size();
    for (State& state : all) {
      if (state.move == 0) continue;
      nodes_.push_back({state.node, {row.row, row.items[state.move - 1].item}});
      state = {state.weight, state.cost, static_cast<std::uint32_t>(nodes_.size() - 1), 0};
    }
    std::swap(states_, all);
  }

  [[nodiscard]] bool too_long() const {
    return tried_ > limits_.max_states || nodes_.size() > limits_.max_states;
  }
  /// Least bound of a partial choice that was cut off.
  [[nodiscard]] double least_cut() const { return least_cut_; }
  [[nodiscard]] std::uint64_t tried() const { return tried_; }
  [[nodiscard]] const std::vector<State>& states() const { return states_; }

  void append_moves(const State& state, std::vector<CoreMove>& moves) const {
    for (std::uint32_t n = state.node; n != 0; n = nodes_[n].before)
      moves.push_back(nodes_[n].move);
  }

 private:
  struct Node {
    std::uint32_t before = 0;
    CoreMove move;
  };

  [[nodiscard]] std::vector<State> hopeful_states(const Relaxation& relaxation) {
    std::vector<State> kept;
    kept.reserve(states_.size());
    RelaxationCursor rest(relaxation);
    for (const State& s : states_) {
      const double bound = bound_of(s, rest);
      if (bound <= limits_.cost) {
        kept.push_back(s);
      } else {
        least_cut_ = std::min(least_cut_, bound);
      }
    }
    return kept;
  }

  // The states with one more item, as far as they may still lead somewhere.
  void shift(const IntegerItem& item, std::uint32_t move, const Relaxation& relaxation) {
    RelaxationCursor rest(relaxation);
    for (const State& s : states_) {
      const State next{s.weight + item.weight, s.cost + item.cost, s.node, move};
      const double bound = bound_of(next, rest);
      if (bound <= limits_.cost) {
        shifted_.push_back(next);
      } else {
        least_cut_ = std::min(least_cut_, bound);
      }
    }
  }

  [[nodiscard]] double bound_of(const State& s, RelaxationCursor& rest) const {
    return static_cast<double>(s.cost) +
           rest.least_cost(limits_.room - static_cast<double>(s.weight));
  }

  // Front of `all` and the shifted states, into merged_. Of equals the former stay.
  void merge(const std::vector<State>& all) {
    merged_.clear();
    const auto keep = [this](const State& s) {
      if (merged_.empty() || s.cost < merged_.back().cost) merged_.push_back(s);
    };
    auto a = all.begin();
    for (const State& b : shifted_) {
      while (a != all.end() && std::pair(a->weight, a->cost) <= std::pair(b.weight, b.cost))
        keep(*a++);
      keep(b);
    }
    std::for_each(a, all.end(), keep);
  }

  const Limits& limits_;
  std::vector<State> states_{State{}};
  std::vector<State> shifted_, merged_;
  std::vector<Node> nodes_{Node{}};  ///< node 0 is no move at all
  double least_cut_ = std::numeric_limits<double>::infinity();
  std::uint64_t tried_ = 0;
};

// Best pair of partial choices within the room.
class Pairing {
 public:
  Pairing(const HalfList& a, const HalfList& b, const CoreQuestion& question,
          const IntegerCore& numbers)
      : a_(a), b_(b), question_(question) {
    // Half a unit of rounding per row, and one for the room itself.
    const std::int64_t margin = as_integer(question.room_margin, numbers.weight_exponent) +
                                static_cast<std::int64_t>(numbers.rows.size() / 2 + 1);
    const std::int64_t room = as_integer(question.room, numbers.weight_exponent);
    surely_ = room - margin;
    at_most_ = room + margin;
  }

  void run() {
    const std::vector<State>& b = b_.states();
    std::size_t end = b.size();
    for (const State& s : a_.states()) {
      while (end > 0 && s.weight + b[end - 1].weight > at_most_) --end;
      // Costs of b fall with weight: the heaviest that fits is the cheapest.
      for (std::size_t i = end; i-- > 0 && (!found_ || s.cost + b[i].cost < cost_);) {
        if (take(s, b[i])) break;
      }
    }
  }

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] std::int64_t cost() const { return cost_; }
  [[nodiscard]] const std::vector<CoreMove>& moves() const { return moves_; }

 private:
  bool take(const State& a, const State& b) {
    std::vector<CoreMove> moves;
    a_.append_moves(a, moves);
    b_.append_moves(b, moves);
    if (a.weight + b.weight > surely_ && !question_.fits(moves)) return false;
    found_ = true;
    cost_ = a.cost + b.cost;
    moves_ = std::move(moves);
    return true;
  }

  const HalfList& a_;
  const HalfList& b_;
  const CoreQuestion& question_;
  std::int64_t surely_ = 0;
  std::int64_t at_most_ = 0;
  bool found_ = false;
  std::int64_t cost_ = 0;
  std::vector<CoreMove> moves_;
};

}  // namespace

struct CoreSearch::Numbers {
  IntegerCore core;
  RowHulls hulls;
};

CoreSearch::CoreSearch(const Core& core, double item_gap) : item_gap_(item_gap) {
  IntegerCore numbers = integer_core(core, item_gap);
  RowHulls hulls(numbers.rows);
  numbers_ = std::make_unique<const Numbers>(Numbers{std::move(numbers), std::move(hulls)});
}

CoreSearch::~CoreSearch() = default;

CoreAnswer CoreSearch::run(const CoreQuestion& question, const RunContext& context) const {
  const IntegerCore& core = numbers_->core;
  const std::size_t rows = core.rows.size();
  const double margin =
      std::ldexp(question.room_margin, core.weight_exponent) + static_cast<double>(rows);
  const Limits limits{
      .room = std::min(std::ldexp(question.room, core.weight_exponent), largest_integer) + margin,
      .cost = std::ldexp(question.gap - question.price * question.room, core.cost_exponent) +
              bound_rounding * largest_integer,
      .max_states = question.max_states / 2};
  CoreAnswer answer;
  HalfList a(limits), b(limits);
  // Wide rows from one end, narrow ones from the other; the shorter list grows.
  // Where there are many rows, a relaxation serves several of them.
  const std::size_t stride = 1 + rows / 128;
  RunRelaxation rest_of_a(numbers_->hulls, stride), rest_of_b(numbers_->hulls, stride);
  for (std::size_t from = 0, to = rows; from < to && !a.states().empty() && !b.states().empty();) {
    if (a.states().size() <= b.states().size()) {
      a.add_row(core.rows[from], rest_of_a.at_least(from + 1, rows));
      ++from;
    } else {
      --to;
      b.add_row(core.rows[to], rest_of_b.at_least(0, to));
    }
    answer.states = a.tried() + b.tried();
    if (a.too_long() || b.too_long() || context.stop_requested()) return answer;
  }
  Pairing pairs(a, b, question, core);
  pairs.run();
  answer.complete = true;
  // Integers of the range lose bound_rounding of it as doubles, here as in the limit.
  const double cut = std::min(a.least_cut(), b.least_cut()) - bound_rounding * largest_integer;
  answer.excluded =
      std::clamp(std::ldexp(cut, -core.cost_exponent) + question.price * question.room,
                 question.gap, std::max(item_gap_, question.gap));
  answer.found = pairs.found();
  answer.moves = pairs.moves();
  answer.excess = std::ldexp(static_cast<double>(pairs.cost()), -core.cost_exponent) +
                  question.price * question.room;
  return answer;
}

}  // namespace rubato

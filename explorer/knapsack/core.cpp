#include "explorer/knapsack/core.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "explorer/knapsack/costs_below.hpp"
#include "explorer/knapsack/relaxation.hpp"

namespace rubato {

namespace {

// Doubles in place of 64-bit integers, where bounds are computed, lose at most 2^-53
// of the whole range per operation; 2^-46 leaves room for a sum over many steps.
constexpr double bound_rounding = 0x1p-46;

// Integer units: the sum of all changes stays below 2^60.
constexpr int integer_bits = 60;
constexpr double largest_integer = 0x1p60;

// Turns doubles into integers by a factor. The factor is a power of two, so that only the rounding
// to integers loses digits.
class Scale {
 public:
  explicit Scale(double largest_sum) {
    if (largest_sum <= 0.0) return;
    int exponent = 0;
    (void)std::frexp(largest_sum, &exponent);
    // Sums too small for a factor to exist have less than 60 bits anyway.
    constexpr int largest_exponent = std::numeric_limits<double>::max_exponent - 1;
    exponent_ = std::min(integer_bits - exponent, largest_exponent);
    factor_ = std::ldexp(1.0, exponent_);
  }

  [[nodiscard]] double scaled(double x) const { return x * factor_; }
  /// Clamped to a range that no sum of changes leaves.
  [[nodiscard]] std::int64_t integer(double x) const {
    return std::lrint(std::clamp(scaled(x), -largest_integer, largest_integer));
  }
  [[nodiscard]] double unscaled(double x) const { return std::ldexp(x, -exponent_); }

 private:
  int exponent_ = 0;
  double factor_ = 1.0;
};

// The core up to a gap, in integers: rows of the largest spread of weight first.
struct IntegerCore {
  std::vector<IntegerRow> rows;
  Scale weight_scale, cost_scale;
};

IntegerCore integer_core(const Core& core, double gap) {
  std::vector<std::span<const CoreItem>> rows;
  double weight_sum = 0.0, cost_sum = 0.0;
  for (const CoreRow& row : core.rows) {
    if (row.least_reduced > gap) break;
    double weight = 0.0, cost = 0.0;
    rows.push_back(std::span(core.items).subspan(row.first, row.count));
    for (const CoreItem& item : rows.back()) {
      if (item.reduced > gap) continue;
      weight = std::max(weight, std::abs(item.weight));
      cost = std::max(cost, std::abs(item.cost));
    }
    weight_sum += weight;
    cost_sum += cost;
  }
  IntegerCore result{.rows = {}, .weight_scale = Scale(weight_sum), .cost_scale = Scale(cost_sum)};
  result.rows.reserve(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    IntegerRow made{.row = core.rows[r].row, .items = {}};
    made.items.reserve(rows[r].size());
    for (const CoreItem& item : rows[r]) {
      if (item.reduced > gap) continue;
      made.items.push_back({result.weight_scale.integer(item.weight),
                            result.cost_scale.integer(item.cost), item.item});
    }
    if (made.items.empty()) continue;
    const auto [least, most] = std::ranges::minmax(made.items, {}, &IntegerItem::weight);
    made.spread = std::max(most.weight, std::int64_t{0}) - std::min(least.weight, std::int64_t{0});
    result.rows.push_back(std::move(made));
  }
  std::ranges::sort(result.rows, {},
                    [](const IntegerRow& row) { return std::pair(-row.spread, row.row); });
  return result;
}

// A partial choice of one half.
struct State {
  std::int64_t weight = 0;
  std::int64_t cost = 0;
  std::uint32_t node = 0;  ///< its last move before the row being added; 0 for none
  std::uint32_t move = 0;  ///< 1 + position of the item in the row being added, 0 for none
};

// Bounds that both halves share.
struct Limits {
  double room = 0.0;   ///< integer units, margin included
  double doubt = 0.0;  ///< within so much of the room rounding decides what fits
  double cost = 0.0;   ///< a partial choice is cut off if its bound is above this
  std::uint64_t max_states = 0;

  /// A whole choice is known that surely fits. Its cost is rounded, and so are the bounds that are
  /// compared to it: hence twice the rounding.
  void known(double choice_cost) {
    cost = std::min(cost, choice_cost + 2.0 * bound_rounding * largest_integer);
  }
};

// All undominated partial choices of some rows, by rising weight and falling cost.
class HalfList {
 public:
  explicit HalfList(Limits& limits) : limits_(limits) {}

  /// @param rest  relaxation of the rows not in this list, which complete its partial choices
  void add_row(const IntegerRow& row, RestCurve& rest) {
    begin_costs(row);
    runs_.assign(1, 0);
    for (std::uint32_t i = 0; i <= row.items.size(); ++i)
      shift(i == 0 ? IntegerItem{} : row.items[i - 1], i, rest);
    if (runs_.size() > 2 && costs_.useful()) drop_dominated();
    while (runs_.size() > 2) merge_runs();
    tried_ += count_ * row.items.size();
    count_ = runs_.back();
    add_nodes(row);
    std::swap(states_, shifted_);
  }

  [[nodiscard]] bool too_long() const {
    return tried_ > limits_.max_states || nodes_ > limits_.max_states;
  }
  /// Least bound of a partial choice that was cut off.
  [[nodiscard]] double least_cut() const { return least_cut_; }
  [[nodiscard]] std::uint64_t tried() const { return tried_; }
  [[nodiscard]] std::span<const State> states() const { return std::span(states_).first(count_); }

  void append_moves(const State& state, std::vector<CoreMove>& moves) const {
    auto block = blocks_.rbegin();
    for (std::uint32_t n = state.node; n != 0;) {
      while (block->first > n) ++block;
      const Node& node = block->nodes[n - block->first];
      moves.push_back({block->row, node.item});
      n = node.before;
    }
  }

 private:
  struct Node {
    std::uint32_t before = 0;
    std::uint32_t item = 0;
  };
  // Moves of one row, in the states that were left when the row was added.
  struct Block {
    std::uint32_t row = 0, first = 0;  ///< number of its first node
    std::vector<Node> nodes;
  };

  void begin_costs(const IntegerRow& row) {
    if (count_ == 0) return;
    std::int64_t least = 0, most = 0;
    for (const IntegerItem& item : row.items) {
      least = std::min(least, item.weight);
      most = std::max(most, item.weight);
    }
    costs_.begin(states_.front().weight + least, states_[count_ - 1].weight + most, count_);
  }

  // Appends a run: the states with one more item. Left out are those whose bound is above the limit
  // and those that earlier runs are seen to dominate.
  void shift(const IntegerItem& item, std::uint32_t move, RestCurve& rest) {
    std::size_t end = runs_.back();
    if (shifted_.size() < end + count_) shifted_.resize(end + count_);
    for (const State& s : states()) {
      const State next{s.weight + item.weight, s.cost + item.cost, s.node, move};
      const double room = limits_.room - static_cast<double>(next.weight);
      const double cost = static_cast<double>(next.cost), bound = cost + rest.least_cost(room);
      if (bound <= limits_.cost) {
        shifted_[end] = next;
        end += static_cast<std::size_t>(costs_.takes(next.weight, next.cost));
        costs_.see(next.weight, next.cost);
        if (rest.exact() && rest.reached().weight <= room - limits_.doubt)
          limits_.known(cost + rest.reached().cost);
      } else {
        least_cut_ = std::min(least_cut_, bound);
      }
    }
    costs_.settle();
    if (end > runs_.back()) runs_.push_back(end);
  }

  // Drops what states of later runs are seen to dominate.
  void drop_dominated() {
    std::size_t end = 0, begin = 0, kept = 1;
    for (std::size_t r = 1; r < runs_.size(); ++r) {
      for (std::size_t i = begin; i < runs_[r]; ++i) {
        shifted_[end] = shifted_[i];
        end += static_cast<std::size_t>(costs_.takes(shifted_[i].weight, shifted_[i].cost));
      }
      begin = runs_[r];
      if (end > runs_[kept - 1]) runs_[kept++] = end;
    }
    runs_.resize(kept);
  }

  // Merges runs in pairs, each by rising weight and falling cost. Of a pair the Pareto front stays.
  void merge_runs() {
    if (merged_.size() < runs_.back()) merged_.resize(runs_.back());
    std::size_t end = 0, kept = 1;
    for (std::size_t r = 1; r < runs_.size(); r += 2) {
      const std::size_t last = runs_[std::min(r + 1, runs_.size() - 1)];
      end = merge(std::span(shifted_).subspan(runs_[r - 1], runs_[r] - runs_[r - 1]),
                  std::span(shifted_).subspan(runs_[r], last - runs_[r]), end);
      runs_[kept++] = end;
    }
    runs_.resize(kept);
    std::swap(shifted_, merged_);
  }

  // Writes into merged_ from `end` on and returns the new end. Of equal states that of `a` stays.
  std::size_t merge(std::span<const State> a, std::span<const State> b, std::size_t end) {
    std::int64_t least_cost = std::numeric_limits<std::int64_t>::max();
    const auto keep = [&](const State& s) {
      merged_[end] = s;
      end += static_cast<std::size_t>(s.cost < least_cost);
      least_cost = std::min(least_cost, s.cost);
    };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      const bool second =
          b[j].weight != a[i].weight ? b[j].weight < a[i].weight : b[j].cost < a[i].cost;
      keep(second ? b[j] : a[i]);
      i += static_cast<std::size_t>(!second);
      j += static_cast<std::size_t>(second);
    }
    for (; i < a.size(); ++i) keep(a[i]);
    for (; j < b.size(); ++j) keep(b[j]);
    return end;
  }

  // Records the moves of the states that move the row.
  void add_nodes(const IntegerRow& row) {
    const std::span<State> states = std::span(shifted_).first(count_);
    Block block{.row = row.row, .first = static_cast<std::uint32_t>(nodes_), .nodes = {}};
    block.nodes.reserve(static_cast<std::size_t>(
        std::ranges::count_if(states, [](const State& state) { return state.move != 0; })));
    for (State& state : states) {
      if (state.move == 0) continue;
      block.nodes.push_back({state.node, row.items[state.move - 1].item});
      state = {state.weight, state.cost, static_cast<std::uint32_t>(nodes_++), 0};
    }
    if (!block.nodes.empty()) blocks_.push_back(std::move(block));
  }

  Limits& limits_;
  // All three have room to grow: of states_ the first count_ are in use.
  std::vector<State> states_{State{}}, shifted_, merged_;
  std::size_t count_ = 1;
  std::vector<std::size_t> runs_;  ///< where the states of each item begin and end in shifted_
  CostsBelow costs_;
  std::vector<Block> blocks_;
  std::uint64_t nodes_ = 1;  ///< node 0 is no move at all
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
    const std::int64_t margin = numbers.weight_scale.integer(question.room_margin) +
                                static_cast<std::int64_t>(numbers.rows.size() / 2 + 1);
    const std::int64_t room = numbers.weight_scale.integer(question.room);
    surely_ = room - margin;
    at_most_ = room + margin;
  }

  void run() {
    const std::span<const State> b = b_.states();
    std::size_t end = b.size();
    for (const State& s : a_.states()) {
      while (end > 0 && s.weight + b[end - 1].weight > at_most_) --end;
      // In b costs fall as weights rise: the heaviest state that fits is the cheapest.
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
  const double margin = core.weight_scale.scaled(question.room_margin) + static_cast<double>(rows);
  Limits limits{.room = std::min(core.weight_scale.scaled(question.room), largest_integer) + margin,
                .doubt = 2.0 * margin + bound_rounding * largest_integer,
                .cost = core.cost_scale.scaled(question.gap - question.price * question.room) +
                        bound_rounding * largest_integer,
                .max_states = question.max_states / 2};
  CoreAnswer answer;
  HalfList a(limits), b(limits);
  // List a takes the widest row left, b the narrowest; the shorter list grows.
  // Where there are many rows, a relaxation serves several of them.
  const std::size_t stride = 1 + rows / 128;
  RestCurve rest_of_a(numbers_->hulls, stride), rest_of_b(numbers_->hulls, stride);
  for (std::size_t from = 0, to = rows; from < to && !a.states().empty() && !b.states().empty();) {
    if (a.states().size() <= b.states().size()) {
      const IntegerRow& row = core.rows[from++];
      rest_of_a.shrink_to(from, rows);
      a.add_row(row, rest_of_a);
    } else {
      const IntegerRow& row = core.rows[--to];
      rest_of_b.shrink_to(0, to);
      b.add_row(row, rest_of_b);
    }
    answer.states = a.tried() + b.tried();
    if (a.too_long() || b.too_long() || context.stop_requested()) return answer;
  }
  Pairing pairs(a, b, question, core);
  pairs.run();
  answer.complete = true;
  // The bounds are doubles: they may be off by bound_rounding of the range, as in limits.cost.
  const double cut = std::min(a.least_cut(), b.least_cut()) - bound_rounding * largest_integer;
  answer.excluded = std::clamp(core.cost_scale.unscaled(cut) + question.price * question.room,
                               question.gap, std::max(item_gap_, question.gap));
  answer.found = pairs.found();
  answer.moves = pairs.moves();
  answer.excess =
      core.cost_scale.unscaled(static_cast<double>(pairs.cost())) + question.price * question.room;
  return answer;
}

}  // namespace rubato

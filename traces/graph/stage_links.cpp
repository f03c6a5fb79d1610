#include "traces/graph/stage_links.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "traces/graph/rank_join.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

namespace {

// One step of those ranks that have it.
struct StepOfRanks {
  std::vector<Capture> captures;
  std::vector<std::size_t> rank;  // into the captures of the pipeline
};

class LinkFinder {
 public:
  LinkFinder(std::span<const Capture> captures, const CapturedPipeline& pipeline)
      : captures_(captures), pipeline_(pipeline), ready_(captures.size()) {}

  // Steps one by one: some files count the time of each anew.
  StageLinks find() && {
    StageLinks links;
    std::optional<std::string> failure;
    for (const CapturedStep& step : captures_.front().steps) {
      try {
        add_step(ranks_with(step.name));
      } catch (const DataError& error) {
        failure = error.what();
      }
    }
    if (!transfers_s_.empty()) {
      links.transfer_s = median(std::move(transfers_s_));
    } else {
      links.notes.push_back("transfers are taken to need no time" +
                            (failure ? fmt::format(", since ranks cannot be joined: {}", *failure)
                                     : std::string(": no step has one that a stage waited for")));
    }
    std::vector<double> holds_s = holds_after(links.transfer_s);
    if (!holds_s.empty()) links.hold_s = median(std::move(holds_s));
    return links;
  }

 private:
  // When the last of what a pass needs was sent, ns on the clock of the pass's rank.
  using ReadyTimes = std::map<const CapturedPass*, std::int64_t>;
  static constexpr std::int64_t long_before_ns = std::numeric_limits<std::int64_t>::min();

  [[nodiscard]] StepOfRanks ranks_with(const std::string& step) const {
    StepOfRanks ranks;
    for (std::size_t r = 0; r < captures_.size(); ++r) {
      const Capture& capture = captures_[r];
      if (std::ranges::find(capture.steps, step, &CapturedStep::name) == capture.steps.end())
        continue;
      ranks.captures.push_back(only_step(capture, step));
      ranks.rank.push_back(r);
    }
    return ranks;
  }

  // Looks at the pipeline's groups only: ranks send and receive for other reasons too.
  void add_step(const StepOfRanks& ranks) {
    const JoinedRanks joined = join_ranks(ranks.captures);
    const std::vector<PipelineMessages> messages(ranks.captures.begin(), ranks.captures.end());
    const auto of_pipeline = [&](const CollectiveMember& member) {
      return messages[member.capture].has(ranks.captures[member.capture].launches[member.launch]);
    };
    for (const JoinedCollective& one : joined.collectives) {
      if (!std::ranges::all_of(one.members, of_pipeline)) continue;
      transfers_s_.push_back(s_per_ns * static_cast<double>(one.transfer_ns()));
      for (const CollectiveMember& member : one.members) {
        const bool came_last = &member == &one.members[one.last];
        const std::int64_t offset_ns = joined.offset_ns[member.capture];
        (void)add_arrival(ranks.rank[member.capture], member.end_ns - offset_ns,
                          came_last ? long_before_ns : one.last_start_ns() - offset_ns);
      }
    }
    for (const JoinedMessage& one : joined.messages) {
      if (!of_pipeline(one.to)) continue;
      const std::int64_t offset_ns = joined.offset_ns[one.to.capture];
      if (add_arrival(ranks.rank[one.to.capture], one.to.start_ns - offset_ns,
                      one.from.end_ns - offset_ns))
        transfers_s_.push_back(s_per_ns * static_cast<double>(one.to.start_ns - one.from.end_ns));
    }
  }

  // Returns whether the receiver had ended its pass before something was sent to it.
  bool add_arrival(std::size_t rank, std::int64_t arrived_ns, std::int64_t sent_ns) {
    const std::vector<CapturedPass>& passes = pipeline_.ranks[rank].passes;
    const auto next = std::ranges::lower_bound(passes, arrived_ns, {}, &CapturedPass::start_ns);
    if (next == passes.begin() || next == passes.end()) return false;
    if (std::prev(next)->step != next->step) return false;
    auto& ready_ns = ready_[rank].try_emplace(&*next, sent_ns).first->second;
    ready_ns = std::max(ready_ns, sent_ns);
    return std::prev(next)->end_ns < sent_ns;
  }

  // Between passes of which the second one waited for nothing.
  [[nodiscard]] std::vector<double> holds_after(double transfer_s) const {
    const auto transfer_ns = static_cast<std::int64_t>(transfer_s / s_per_ns);
    std::vector<double> holds_s;
    for (std::size_t r = 0; r < captures_.size(); ++r) {
      const std::vector<CapturedPass>& passes = pipeline_.ranks[r].passes;
      for (std::size_t i = 1; i < passes.size(); ++i) {
        const CapturedPass &before = passes[i - 1], &pass = passes[i];
        const auto ready = ready_[r].find(&pass);
        if (before.step != pass.step || ready == ready_[r].end()) continue;
        if (ready->second == long_before_ns || ready->second + transfer_ns <= before.end_ns)
          holds_s.push_back(s_per_ns * static_cast<double>(pass.start_ns - before.end_ns));
      }
    }
    return holds_s;
  }

  std::span<const Capture> captures_;
  const CapturedPipeline& pipeline_;
  std::vector<ReadyTimes> ready_;  // shape [captures]
  std::vector<double> transfers_s_;
};

}  // namespace

StageLinks find_stage_links(std::span<const Capture> captures, const CapturedPipeline& pipeline) {
  return LinkFinder(captures, pipeline).find();
}

}  // namespace rubato

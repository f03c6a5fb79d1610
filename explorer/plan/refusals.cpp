#include "explorer/plan/refusals.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "common/error.hpp"

namespace rubato {

namespace {

struct Refusal {
  std::optional<RunKind> kind;  // nothing: of each
  bool (*is_asked)(const Question&);
  std::string_view because, hint = {};
};

template <Granularity... units>
bool asks_for(const Question& question) {
  return ((question.granularity == units) || ...);
}

bool has_no_slack(const Question& question) { return !allowed_frac(question); }

constexpr std::array refusals{
    Refusal{{},
            [](const Question& question) {
              return question.granularity == Granularity::segment &&
                     question.aggregation == Aggregation::local;
            },
            "granularity 'segment' has no plans of local aggregation: neighbours share a change of "
            "clock, so no launch can meet the limit by itself"},
    Refusal{RunKind::trace, asks_for<Granularity::stage>, "a trace of one GPU has no stages",
            "granularity run has one clock for all of it"},
    Refusal{RunKind::trace, asks_for<Granularity::launch>,
            "a trace holds how often a kernel is launched, and all its launches are alike",
            "granularity kernel, or segment"},
    Refusal{RunKind::trace,
            [](const Question& question) {
              return question.granularity == Granularity::segment && has_no_slack(question);
            },
            "granularity 'segment' plans for goal 'strict_waste' or 'relaxed_waste' only: its "
            "search is for a time"},
    Refusal{RunKind::capture, asks_for<Granularity::stage>,
            "captures do not say which ranks form a stage", "granularity gpu has a clock for each"},
    Refusal{RunKind::capture,
            [](const Question& question) {
              const auto* waste = std::get_if<LeastWaste>(&question.goal);
              return waste != nullptr && waste->tolerance_frac != 0.0;
            },
            "captured runs have no tolerance: all changes are against the same replay",
            "add it to the slack"},
    Refusal{RunKind::stages,
            [](const Question& question) {
              return asks_for<Granularity::launch, Granularity::segment>(question);
            },
            "stages have no plans per launch or segment: a stage that waits for others changes its "
            "clock from pass to pass",
            "granularity pass, switches counted"},
    Refusal{RunKind::stages,
            [](const Question& question) { return question.aggregation == Aggregation::local; },
            "pipelines have no plans of local aggregation: what a pass may take follows from the "
            "passes that wait for it"},
};

// Null: it is answered.
const Refusal* refusal_of(RunKind kind, const Question& question) {
  const auto refuses = [&](const Refusal& one) {
    return one.kind.value_or(kind) == kind && one.is_asked(question);
  };
  const auto found = std::ranges::find_if(refusals, refuses);
  return found == refusals.end() ? nullptr : &*found;
}

}  // namespace

bool is_answerable(RunKind kind, const Question& question) {
  return refusal_of(kind, question) == nullptr;
}

void refuse_unanswerable(RunKind kind, const Question& question) {
  if (const Refusal* one = refusal_of(kind, question))
    throw UsageError(std::string(one->because), {.in = {}, .hint = std::string(one->hint)});
}

}  // namespace rubato

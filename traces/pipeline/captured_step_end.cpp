#include "traces/pipeline/captured_step_end.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace rubato {

namespace {

// What ends a step, as launched.
struct StepEnd {
  std::int64_t last_pass_ns = 0;
  // Launches by start. `collectives` holds those of all kinds, messages too.
  std::vector<std::uint32_t> reductions, embeddings, unknown, optimizer, collectives;
};

class StepEndFinder {
 public:
  StepEndFinder(const Capture& capture, const CapturedStage& stage)
      : capture_(capture),
        stage_(stage),
        messages_(capture),
        pipeline_(pipeline_group(capture)),
        in_pass_(capture.launches.size(), false) {
    for (const CapturedPass& pass : stage.passes) {
      StepEnd& end = ends_[pass.step];
      end.last_pass_ns = std::max(end.last_pass_ns, pass.end_ns);
      for (const std::uint32_t launch : pass.launches) in_pass_[launch] = true;
    }
    for (std::uint32_t i = 0; i < capture.launches.size(); ++i) add(i);
  }

  [[nodiscard]] CapturedStepEnds find() {
    CapturedStepEnds found;
    for (auto& [step, end] : ends_) {
      for (auto* list :
           {&end.reductions, &end.embeddings, &end.unknown, &end.optimizer, &end.collectives})
        std::ranges::stable_sort(*list, {},
                                 [&](std::uint32_t i) { return capture_.launches[i].start_ns; });
      std::int64_t reduced_ns = end.last_pass_ns;
      if (!end.reductions.empty())
        found.passes.push_back(
            reduction(PassKind::all_reduce, step, end.last_pass_ns, end.reductions));
      for (const std::uint32_t i : end.reductions)
        reduced_ns = std::max(reduced_ns, capture_.launches[i].end_ns());
      if (!end.embeddings.empty())
        found.passes.push_back(
            reduction(PassKind::embedding_all_reduce, step, reduced_ns, end.embeddings));
      if (!end.optimizer.empty()) found.passes.push_back(optimizer(step, end));
      found.unknown_s += s_per_ns * static_cast<double>(after_ns(end.last_pass_ns, end.unknown));
    }
    if (!ends_.empty()) found.unknown_s /= static_cast<double>(ends_.size());
    return found;
  }

 private:
  void add(std::uint32_t i) {
    const CapturedLaunch& launch = capture_.launches[i];
    const auto end = ends_.find(launch.step.value_or(0));
    if (end == ends_.end() || (in_pass_[i] && !launch.collective)) return;
    const bool computes = capture_.kernels[index(launch.kernel)].kind != KernelClass::communication;
    if (launch.collective || !computes) end->second.collectives.push_back(i);
    if (launch.collective && !messages_.has(launch)) {
      if (ties_embeddings(launch)) {
        end->second.embeddings.push_back(i);
        return;
      }
      const std::optional<bool> within = within_stage(launch);
      if (within.value_or(true))
        (within ? end->second.reductions : end->second.unknown).push_back(i);
    }
    if (computes && launch.pass == Pass::optimizer && launch.stream == stage_.main_stream)
      end->second.optimizer.push_back(i);
  }

  [[nodiscard]] static std::string words_of(const CaptureGroup& group) {
    std::string text = group.name + ' ' + group.description;
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }

  // Whether a collective reduces tied embeddings. Of two stages the first and the last rank are all
  // there are: there only the name tells. Embeddings of positions are the first stage's alone.
  [[nodiscard]] bool ties_embeddings(const CapturedLaunch& launch) const {
    const CapturedCollective& collective = capture_.collectives[*launch.collective];
    if (collective.kind != CollectiveKind::all_reduce || !collective.group) return false;
    const CaptureGroup& group = capture_.groups[*collective.group];
    const std::string words = words_of(group);
    if (words.find("embedding") != std::string::npos)
      return words.find("position") == std::string::npos;
    if (pipeline_ == nullptr || pipeline_->ranks.size() < 3 || group.ranks.size() != 2)
      return false;
    const auto has = [&](std::uint32_t rank) {
      return std::ranges::find(group.ranks, rank) != group.ranks.end();
    };
    return has(pipeline_->ranks.front()) && has(pipeline_->ranks.back());
  }

  // Whether a collective is among ranks of one stage; nothing if neither ranks nor name of the
  // group say it.
  [[nodiscard]] std::optional<bool> within_stage(const CapturedLaunch& launch) const {
    const CapturedCollective& collective = capture_.collectives[*launch.collective];
    if (collective.kind == CollectiveKind::send_recv) return false;
    if (!collective.group) return std::nullopt;
    const CaptureGroup& group = capture_.groups[*collective.group];
    if (!group.ranks.empty() && pipeline_ != nullptr && pipeline_->ranks.size() > 1) {
      return std::ranges::none_of(group.ranks, [&](std::uint32_t rank) {
        return capture_.rank != rank &&
               std::ranges::find(pipeline_->ranks, rank) != pipeline_->ranks.end();
      });
    }
    const std::string text = words_of(group);
    if (text.find("data") != std::string::npos) return true;
    if (text.find("pipeline") != std::string::npos) return false;
    return std::nullopt;
  }

  // How long any of some launches, by start, runs after a moment.
  [[nodiscard]] std::int64_t after_ns(std::int64_t moment_ns,
                                      const std::vector<std::uint32_t>& launches) const {
    std::int64_t total_ns = 0, until_ns = moment_ns;
    for (const std::uint32_t i : launches) {
      const CapturedLaunch& launch = capture_.launches[i];
      const std::int64_t from_ns = std::max(launch.start_ns, until_ns);
      total_ns += std::max<std::int64_t>(0, launch.end_ns() - from_ns);
      until_ns = std::max(until_ns, launch.end_ns());
    }
    return total_ns;
  }

  [[nodiscard]] CapturedPass reduction(PassKind kind, std::uint32_t step, std::int64_t at_ns,
                                       const std::vector<std::uint32_t>& launches) const {
    const std::int64_t time_ns = after_ns(at_ns, launches);
    CapturedPass pass{kind, step, 0, at_ns, at_ns + std::max<std::int64_t>(time_ns, 1), {}};
    std::ranges::copy_if(launches, std::back_inserter(pass.launches),
                         [&](std::uint32_t i) { return !in_pass_[i]; });
    return pass;
  }

  [[nodiscard]] CapturedPass optimizer(std::uint32_t step, const StepEnd& end) const {
    const std::int64_t start_ns = capture_.launches[end.optimizer.front()].start_ns;
    CapturedPass pass{PassKind::optimizer, step, 0, start_ns, start_ns, end.optimizer};
    std::int64_t done_ns = start_ns;
    for (const std::uint32_t i : end.optimizer) {
      const CapturedLaunch& launch = capture_.launches[i];
      const bool waited = std::ranges::any_of(end.collectives, [&](std::uint32_t other) {
        const std::int64_t at_ns = capture_.launches[other].start_ns;
        return at_ns >= done_ns && at_ns < launch.start_ns;
      });
      const std::int64_t from_ns = waited ? std::max(done_ns, launch.start_ns) : done_ns;
      pass.end_ns += std::max<std::int64_t>(0, launch.end_ns() - from_ns);
      done_ns = std::max(done_ns, launch.end_ns());
    }
    return pass;
  }

  const Capture& capture_;
  const CapturedStage& stage_;
  PipelineMessages messages_;
  const CaptureGroup* pipeline_;
  std::vector<bool> in_pass_;
  std::map<std::uint32_t, StepEnd> ends_;  // by step
};

}  // namespace

CapturedStepEnds find_step_ends(const Capture& capture, const CapturedStage& stage) {
  return StepEndFinder(capture, stage).find();
}

}  // namespace rubato

#pragma once
// Pipelines small enough to try every plan.

#include <filesystem>
#include <fstream>
#include <string>

#include <rapidcheck.h>
#include <unistd.h>

#include "explorer/pipeline/frontier.hpp"
#include "traces/pipeline_profile.hpp"

namespace rubato {

/// Two CSV files of an activity graph.
class GraphFiles {
 public:
  GraphFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("rubato_graph_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~GraphFiles() { std::filesystem::remove_all(folder_); }
  GraphFiles(const GraphFiles&) = delete;
  GraphFiles& operator=(const GraphFiles&) = delete;

  void write(const std::string& ops, const std::string& edges) const {
    std::ofstream(folder_ / "ops.csv") << ops;
    std::ofstream(folder_ / "edges.csv") << edges;
  }
  [[nodiscard]] PipelineSchedule read() const {
    return read_schedule(folder_ / "ops.csv", folder_ / "edges.csv");
  }

 private:
  std::filesystem::path folder_;
};

/// Random options per stage and kind: small integers, so that ties, dominated and equal
/// options are frequent.
inline PipelineProfile arbitrary_profile(std::uint32_t stages, int most_options) {
  PipelineProfile profile{"random", {}};
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
      PassType type{stage, kind, {}};
      const int options = *rc::gen::inRange(1, most_options + 1);
      for (int i = 0; i < options; ++i) {
        type.options.push_back(
            {1000.0 - i, 1.0 * *rc::gen::inRange(1, 8), 1.0 * *rc::gen::inRange(10, 30)});
      }
      profile.passes.push_back(std::move(type));
    }
  }
  return profile;
}

inline PipelineWork arbitrary_work(std::uint32_t stages, std::uint32_t microbatches,
                                   int most_options) {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_f_one_b);
  return pipeline_work(
      make_schedule({.kind = kind, .stages = stages, .microbatches = microbatches}),
      arbitrary_profile(stages, most_options), 1.0 * *rc::gen::inRange(0, 3));
}

}  // namespace rubato

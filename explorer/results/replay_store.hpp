#pragma once
// Replays of captured runs in a result database.

#include <cstdint>
#include <filesystem>
#include <string>

#include "sim/capture/replay_comparison.hpp"

namespace rubato {

/// What a replay was asked.
struct ReplayRequest {
  std::string trace_file;
  std::string captured_clock, replayed_clock;  ///< labels, memory/core
  std::string command;
};

/// Stores one replay in the tables replays, replay_rows and replay_steps; the database is
/// created where there is none. @return its replay_id
/// @throws IoError; nothing is stored then
std::int64_t store_replay(const std::filesystem::path& path, const ReplayRequest& request,
                          const CaptureReplay& replay, const ReplayComparison& comparison,
                          const std::optional<PowerEvidence>& power);

}  // namespace rubato

#pragma once
// What was measured, beside what was predicted, in a result database.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "explorer/results/verification.hpp"
#include "models/validation/errors.hpp"
#include "sim/capture/replay_comparison.hpp"

namespace rubato {

/// What a replay was asked.
struct ReplayRequest {
  std::string trace_file;
  std::string captured_clock, replayed_clock;  ///< labels, memory/core
  std::string command;
};

// Each is stored in the tables measurements and measurement_rows in one transaction; the database
// is created where there is none. They return the measurement_id and throw IoError; nothing is
// stored then.

std::int64_t store_replay(const std::filesystem::path& path, const ReplayRequest& request,
                          const CaptureReplay& replay, const ReplayComparison& comparison,
                          const std::optional<PowerEvidence>& power);

std::int64_t store_validation(const std::filesystem::path& path, const GpuSpec& spec,
                              const Sweep& sweep, const ValidationOptions& options,
                              std::span<const ValidatedPoint> points, const std::string& command);

/// The view v_verified finds the plan again.
std::int64_t store_verification(const std::filesystem::path& path, const Verification& found,
                                const std::string& command);

}  // namespace rubato

#pragma once
// Plan files as commands write them.

#include <cstdint>
#include <optional>
#include <string>

#include "common/file.hpp"
#include "explorer/plan/plan_file.hpp"

namespace rubato {

/// Writes the file, with the lines that set plans of one clock for each GPU. Unless it goes to
/// standard output, says what the plan promises and what sets it.
/// @throws IoError as write_file
void write_plan_file(const std::string& path, PlanFile file);

/// Where explore stores a run whose plan goes into a file: so that it is the file that export
/// writes. Without --db, a database that is gone with this object.
class PlanFileDatabase {
 public:
  /// @param db         of --db; empty: not given
  /// @param plan_file  of --plan-file; empty: not given
  PlanFileDatabase(std::string db, std::string plan_file);

  /// Empty: nothing is stored.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool is_kept() const noexcept { return !temporary_; }

  /// Writes the plan file that was asked for, if one was.
  /// @param run   as `rubato export --plan` names it
  /// @param spec  of a captured run
  /// @throws what plan_file() throws, NoPlanError where the default clocks are the answer; IoError
  void write_plan(const std::string& run, std::optional<GpuSpec> spec = {}) const;

 private:
  std::optional<TemporaryFile> temporary_;
  std::string path_, plan_file_;
};

}  // namespace rubato

#pragma once
// Whether the rows of a profile, and the lags of a schedule, can be a GPU's (traces/plausible.hpp).

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "traces/pipeline/profile.hpp"
#include "traces/plausible.hpp"

namespace rubato {

using ProfileKey = std::pair<std::uint32_t, PassKind>;  ///< stage and pass

class ProfileChecks {
 public:
  /// Checks power, time, clock and limit of a row.
  /// @param where   says which row it is, "p.csv:3"
  /// @param errors  gets what is wrong
  /// @return whether nothing is
  bool add(const std::string& where, const ProfileKey& key, const ClockOption& option,
           ErrorList& errors);

  /// Checks the times of each pass against each other.
  void expect_usual_times(ErrorList& errors) const;

 private:
  struct Rows {
    std::vector<TimedSetting> settings;
    std::vector<std::string> where;
  };
  std::map<ProfileKey, Rows> rows_;
};

/// Refuses lags that no transfer takes: more than ten times the longest pass at its lowest clocks.
/// @param edges  the file they were read from, for messages
/// @throws DataError naming the passes and the unit that would make sense
void expect_plausible_lags(const PipelineWork& work, const std::string& edges);

}  // namespace rubato

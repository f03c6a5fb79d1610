#pragma once
// --comm-sms: which numbers of SMs plans may put collectives on.

#include <optional>
#include <string>
#include <vector>

namespace rubato {

class CommandLine;

/// Adds --comm-sms. `words` must outlive parsing.
void add_comm_sms_option(CommandLine& app, std::vector<std::string>& words);

/// What GraphExplorationInput::comm_sms takes: distinct numbers in order, empty for "auto".
/// @return nothing if the option was not given
/// @throws UsageError for what is neither "auto" nor whole numbers >= 1
[[nodiscard]] std::optional<std::vector<double>> comm_sms_of(const std::vector<std::string>& words);

}  // namespace rubato

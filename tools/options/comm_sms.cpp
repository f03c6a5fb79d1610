#include "tools/options/comm_sms.hpp"

#include <set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"

namespace rubato {

void add_comm_sms_option(CommandLine& app, std::vector<std::string>& words) {
  app.add_option("--comm-sms N,...", words,
                 "SMs to try for collectives that overlap with compute, or auto [as captured]")
      ->delimiter(',')
      ->one_word();
}

std::optional<std::vector<double>> comm_sms_of(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words == std::vector<std::string>{"auto"}) return std::vector<double>{};
  std::set<double> numbers;
  for (const std::string& word : words) {
    const auto number = parse_count(word);
    if (!number || *number == 0) {
      throw UsageError(
          fmt::format("--comm-sms is '{}'; expected 'auto' or whole numbers >= 1 with "
                      "commas",
                      printable(word)));
    }
    numbers.insert(static_cast<double>(*number));
  }
  return std::vector<double>(numbers.begin(), numbers.end());
}

}  // namespace rubato

#pragma once
// Options and subcommands without CLI11's headers, which take longer to compile than most commands.
// A thin layer: names and meanings are CLI11's.

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rubato {

template <class T, class... Types>
concept OneOf = (std::same_as<T, Types> || ...);

/// What an option can be read into.
template <class T>
concept OptionValue =
    OneOf<T, std::string, double, int, unsigned, std::int64_t, std::uint64_t,
          std::optional<std::string>, std::optional<double>, std::optional<unsigned>,
          std::optional<std::int64_t>, std::optional<std::uint64_t>, std::vector<std::string>,
          std::vector<double>, std::vector<unsigned>, std::vector<std::uint64_t>>;

/// Groups of options that stand last in --help, and the one that only --help-all shows.
inline constexpr const char *output_group = "Output", *general_group = "General",
                            *rare_group = "Rare";

/// An option of a command line, or a word without a name. Each call changes it and returns it.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option* required();
  Option* capture_default_str();  ///< --help shows the value the variable has now
  Option* delimiter(char between);
  Option* one_word();  ///< of a list: it is one word, and the next word is not part of it
  Option* excludes(Option* other);
  Option* needs(Option* other);
  Option* group(const std::string& title);  ///< heading in --help
  Option* reads_file();                     ///< "-" is standard input, see input_file

  // Further conditions. A value that breaks one is refused, and the message says what was expected.
  Option* positive();
  Option* in_range(int least, int most);
  Option* in_range(double least, double most);
  Option* one_of(std::initializer_list<const char*> words);
  /// A file to write, whose name says its form; "-", standard output, may be anything.
  Option* ends_in(std::initializer_list<const char*> extensions);

 private:
  CLI::Option* option_;
};

/// Options and subcommands of one command. Variables must outlive parsing; options and subcommands
/// live as long as this.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// @param names  "-o,--output", or "TRACE" for a word without a name. Behind a blank --help has
  ///               what its value is called: "--slack PCT,..."
  template <OptionValue T>
  Option* add_option(const std::string& names, T& value, const std::string& help);
  Option* add_flag(const std::string& names, bool& value, const std::string& help);
  Option* add_flag_callback(const std::string& names, std::function<void()> action,
                            const std::string& help);
  Option* add_word_callback(const std::string& names,
                            const std::function<void(const std::string&)>& action,
                            const std::string& help);

  CommandLine* add_subcommand(const std::string& name, const std::string& help);
  void require_subcommand(int count);
  void headed(const std::string& title);  ///< heading of this subcommand in --help of the program
  /// Puts options that were added under a heading of --help.
  void group(const std::string& title, std::initializer_list<const char*> options);
  /// Options that only --help-all shows.
  void rare(std::initializer_list<const char*> options);
  void footer(const std::string& text);  ///< paragraphs after the options in --help
  void final_callback(std::function<void()> action);

  /// The line that will be parsed: subcommands that it does not name need no options.
  void expect(std::vector<std::string> words) { expected_ = std::move(words); }
  /// Whether a subcommand of that name may be parsed; true where nothing is expected.
  [[nodiscard]] bool may_hold(std::string_view name) const;

  /// Whether there is an option of one of these names so far.
  [[nodiscard]] bool knows(const std::string& option) const;
  /// Whether a line that was parsed holds an option, by one of its names.
  [[nodiscard]] bool has(const std::string& option) const;
  /// What a line that was parsed gives: names without dashes, values joined by commas.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> given() const;
  /// Names of the options of a group that a line that was parsed holds, as they were added.
  [[nodiscard]] std::vector<std::string> given_of(const std::string& group) const;

  /// For code that reads a command line rather than adding to it.
  [[nodiscard]] CLI::App& app() const noexcept { return *app_; }

 private:
  Option* keep(CLI::Option* option);

  CLI::App* app_;
  std::optional<std::vector<std::string>> expected_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<CommandLine>> subcommands_;
};

/// Reads words that come from a file, such as "--stages=4", into options that `setup` adds.
/// @throws DataError naming the file
void parse_words(const std::string& file, std::vector<std::string> words,
                 const std::function<void(CommandLine&)>& setup);

/// @throws UsageError for the first of these options that was given. Its message is the option and
///         `why`, such as "does nothing with --table"
void refuse(const CommandLine& line, std::initializer_list<const char*> options,
            std::string_view why, const std::string& hint = "");

}  // namespace rubato

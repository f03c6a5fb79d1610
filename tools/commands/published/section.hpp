#pragma once
// Published numbers beside ours, for the terminal, for programs, and as a page.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "common/process/interruption.hpp"
#include "common/run_context.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// Whether a fit has seen what ours is compared with.
enum class SeenByFit { no, in_part, yes };

/// How far ours is from what is published, of one quantity.
struct Difference {
  std::string what;  ///< "energy of 46 kernels"
  std::string unit;  ///< "points", "%"
  SeenByFit seen = SeenByFit::no;
  bool headline = false;  ///< in the page's answer
  double sum = 0.0, most = 0.0;
  std::size_t points = 0;

  void add(double published, double ours);
  [[nodiscard]] double mean() const { return sum / static_cast<double>(points); }
};

/// One table or figure of a publication.
struct PublishedSection {
  std::string key;      ///< in JSON: "table1"
  std::string heading;  ///< "Table 1: ..."
  std::string seen;     ///< what our numbers rest on: whether a fit has seen the published ones
  OutputTable table;    ///< every published number beside ours
  std::optional<OutputTable> summary = {};   ///< shown instead where the table is long
  std::string finding = {};                  ///< a sentence for the answer, or nothing
  std::string notes = {};                    ///< lines below it, each whole
  std::string charts = "[]";                 ///< over columns of `table`, see PagePart
  std::vector<Difference> differences = {};  ///< each with points
};

/// All of one publication.
struct Reproduction {
  std::string name;   ///< "spaan2026"
  std::string title;  ///< who measured what, where
  std::vector<PublishedSection> sections;
};

/// What all of them are, in a few words.
inline constexpr std::string_view report_title = "Published numbers beside Rubato's";

/// What was found, and how far ours is from what is published, mostly of what no fit has seen:
/// what a page begins with, and the terminal.
[[nodiscard]] std::string reproduction_answer(std::span<const Reproduction> reproductions);

/// Every section on the terminal: heading, table, notes.
void print_sections(const Reproduction& reproduction);

/// One JSON object with all tables; of several publications keys begin with their names.
[[nodiscard]] std::string json_of(std::span<const Reproduction> reproductions);

/// Markdown, or a page of HTML that needs nothing else, with all tables and pictures.
[[nodiscard]] std::string markdown_of(std::span<const Reproduction> reproductions);
[[nodiscard]] std::string page_of(std::span<const Reproduction> reproductions);

/// To be called before plans are used: Ctrl-C may have cut their search short.
/// @throws InterruptedError if the user asked to stop
void throw_if_interrupted(const RunContext& context);

}  // namespace rubato

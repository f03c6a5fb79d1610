#include "tools/commands/published/section.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "tools/drawing/page.hpp"

namespace rubato {

namespace {

constexpr std::string_view report_intro =
    "Made by rubato reproduce all --report. Each section says what the models had seen. Some "
    "published numbers were used to fit them: ours are then no prediction. Others were not.";

std::string markdown_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

std::string markdown_table(const OutputTable& table) {
  std::string text;
  const std::vector<std::vector<std::string>> lines = table.shown();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += '|';
    for (const std::string& cell : lines[i]) text += fmt::format(" {} |", markdown_cell(cell));
    text += '\n';
    if (i > 0) continue;
    text += '|';
    for (std::size_t c = 0; c < lines[0].size(); ++c) text += " --- |";
    text += '\n';
  }
  return text;
}

std::string_view name_of(SeenByFit seen) {
  switch (seen) {
    case SeenByFit::no: return "no";
    case SeenByFit::in_part: return "in part";
    case SeenByFit::yes: break;
  }
  return "yes";
}

template <class Use>
void for_each_difference(std::span<const Reproduction> reproductions, Use&& use) {
  for (const Reproduction& reproduction : reproductions) {
    for (const PublishedSection& section : reproduction.sections) {
      for (const Difference& one : section.differences) use(reproduction, one);
    }
  }
}

// What a fit has seen it was made to give back; the rest is a prediction.
OutputTable differences_table(std::span<const Reproduction> reproductions) {
  OutputTable table({{"what"},
                     {"mean_difference"},
                     {"most"},
                     {"unit"},
                     {"seen_by_a_fit"},
                     {"numbers"},
                     {"from"}});
  for_each_difference(reproductions, [&](const Reproduction& reproduction, const Difference& one) {
    table.add_row({one.what, one.mean(), one.most, one.unit, std::string(name_of(one.seen)),
                   static_cast<std::int64_t>(one.points), reproduction.name});
  });
  return table;
}

const OutputTable& short_table(const PublishedSection& section) {
  return section.summary ? *section.summary : section.table;
}

}  // namespace

std::string reproduction_answer(std::span<const Reproduction> reproductions) {
  std::string answer;
  for (const Reproduction& reproduction : reproductions) {
    for (const PublishedSection& section : reproduction.sections) {
      if (section.finding.empty()) continue;
      if (!answer.empty()) answer.append("\n");
      answer.append(section.finding);
    }
  }
  for_each_difference(reproductions, [&](const Reproduction&, const Difference& one) {
    if (!one.headline) return;
    if (!answer.empty()) answer.append("\n");
    answer.append(one.what + ": ")
        .append(fmt::format("{:.1f} {}", one.mean(), one.unit))
        .append(one.seen == SeenByFit::no ? " off in the mean."
                                          : " off in the mean, seen by a fit.");
  });
  return answer;
}

void print_sections(const Reproduction& reproduction) {
  for (const PublishedSection& section : reproduction.sections) {
    if (&section != &reproduction.sections.front()) print("\n");
    print_notes(section.heading + '\n');
    print(short_table(section), OutputFormat::table);
    print_notes(section.notes);
  }
}

std::string json_of(std::span<const Reproduction> reproductions) {
  std::vector<std::string> keys;
  std::vector<const OutputTable*> tables;
  for (const Reproduction& reproduction : reproductions) {
    for (const PublishedSection& section : reproduction.sections) {
      keys.push_back(reproductions.size() == 1
                         ? section.key
                         : fmt::format("{}_{}", reproduction.name, section.key));
      tables.push_back(&section.table);
    }
  }
  std::vector<NamedTable> named;
  for (std::size_t i = 0; i < keys.size(); ++i) named.push_back({keys[i], tables[i]});
  return render_json_object(named);
}

std::string markdown_of(std::span<const Reproduction> reproductions) {
  const auto prose = [](std::string_view text) {
    constexpr std::size_t columns = 118;
    return wrapped(text, columns);
  };
  std::string text = fmt::format("# {}\n\n{}", report_title, prose(report_intro));
  for (const Reproduction& reproduction : reproductions) {
    text += fmt::format("\n## {}\n\n{}", reproduction.name, prose(reproduction.title));
    for (const PublishedSection& section : reproduction.sections) {
      text += fmt::format("\n### {}\n\n{}\n{}", section.heading,
                          prose(fmt::format("*{}*", section.seen)),
                          markdown_table(short_table(section)));
      for (const std::string_view line : split(section.notes, '\n')) {
        if (!line.empty()) text += fmt::format("\n{}", prose(line));
      }
    }
  }
  return text;
}

std::string page_of(std::span<const Reproduction> reproductions) {
  const OutputTable differences = differences_table(reproductions);
  std::vector<PagePart> parts{
      {.name = "differences",
       .title = "How far ours are from the published numbers",
       .text = "What a fit has seen it was made to give back; the rest is a prediction.",
       .table = &differences}};
  std::vector<std::string> names;
  for (const Reproduction& reproduction : reproductions) {
    names.push_back(reproduction.title);
    for (const PublishedSection& section : reproduction.sections) {
      parts.push_back({.name = fmt::format("{}_{}", reproduction.name, section.key),
                       .title = section.heading,
                       .text = section.seen + ' ' + section.notes,
                       .table = &section.table,
                       .charts = section.charts});
      if (section.summary)
        parts.push_back({.name = fmt::format("{}_{}_errors", reproduction.name, section.key),
                         .title = "Errors of the above",
                         .table = &*section.summary});
    }
  }
  return drawn_page({std::string(report_title), fmt::format("{}", fmt::join(names, "; ")),
                     reproduction_answer(reproductions), std::string(report_intro)},
                    parts);
}

void Difference::add(double published, double ours) {
  const double off = std::abs(ours - published);
  sum += off;
  most = std::max(most, off);
  ++points;
}

void throw_if_interrupted(const RunContext& context) {
  if (context.stop_requested())
    throw InterruptedError("not all plans were found; nothing was written");
}

}  // namespace rubato

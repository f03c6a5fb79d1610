#include "tools/commands/published/section.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "tools/drawing/page_parts.hpp"

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

// Lines below a table.
std::string html_notes(std::string_view notes) {
  std::string html;
  for (std::size_t from = 0; from < notes.size();) {
    const std::size_t end = std::min(notes.find('\n', from), notes.size());
    html += fmt::format("{}{}", html.empty() ? "" : "<br>\n",
                        page_text(notes.substr(from, end - from)));
    from = end + 1;
  }
  return html.empty() ? html : fmt::format("<p>{}</p>\n", html);
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

std::string page_trust(std::span<const Reproduction> reproductions) {
  std::vector<std::vector<std::string>> rows;
  for_each_difference(reproductions, [&](const Reproduction& reproduction, const Difference& one) {
    rows.push_back({page_text(one.what), fmt::format("{:.2f} {}", one.mean(), one.unit),
                    fmt::format("{:.2f} {}", one.most, one.unit), std::string(name_of(one.seen)),
                    fmt::format("{}", one.points), page_text(reproduction.name)});
  });
  return "<p>How far our numbers are from the published ones. What a fit has seen it was made to "
         "give back; the rest is a prediction.</p>\n" +
         html_table({"what", "mean difference", "most", "seen by a fit", "numbers", "from"}, rows);
}

// Pictures, then what ours rests on, then every number; long tables are folded.
std::string section_html(const PublishedSection& section) {
  constexpr std::size_t most_rows = 12;
  std::string html = fmt::format("<h3>{}</h3>\n", page_text(section.heading));
  if (!section.pictures.empty())
    html += fmt::format("<div class=\"plots\">\n{}</div>\n", section.pictures);
  html += fmt::format("<p>{}</p>\n", page_text(section.seen));
  if (section.summary) html += html_table(*section.summary);
  html += section.summary || section.table.rows() > most_rows
              ? fmt::format("<details><summary>All {} rows</summary>\n{}</details>\n",
                            section.table.rows(), html_table(section.table))
              : html_table(section.table);
  return html + html_notes(section.notes);
}

const OutputTable& short_table(const PublishedSection& section) {
  return section.summary ? *section.summary : section.table;
}

}  // namespace

Answer reproduction_answer(std::span<const Reproduction> reproductions) {
  Answer answer;
  for (const Reproduction& reproduction : reproductions) {
    for (const PublishedSection& section : reproduction.sections) {
      if (section.finding.empty()) continue;
      if (!answer.lines.empty()) answer.next_line();
      answer.say(section.finding);
    }
  }
  for_each_difference(reproductions, [&](const Reproduction&, const Difference& one) {
    if (!one.headline) return;
    if (!answer.lines.empty()) answer.next_line();
    answer.say(one.what + ": ")
        .unbroken_lead(fmt::format("{:.1f} {}", one.mean(), one.unit))
        .say(one.seen == SeenByFit::no ? " off in the mean." : " off in the mean, seen by a fit.");
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
  std::string text = fmt::format("# {}\n\n{}\n", report_title, report_intro);
  for (const Reproduction& reproduction : reproductions) {
    text += fmt::format("\n## {}\n\n{}\n", reproduction.name, reproduction.title);
    for (const PublishedSection& section : reproduction.sections) {
      text += fmt::format("\n### {}\n\n*{}*\n\n{}", section.heading, section.seen,
                          markdown_table(short_table(section)));
      for (const std::string_view line : split(section.notes, '\n')) {
        if (!line.empty()) text += fmt::format("\n{}\n", line);
      }
    }
  }
  return text;
}

std::string page_of(std::span<const Reproduction> reproductions) {
  std::string body = page_section("How sure this is", page_trust(reproductions));
  std::vector<std::string> names;
  for (const Reproduction& reproduction : reproductions) {
    std::string html = fmt::format("<p>{}</p>\n", page_text(reproduction.title));
    for (const PublishedSection& section : reproduction.sections) html += section_html(section);
    body += page_section(reproduction.name, html);
    names.push_back(reproduction.name);
  }
  return whole_page({std::string(report_title), fmt::format("{}", fmt::join(names, ", ")),
                     reproduction_answer(reproductions), ""},
                    body);
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

#include "tools/commands/published/section.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

constexpr std::string_view report_title = "Published numbers beside Rubato's";
constexpr std::string_view report_intro =
    "Made by rubato reproduce all --report. Each section says what the numbers rest on: fits "
    "have "
    "seen some of what is published and not the rest.";

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

const OutputTable& short_table(const PublishedSection& section) {
  return section.summary ? *section.summary : section.table;
}

}  // namespace

std::string text_of(const Reproduction& reproduction, const TableStyle& style) {
  std::vector<std::string> texts;
  for (const PublishedSection& section : reproduction.sections) {
    texts.push_back(fmt::format("{}\n{}{}", section.heading, short_table(section).text(style),
                                wrapped(section.notes, style.columns)));
  }
  return fmt::format("{}", fmt::join(texts, "\n"));
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
      if (!section.notes.empty()) text += fmt::format("\n```text\n{}```\n", section.notes);
    }
  }
  return text;
}

std::string page_of(std::span<const Reproduction> reproductions) {
  std::string body;
  for (const Reproduction& reproduction : reproductions) {
    body += fmt::format("<h2>{}</h2>\n<p>{}</p>\n", page_text(reproduction.name),
                        page_text(reproduction.title));
    for (const PublishedSection& section : reproduction.sections) {
      body += fmt::format("<h3>{}</h3>\n<p>{}</p>\n", page_text(section.heading),
                          page_text(section.seen));
      if (!section.pictures.empty())
        body += fmt::format("<div class=\"plots\">\n{}</div>\n", section.pictures);
      if (section.summary) body += html_table(*section.summary);
      body += section.summary
                  ? fmt::format("<details><summary>All {} rows</summary>\n{}</details>\n",
                                section.table.rows(), html_table(section.table))
                  : html_table(section.table);
      body += html_notes(section.notes);
    }
  }
  std::size_t sections = 0;
  for (const Reproduction& reproduction : reproductions) sections += reproduction.sections.size();
  return whole_page({std::string(report_title), std::string(report_intro),
                     fmt::format("{} papers, {} comparisons.", reproductions.size(), sections), ""},
                    body);
}

void throw_if_interrupted(const RunContext& context) {
  if (context.stop_requested())
    throw InterruptedError("interrupted before all plans were found; nothing was written");
}

}  // namespace rubato

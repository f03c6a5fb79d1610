#include "explorer/experiments/file.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/hash.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

using AxisValues = std::array<std::vector<AxisValue>, axis_count>;

std::vector<std::string> axis_keys() {
  std::vector<std::string> keys;
  for (const Axis& axis : axes()) keys.emplace_back(axis.key);
  return keys;
}

const Axis& axis_named(const JsonNode& table, const std::string& key) {
  for (const Axis& axis : axes()) {
    if (axis.key == key) return axis;
  }
  table.fail(fmt::format("unknown key '{}'{}", printable(key), did_you_mean(key, axis_keys())));
}

AxisValue axis_value(const Axis& axis, const JsonNode& node) {
  switch (axis.kind) {
    case AxisKind::text: return node.text();
    case AxisKind::count_from_0: return static_cast<double>(node.count());
    case AxisKind::count_from_1:
      if (node.count() == 0) node.fail("found 0; expected a whole number >= 1");
      return static_cast<double>(node.count());
    case AxisKind::non_negative: return node.number(Range::non_negative);
    case AxisKind::positive_or_spec:
      if (node.is_text()) {
        if (node.text() == "spec") return std::string("spec");
        node.fail(
            fmt::format("found '{}'; expected a number > 0 or \"spec\"", printable(node.text())));
      }
      [[fallthrough]];
    case AxisKind::positive: break;
  }
  return node.number(Range::positive);
}

// {from = 250, to = 350, step = 50}: both ends are values.
std::vector<AxisValue> range_values(const Axis& axis, const JsonNode& node) {
  node.expect_keys({"from", "to", "step"});
  const double from = node.at("from").number(), to = node.at("to").number();
  const double step = node.at("step").number(Range::positive);
  if (axis.kind == AxisKind::text) node.fail("a range stands for numbers, and these are names");
  if (from > to) node.fail(fmt::format("from {} is above to {}", from, to));
  constexpr double rounding = 1e-9;  // so that 0, 0.1, ... reaches 1
  const double steps = (to - from) / step + rounding;
  constexpr double most_steps = 10'000.0;  // of one axis; all together may have a million points
  if (!(steps < most_steps))
    node.fail(fmt::format("the range has {:.3g} steps; expected less than {}", steps, most_steps));
  std::vector<AxisValue> values;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(steps); ++i) {
    const double value = from + static_cast<double>(i) * step;
    const bool count = axis.kind == AxisKind::count_from_0 || axis.kind == AxisKind::count_from_1;
    if ((count && std::floor(value) != value) || value < 0.0 ||
        (value == 0.0 && axis.kind != AxisKind::count_from_0 &&
         axis.kind != AxisKind::non_negative))
      node.fail(fmt::format("the range holds {}, which is no value of {}", value, axis.key));
    values.emplace_back(value);
  }
  return values;
}

std::vector<AxisValue> axis_values(const Axis& axis, const JsonNode& node) {
  if (node.is_object()) return range_values(axis, node);
  if (!node.is_list()) return {axis_value(axis, node)};
  std::vector<AxisValue> values;
  for (const JsonNode& item : node.items()) {
    AxisValue value = axis_value(axis, item);
    if (std::ranges::find(values, value) != values.end())
      item.fail(fmt::format("value {} occurs twice", printable(shown(value))));
    values.push_back(std::move(value));
  }
  if (values.empty()) node.fail("the list is empty; leave the key out for its default");
  return values;
}

AxisValues read_axes(const JsonNode& table) {
  AxisValues values;
  for (const std::string& key : table.keys()) {
    const Axis& axis = axis_named(table, key);
    values[static_cast<std::size_t>(axis.id)] = axis_values(axis, table.at(key));
  }
  return values;
}

bool applies_to_models_only(AxisId id) {
  return id == AxisId::model || id == AxisId::batch || id == AxisId::sequence ||
         id == AxisId::tensor_parallel || id == AxisId::data_parallel ||
         id == AxisId::pipeline_parallel || id == AxisId::microbatches || id == AxisId::schedule;
}

// The axes that say what is run. A point has a value on exactly one of them: a trace has no batch,
// a model no file.
constexpr std::array work_axes{AxisId::trace, AxisId::capture, AxisId::model};

bool applies_to(AxisId id, AxisId work) {
  if (std::ranges::find(work_axes, id) != work_axes.end()) return id == work;
  if (id == AxisId::captured_clock) return work == AxisId::capture;
  return work == AxisId::model || !applies_to_models_only(id);
}

bool has(const AxisValues& values, AxisId id) {
  return !values[static_cast<std::size_t>(id)].empty();
}

bool given(const AxisValues& values, AxisId id) {
  return !std::holds_alternative<std::monostate>(values[static_cast<std::size_t>(id)].front());
}

// Own values, then the file's defaults, then the program's. A table that names traces, captures or
// models does not also take others from the defaults.
AxisValues completed(AxisValues values, const AxisValues& defaults, const JsonNode& table) {
  const auto is_work = [](AxisId id) {
    return std::ranges::find(work_axes, id) != work_axes.end();
  };
  const bool own_work = std::ranges::any_of(work_axes, [&](AxisId id) { return has(values, id); });
  for (const Axis& axis : axes()) {
    auto& list = values[static_cast<std::size_t>(axis.id)];
    if (list.empty() && !(is_work(axis.id) && own_work))
      list = defaults[static_cast<std::size_t>(axis.id)];
    if (list.empty()) list = {axis.fallback};
  }
  if (!given(values, AxisId::gpu)) table.fail("key 'gpu' is missing");
  if (std::ranges::none_of(work_axes, [&](AxisId id) { return given(values, id); })) {
    table.fail("none of 'trace', 'capture' and 'model' is given",
               "name fixed traces, captured runs, models, or several of them");
  }
  for (const std::string& key : table.keys()) {
    const AxisId id = axis_named(table, key).id;
    if (applies_to_models_only(id) && !given(values, AxisId::model))
      table.at(key).fail("a fixed trace has its own; this applies to models only");
    if (id == AxisId::captured_clock && !given(values, AxisId::capture))
      table.at(key).fail("this applies to captures only");
  }
  if (given(values, AxisId::model) &&
      !(given(values, AxisId::batch) && given(values, AxisId::sequence)))
    table.fail("a model needs 'batch' and 'sequence'");
  return values;
}

bool compares(double value, std::string_view condition, const JsonNode& node) {
  static constexpr std::array<std::string_view, 4> operators{"<=", ">=", "<", ">"};
  for (const std::string_view op : operators) {
    if (!condition.starts_with(op)) continue;
    std::string_view rest = condition.substr(op.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto bound = parse_number(rest);
    if (!bound) break;
    if (op == "<=") return value <= *bound;
    if (op == ">=") return value >= *bound;
    return op == "<" ? value < *bound : value > *bound;
  }
  node.fail(fmt::format("found '{}'; expected a value, a list, or a comparison such as \">= 8\"",
                        printable(condition)));
}

// A table of conditions on axes; all of them must hold.
class Filter {
 public:
  explicit Filter(const JsonNode& table) {
    for (const std::string& key : table.keys()) add(axis_named(table, key), table.at(key));
    if (conditions_.empty()) table.fail("a filter without conditions");
  }

  [[nodiscard]] bool matches(const Point& point) const {
    return std::ranges::all_of(conditions_, [&](const auto& holds) { return holds(point); });
  }

 private:
  void add(const Axis& axis, const JsonNode& node) {
    const bool comparison = node.is_text() && axis.kind != AxisKind::text && node.text() != "spec";
    if (comparison) {
      (void)compares(0.0, node.text(), node);  // a wrong one is better known now
      conditions_.emplace_back([id = axis.id, node, text = node.text()](const Point& point) {
        const auto* value = std::get_if<double>(&point[id]);
        return value != nullptr && compares(*value, text, node);
      });
    } else {
      conditions_.emplace_back(
          [id = axis.id, values = axis_values(axis, node)](const Point& point) {
            return std::ranges::find(values, point[id]) != values.end();
          });
    }
  }

  std::vector<std::function<bool(const Point&)>> conditions_;
};

std::vector<Filter> read_filters(const JsonNode& root, std::string_view key) {
  std::vector<Filter> filters;
  if (const auto list = root.find(key)) {
    if (!list->is_list())
      list->fail(fmt::format("expected a list of tables; write [[{}]] with two brackets", key));
    for (const JsonNode& table : list->items()) filters.emplace_back(table);
  }
  return filters;
}

std::vector<AxisValues> split_by_work(const AxisValues& values) {
  std::vector<AxisValues> parts;
  for (const AxisId work : work_axes) {
    if (!given(values, work)) continue;
    AxisValues part = values;
    for (const Axis& axis : axes()) {
      if (!applies_to(axis.id, work)) part[static_cast<std::size_t>(axis.id)] = {AxisValue{}};
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

class Expander {
 public:
  Expander(Experiment& experiment, const JsonNode& root, std::size_t max_points)
      : experiment_(experiment),
        root_(root),
        max_points_(max_points),
        keep_(read_filters(root, "keep")),
        drop_(read_filters(root, "drop")) {}

  // Filters apply to the product of [axes] only. A named scenario is kept whole.
  void add(const std::string& scenario, const AxisValues& values) {
    for (const AxisValues& part : split_by_work(values)) {
      make_room(part);
      Point point;
      add_from(0, point, part, scenario);
    }
  }

 private:
  void make_room(const AxisValues& values) {
    double size = static_cast<double>(experiment_.points.size());
    double product = 1.0;
    for (const auto& list : values) product *= static_cast<double>(list.size());
    size += product;
    if (size > static_cast<double>(max_points_)) {
      root_.fail(
          fmt::format("the axes stand for {:.3g} points; expected at most {}", size, max_points_));
    }
    // A point takes 1 kB, and 3 kB while the list grows. Filters may leave few of many points.
    constexpr double most = 50'000.0;
    experiment_.points.reserve(static_cast<std::size_t>(std::min(size, most)));
  }

  void add_from(std::size_t axis, Point& point, const AxisValues& values,
                const std::string& scenario) {
    if (axis == axis_count) return add_point(point, scenario);
    for (const AxisValue& value : values[axis]) {
      point.values[axis] = value;
      add_from(axis + 1, point, values, scenario);
    }
  }

  void add_point(const Point& point, const std::string& scenario) {
    const auto matches = [&](const Filter& filter) { return filter.matches(point); };
    const bool kept = keep_.empty() || std::ranges::any_of(keep_, matches);
    if (scenario.empty() && (!kept || std::ranges::any_of(drop_, matches))) {
      ++experiment_.filtered;
      return;
    }
    experiment_.points.push_back({scenario, point});
  }

  Experiment& experiment_;
  const JsonNode& root_;
  std::size_t max_points_;
  std::vector<Filter> keep_, drop_;
};

}  // namespace

Experiment parse_experiment(std::string_view text, const std::filesystem::path& path,
                            std::size_t max_points) {
  const JsonDocument document = JsonDocument::parse_toml(text, path.string());
  document.expect_schema(Experiment::schema);
  const JsonNode root = document.root();
  root.expect_keys({"schema", "name"}, {"defaults", "axes", "keep", "drop", "scenario"});
  Experiment experiment{.name = root.at("name").text(),
                        .id = content_hash(text),
                        .text = std::string(text),
                        .folder = path.parent_path(),
                        .points = {},
                        .filtered = 0};
  AxisValues defaults;
  if (const auto table = root.find("defaults")) defaults = read_axes(*table);
  Expander expander(experiment, root, max_points);
  if (const auto table = root.find("axes"))
    expander.add("", completed(read_axes(*table), defaults, *table));
  if (const auto scenarios = root.find("scenario")) {
    for (const std::string& name : scenarios->keys()) {
      const JsonNode table = scenarios->at(name);
      if (name.empty()) table.fail("a scenario needs a name");
      expander.add(name, completed(read_axes(table), defaults, table));
    }
  }
  if (experiment.points.empty()) {
    root.fail(experiment.filtered > 0 ? "the filters leave nothing to run"
                                      : "nothing to run; expected [axes] or [scenario.NAME]");
  }
  return experiment;
}

Experiment read_experiment(const std::filesystem::path& path) {
  return parse_experiment(read_file(path), path);
}

std::string experiment_template() {
  std::string text =
      R"(# An experiment of Rubato: every combination of the axes below is one scenario.
# Run it:   rubato experiment run FILE --db results.db       (again to resume)
# Look:     rubato experiment run FILE --dry-run
schema = 1
name = "batch size and slack"

# A value, a list of values, or for numbers a range: {from = 250, to = 350, step = 50}.
# A key that is left out has one value, the one named as its default.
[axes]
)";
  for (const Axis& axis : axes()) {
    static constexpr std::array used{AxisId::gpu,      AxisId::model,       AxisId::batch,
                                     AxisId::sequence, AxisId::granularity, AxisId::slack_pct};
    const bool on = std::ranges::find(used, axis.id) != used.end();
    const bool has_default = !std::holds_alternative<std::monostate>(axis.fallback);
    text += fmt::format("# {}{}\n{}{} = {}\n", axis.help,
                        has_default ? fmt::format(" (default {})", shown(axis.fallback)) : "",
                        on ? "" : "# ", axis.key, axis.example);
  }
  text += R"(
# What [axes] and scenarios take where they do not name a key themselves.
# [defaults]
# gpu = "rtx-3080-ti"

# Filters on the combinations of [axes]. All conditions of a table must hold; with [[keep]]
# tables only what matches one of them stays, then what matches a [[drop]] table goes.
[[drop]]
batch = ">= 40"
slack_pct = 5

# Scenarios that are named and always run.
[scenario.paper]
gpu = "rtx-3080-ti"
trace = "gpt3-xl"
granularity = ["pass", "kernel"]
aggregation = ["local", "global"]
)";
  return text;
}

}  // namespace rubato

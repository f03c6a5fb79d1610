#include <cctype>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "common/error.hpp"
#include "common/formats/json_outline.hpp"
#include "common/json_fields.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"
#include "traces/import/chakra_nodes.hpp"
#include "traces/import/operator_work.hpp"

namespace rubato {

namespace {

namespace ondemand = simdjson::ondemand;

// Appends the sizes of all tensors below a value; lists of tensors are taken apart.
void read_shapes(ondemand::value value, std::vector<std::vector<std::uint64_t>>& out,
                 int depth = 0) {
  constexpr int deepest = 16;
  ondemand::array list;
  if (depth > deepest || !is_there(value.get_array().get(list))) return;
  std::vector<std::uint64_t> sizes;
  bool numbers = false;
  for (auto item : list) {
    ondemand::value inner;
    std::uint64_t size = 0;
    if (!is_there(item.get(inner))) return;
    if (is_there(inner.get_uint64().get(size))) {
      sizes.push_back(size);
      numbers = true;
    } else {
      read_shapes(inner, out, depth + 1);
    }
  }
  if (numbers) out.push_back(std::move(sizes));
}

// "Tensor(float)", "GenericList[Tensor(c10::Half),...]"
// A value as the profiler writes it: "True" for true, without the blanks behind a token.
std::string as_pytorch(std::string_view json) {
  std::string text(json.substr(0, json.find_last_not_of(" \t\r\n") + 1));
  for (const auto& [from, to] : {std::pair<std::string_view, char>{"true", 'T'}, {"false", 'F'}})
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text[at] = to;
  return text;
}

Dtype tensor_dtype(std::string_view type) {
  const std::size_t open = type.find("Tensor(");
  if (open == std::string_view::npos) return Dtype::unknown;
  const std::size_t from = open + 7, to = type.find(')', from);
  return dtype_from_framework(type.substr(from, to - from));
}

class NodeFields {
 public:
  NodeFields(JsonPart& part, ondemand::object& object) : part_(part), object_(object) {}

  template <class T>
  [[nodiscard]] std::optional<T> number(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      T value{};
      if (is_there(part_.field(object_, key).get(value))) return value;
    }
    return std::nullopt;
  }
  /// A time: 0 where it is absent or null, not a number where it is beyond all numbers. Anything
  /// else must be a number.
  [[nodiscard]] double time_us(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      ondemand::value value;
      if (!is_there(part_.field(object_, key).get(value))) continue;
      double number = 0.0;
      if (is_there(value.get_double().get(number))) return number;
      if (value.is_null()) continue;
      const std::string_view token = value.raw_json_token();
      if (!token.empty() &&
          (std::isdigit(static_cast<unsigned char>(token.front())) != 0 || token.front() == '-' ||
           token.starts_with("NaN") || token.starts_with("Infinity")))
        return std::numeric_limits<double>::quiet_NaN();
      throw DataError(fmt::format("'{}' is not a number", key));
    }
    return 0.0;
  }
  [[nodiscard]] std::optional<std::string_view> text(std::initializer_list<std::string_view> keys) {
    return number<std::string_view>(keys);
  }
  void ids(std::string_view key, std::vector<std::uint64_t>& out) {
    ondemand::value value;
    if (!is_there(part_.field(object_, key).get(value))) return;
    std::uint64_t id = 0;
    if (is_there(value.get_uint64().get(id))) return out.push_back(id);
    ondemand::array list;
    if (!is_there(value.get_array().get(list))) return;
    for (auto item : list) {
      if (is_there(item.get_uint64().get(id))) out.push_back(id);
    }
  }
  // An object with shapes, types and values; in files before 1.0.2 three members of the node.
  void inputs(ChakraNode& node) {
    ondemand::object inputs;
    if (is_there(part_.field(object_, "inputs").get_object().get(inputs))) {
      operands(inputs, {"shapes", "types", "values"}, node);
    } else {
      operands(object_, {"input_shapes", "input_types", "inputs"}, node);
    }
  }

 private:
  struct OperandKeys {
    std::string_view shapes, types, values;
  };
  void operands(ondemand::object& object, const OperandKeys& keys, ChakraNode& node) {
    std::vector<std::vector<std::vector<std::uint64_t>>> shapes;
    ondemand::array list;
    if (is_there(part_.field(object, keys.shapes).get_array().get(list))) {
      for (auto shape : list) {
        ondemand::value value;
        shapes.emplace_back();
        if (is_there(shape.get(value))) read_shapes(value, shapes.back());
      }
    }
    std::size_t i = 0;
    if (!is_there(part_.field(object, keys.types).get_array().get(list))) return;
    for (auto type : list) {
      std::string_view text;
      if (!is_there(type.get_string().get(text)) || i >= shapes.size()) break;
      if (text.find("Tensor(") != std::string_view::npos) {
        for (auto& dims : shapes[i]) {
          node.dims.push_back(std::move(dims));
          node.dtypes.push_back(tensor_dtype(text));
        }
      }
      ++i;
    }
    if (node.dims.empty() || !is_there(part_.field(object, keys.values).get_array().get(list)))
      return;
    for (auto value : list) {
      ondemand::value item;
      if (!is_there(value.get(item))) return;
      ondemand::array inner;
      if (is_there(item.get_array().get(inner))) {
        node.values.push_back(as_pytorch(inner.raw_json().value()));
      } else {
        node.values.push_back(as_pytorch(item.raw_json_token()));
      }
    }
  }

  JsonPart& part_;
  ondemand::object& object_;
};

ChakraNode read_node(JsonPart& part, ondemand::object& object) {
  NodeFields json(part, object);
  ChakraNode node;
  const auto id = json.number<std::uint64_t>({"id", "Id"});
  const auto name = json.text({"name", "Name"});
  if (!id || !name) throw DataError("a node without id or name");
  node.id = *id;
  node.name = *name;
  node.type = json.number<std::uint64_t>({"NodeType", "type"}).value_or(0);
  json.ids("ctrl_deps", node.callers);
  if (node.callers.empty()) json.ids("parent", node.callers);  // before 1.0.2
  json.ids("data_deps", node.data);
  if (const auto cpu = json.number<bool>({"is_cpu_op"})) node.on_device = !*cpu;
  const auto category = json.text({"cat"});
  if (category && (*category == "kernel" || category->starts_with("gpu_mem")))
    node.on_device = true;
  node.start_us = json.time_us({"ts", "start_time_micros"});
  node.duration_us = json.time_us({"runtime", "dur", "exclusive_dur"});
  node.stream = json.number<std::int64_t>({"stream"}).value_or(0);
  node.comm_type = json.number<std::uint64_t>({"comm_type"});
  node.comm_bytes = json.number<std::uint64_t>({"comm_size"}).value_or(0);
  json.inputs(node);
  part.check();
  return node;
}

// Whether a node that cannot be read is an annotation of the host ("## load C:\data ##"), seen
// without parsing it: neither an operator, nor work of the device, nor what tells a pass.
bool is_annotation_at_a_glance(std::string_view node) {
  std::string_view name;
  for (const std::string_view key : {"\"name\":", "\"Name\":"}) {
    const std::size_t found = node.find(key);
    if (found == std::string_view::npos) continue;
    const std::size_t from = node.find('"', found + key.size());
    if (from == std::string_view::npos) return false;
    name = node.substr(from + 1);
    break;
  }
  const auto has = [&](std::string_view part) { return node.find(part) != std::string_view::npos; };
  for (const std::string_view known : {"aten::", "autograd::", "Optimizer.", "\""}) {
    if (name.empty() || name.starts_with(known)) return false;
  }
  return has("\"is_cpu_op\": true") || (!has("is_cpu_op") && !has("\"cat\""));
}

}  // namespace

void read_chakra_json(const std::filesystem::path& path, const ImportOptions& options,
                      std::vector<ChakraNode>& nodes, CaptureBuilder& builder) {
  bool feeder = false;
  {
    ByteSource head(path, options.max_expanded_bytes);
    (void)scan_json_keys(head, [&](const JsonKey& key) {
      if (key.depth == 1 && key.text == "workload_graph") feeder = true;
      return !feeder && !(key.depth == 1 && key.text == "nodes");
    });
  }
  ByteSource source(path, options.max_expanded_bytes);
  ondemand::parser parser;
  JsonPart part;
  read_json_parts(
      source, feeder ? "workload_graph" : "nodes",
      {.element =
           [&](std::string_view text, std::uint64_t at) {
             const auto problem = problem_of([&] {
               ondemand::object object = part.open(parser, text, json_padding);
               nodes.push_back(read_node(part, object));
             });
             if (!problem) return;
             if (is_annotation_at_a_glance(text))
               return builder.leave_out("annotations that cannot be read");
             if (options.partial) return builder.leave_out("nodes that cannot be read");
             throw DataError(
                 fmt::format("{}: node at byte {}: {}", printable(path.string()), at, *problem),
                 {.in = printable(text.substr(0, 200)), .hint = "--partial leaves it out"});
           },
       .member = {}});
}

}  // namespace rubato

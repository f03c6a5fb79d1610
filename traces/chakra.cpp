// MLCommons Chakra execution traces: protobuf (.et), the feeder's JSON, and the host's JSON of
// PyTorch's ExecutionTraceObserver, with or without device nodes linked in.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/capture_builder.hpp"
#include "traces/import.hpp"
#include "traces/json_events.hpp"
#include "traces/json_fields.hpp"
#include "traces/operator_work.hpp"

namespace rubato {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr double ns_per_us = 1000.0;
constexpr std::uint64_t collective_node = 7;

struct Node {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;
  std::vector<std::uint64_t> callers;  ///< control dependencies
  std::vector<std::uint64_t> data;     ///< data dependencies
  double start_us = 0.0, duration_us = 0.0;
  bool on_device = false;
  std::int64_t stream = 0;
  std::optional<std::uint64_t> comm_type;
  std::uint64_t comm_bytes = 0;  ///< 0: not said
  std::vector<std::vector<std::uint64_t>> dims;
  std::vector<Dtype> dtypes;
};

void check_times(const Node& node) {
  constexpr double most_us = static_cast<double>(max_time_ns) / ns_per_us;
  for (const double us : {node.start_us, node.duration_us}) {
    if (!(std::abs(us) <= most_us))
      throw DataError(fmt::format("node {}: a time of {} us is absurd", node.id, us));
  }
}

// ---- Protobuf ----

// One field of a message; `bytes` of wire type 2, else `number`.
struct Field {
  std::uint64_t number = 0;  ///< of the field
  std::uint64_t wire = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field = {tag >> 3, tag & 7, 0, {}};
    switch (field.wire) {
      case 0: field.value = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.bytes = take(4); break;
      default: throw DataError(fmt::format("wire type {} is unknown", field.wire));
    }
    return true;
  }

  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    constexpr int most_bits = 64, group = 7;
    for (int shift = 0; shift < most_bits; shift += group) {
      if (rest_.empty()) throw DataError("a number is cut off");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw DataError("a number is too long");
  }

  [[nodiscard]] std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw DataError("the message ends early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }

 private:
  std::string_view rest_;
};

void add_ids(const Field& field, std::vector<std::uint64_t>& ids) {
  if (field.wire == 0) return ids.push_back(field.value);
  Message packed(field.bytes);
  while (packed.left() > 0) ids.push_back(packed.varint());
}

void read_attribute(std::string_view bytes, Node& node) {
  enum : std::uint64_t { name = 1, int32 = 7, int64 = 9, uint32 = 11, uint64 = 13, boolean = 27 };
  Message message(bytes);
  Field field;
  std::string_view key;
  std::optional<std::uint64_t> value;
  while (message.next(field)) {
    if (field.number == name) key = field.bytes;
    if (field.wire == 0 && field.number >= int32 && field.number <= boolean) value = field.value;
  }
  if (!value) return;
  if (key == "is_cpu_op") node.on_device = *value == 0;
  if (key == "tid") node.stream = static_cast<std::int64_t>(*value);
  if (key == "comm_type") node.comm_type = *value;
  if (key == "comm_size") node.comm_bytes = *value;
}

Node read_node(std::string_view bytes) {
  Node node;
  Message message(bytes);
  Field field;
  while (message.next(field)) {
    switch (field.number) {
      case 1: node.id = field.value; break;
      case 2: node.name = field.bytes; break;
      case 3: node.type = field.value; break;
      case 4: add_ids(field, node.callers); break;
      case 5: add_ids(field, node.data); break;
      case 6: node.start_us = static_cast<double>(field.value); break;
      case 7: node.duration_us = static_cast<double>(field.value); break;
      case 10: read_attribute(field.bytes, node); break;
      default: break;  // inputs, outputs, and what later versions add
    }
  }
  check_times(node);
  return node;
}

// ---- JSON ----

// Sizes of all tensors below a value; lists of tensors are taken apart.
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
  /// A time: absent and null are none, anything else must be a number.
  [[nodiscard]] double time_us(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      ondemand::value value;
      if (!is_there(part_.field(object_, key).get(value))) continue;
      double number = 0.0;
      if (is_there(value.get_double().get(number))) return number;
      if (value.is_null()) continue;
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
  void inputs(Node& node) {
    ondemand::object inputs;
    if (!is_there(part_.field(object_, "inputs").get_object().get(inputs))) return;
    std::vector<std::vector<std::vector<std::uint64_t>>> shapes;
    ondemand::array list;
    if (is_there(part_.field(inputs, "shapes").get_array().get(list))) {
      for (auto shape : list) {
        ondemand::value value;
        shapes.emplace_back();
        if (is_there(shape.get(value))) read_shapes(value, shapes.back());
      }
    }
    std::size_t i = 0;
    if (!is_there(part_.field(inputs, "types").get_array().get(list))) return;
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
  }

 private:
  JsonPart& part_;
  ondemand::object& object_;
};

Node read_node(JsonPart& part, ondemand::object& object) {
  NodeFields json(part, object);
  Node node;
  const auto id = json.number<std::uint64_t>({"id", "Id"});
  const auto name = json.text({"name", "Name"});
  if (!id || !name) throw DataError("a node without id or name");
  node.id = *id;
  node.name = *name;
  node.type = json.number<std::uint64_t>({"NodeType", "type"}).value_or(0);
  json.ids("ctrl_deps", node.callers);
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
  check_times(node);
  return node;
}

// ---- From nodes to launches ----

// Operators that only look at memory in another way.
bool moves_nothing(std::string_view name) {
  static const std::unordered_set<std::string_view> views{"aten::view",
                                                          "aten::_unsafe_view",
                                                          "aten::reshape",
                                                          "aten::_reshape_alias",
                                                          "aten::t",
                                                          "aten::transpose",
                                                          "aten::permute",
                                                          "aten::expand",
                                                          "aten::as_strided",
                                                          "aten::detach",
                                                          "aten::detach_",
                                                          "aten::slice",
                                                          "aten::select",
                                                          "aten::unsqueeze",
                                                          "aten::squeeze",
                                                          "aten::split",
                                                          "aten::split_with_sizes",
                                                          "aten::narrow",
                                                          "aten::empty",
                                                          "aten::empty_like",
                                                          "aten::empty_strided",
                                                          "aten::resize_",
                                                          "aten::is_nonzero",
                                                          "aten::item",
                                                          "aten::_local_scalar_dense",
                                                          "aten::alias",
                                                          "aten::unbind",
                                                          "aten::chunk",
                                                          "aten::result_type",
                                                          "aten::lift_fresh",
                                                          "aten::size",
                                                          "aten::is_same_size",
                                                          "aten::set_"};
  return views.contains(name);
}

KernelClass class_of_operator(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("::bmm") || has("baddbmm")) return KernelClass::gemm_batched;
  if (has("mm") && !has("comm")) return KernelClass::gemm;
  if (has("attention")) return KernelClass::attention;
  if (has("softmax")) return KernelClass::softmax;
  if (has("layer_norm") || has("batch_norm") || has("rms_norm")) return KernelClass::layernorm;
  if (has("gelu")) return KernelClass::gelu;
  if (has("embedding") || has("index_select")) return KernelClass::embedding;
  if (has("_foreach") || has("_fused_adam") || has("_fused_sgd")) return KernelClass::optimizer;
  if (has("::sum") || has("::mean") || has("::max") || has("nll_loss")) return KernelClass::reduce;
  if (has("copy_") || has("clone") || has("cat") || has("contiguous")) return KernelClass::permute;
  return KernelClass::elementwise;
}

class ChakraGraph {
 public:
  ChakraGraph(const std::filesystem::path& path, std::vector<Node> nodes, CaptureBuilder& builder)
      : path_(path), nodes_(std::move(nodes)), builder_(builder) {
    std::ranges::stable_sort(nodes_, {}, &Node::id);
    for (std::size_t i = 0; i < nodes_.size(); ++i) by_id_.emplace(nodes_[i].id, i);
  }

  void run() {
    builder_.capture().provenance.generator = "MLCommons Chakra";
    passes_.assign(nodes_.size(), std::nullopt);
    if (std::ranges::any_of(nodes_, &Node::on_device)) {
      device_nodes();
    } else {
      operators();
    }
  }

 private:
  // By the names of a node's callers; cycles occur, so every node is asked once.
  Pass pass_of(std::size_t node) {
    std::vector<std::size_t> way;
    Pass found = Pass::forward;
    for (std::size_t at = node;;) {
      if (passes_[at]) {
        found = *passes_[at];
        break;
      }
      way.push_back(at);
      passes_[at] = Pass::forward;
      const std::string& name = nodes_[at].name;
      if (name.starts_with("autograd::engine")) {
        found = Pass::backward;
        break;
      }
      if (name.starts_with("Optimizer.step")) {
        found = Pass::optimizer;
        break;
      }
      const auto& callers = nodes_[at].callers;
      const auto caller = callers.empty() ? by_id_.end() : by_id_.find(callers.front());
      if (caller == by_id_.end() || caller->second == at) break;
      at = caller->second;
    }
    for (const std::size_t at : way) passes_[at] = found;
    return found;
  }

  // Of device work: by its callers, else by the name of the operator it comes from.
  Pass pass_of_device_work(std::size_t node) {
    if (!nodes_[node].callers.empty()) return pass_of(node);
    const auto& data = nodes_[node].data;
    const auto origin = data.empty() ? by_id_.end() : by_id_.find(data.front());
    if (origin == by_id_.end()) return Pass::unknown;
    const Node& launcher = nodes_[origin->second];
    if (!launcher.callers.empty()) return pass_of(origin->second);
    return pass_of_label(launcher.name).value_or(Pass::unknown);
  }

  // Work of the operators that launched, where their shapes are linked in: it goes to the kernel
  // named like a product or attention, else to the longest.
  std::unordered_map<std::size_t, OperatorWork> works_of_device_nodes() {
    std::unordered_map<std::uint64_t, std::size_t> chosen;  // by the operator's id
    const auto rank = [&](std::size_t i) {
      const KernelClass kind = kernel_class_of(nodes_[i].name);
      return std::pair(kind == KernelClass::gemm || kind == KernelClass::attention,
                       nodes_[i].duration_us);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (!node.on_device || node.callers.empty() || node.type == collective_node ||
          node.name.starts_with("Mem"))
        continue;
      const auto [found, fresh] = chosen.emplace(node.callers.front(), i);
      if (!fresh && rank(i) > rank(found->second)) found->second = i;
    }
    std::unordered_map<std::size_t, OperatorWork> works;
    for (const auto& [id, kernel] : chosen) {
      const auto launcher = by_id_.find(id);
      if (launcher == by_id_.end() || nodes_[launcher->second].on_device) continue;
      const Node& op = nodes_[launcher->second];
      const OperatorWork work = operator_work({op.name, op.dims, op.dtypes});
      if (work.source != WorkSource::unknown) works.emplace(kernel, work);
    }
    return works;
  }

  void device_nodes() {
    const auto works = works_of_device_nodes();
    const bool timed =
        std::ranges::any_of(nodes_, [](const Node& n) { return n.on_device && n.start_us > 0.0; });
    std::map<std::int64_t, std::int64_t> end_ns;  // of each stream, where no start is given
    std::uint64_t short_ones = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (!node.on_device) continue;
      Kernel kernel;
      kernel.label = node.name;
      kernel.kind =
          node.type == collective_node ? KernelClass::communication : kernel_class_of(node.name);
      if (node.name.starts_with("Memcpy")) kernel.kind = KernelClass::memcpy;
      if (node.name.starts_with("Memset")) kernel.kind = KernelClass::memset;
      if (const auto work = works.find(i); work != works.end()) {
        kernel.flops = work->second.flops;
        kernel.dram_bytes = work->second.dram_bytes;
        kernel.gemm = work->second.gemm;
        kernel.dtype = work->second.dtype;
        kernel.work_source = work->second.source;
      }
      // The ranks that take part are not said, so there is a message but no Collective.
      if (kernel.kind == KernelClass::communication && node.comm_bytes > 0) {
        kernel.flops = 0.0;
        kernel.dram_bytes = 2.0 * static_cast<double>(node.comm_bytes);
        kernel.work_source = WorkSource::derived;
      }
      kernel.pass = pass_of_device_work(i);
      CapturedLaunch launch{.kernel = {},
                            .stream = builder_.stream(0, node.stream),
                            .start_ns = 0,
                            .duration_ns = clamped_ns(node.duration_us * ns_per_us),
                            .launch_ns = {},
                            .step = {},
                            .pass = kernel.pass};
      std::int64_t& end = end_ns[node.stream];
      launch.start_ns = timed ? clamped_ns(node.start_us * ns_per_us) : end;
      constexpr double well_measured_us = 10.0;
      if (node.duration_us < well_measured_us) ++short_ones;
      launch.kernel = builder_.kernel(kernel, short_kernel_name(node.name));
      if (builder_.launch(launch)) end = launch.end_ns();
    }
    auto& left_out = builder_.capture().left_out;
    if (!timed)
      left_out.emplace_back("start times, which are not in the file: streams run without gaps");
    if (short_ones > 0)
      left_out.push_back(fmt::format(
          "{} launches are shorter than 10 us and badly rounded to whole us", short_ones));
  }

  // No times at all: the work of every innermost operator, from its shapes.
  void operators() {
    std::unordered_set<std::uint64_t> with_children;
    for (const Node& node : nodes_) with_children.insert(node.callers.begin(), node.callers.end());
    std::int64_t order = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      const bool innermost = !with_children.contains(node.id);
      if (!innermost || !node.name.starts_with("aten::") || moves_nothing(node.name)) continue;
      const OperatorWork work = operator_work({node.name, node.dims, node.dtypes});
      if (work.source == WorkSource::unknown) continue;
      Kernel kernel;
      kernel.label = node.name;
      kernel.kind = class_of_operator(node.name);
      kernel.pass = pass_of(i);
      kernel.dtype = work.dtype;
      kernel.flops = work.flops;
      kernel.dram_bytes = work.dram_bytes;
      kernel.gemm = work.gemm;
      kernel.work_source = work.source;
      CapturedLaunch launch{.kernel = builder_.kernel(kernel, node.name.substr(6)),
                            .stream = builder_.stream(0, 0),
                            .start_ns = order++,
                            .duration_ns = 0,
                            .launch_ns = {},
                            .step = {},
                            .pass = kernel.pass};
      builder_.launch(launch);
    }
    if (order == 0) {
      throw DataError(fmt::format("{}: no node is device work or an operator with shapes",
                                  printable(path_.string())));
    }
    builder_.capture().left_out.emplace_back(
        "times, which are not in the file: the trace is made from shapes");
  }

  const std::filesystem::path& path_;
  std::vector<Node> nodes_;
  CaptureBuilder& builder_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<std::optional<Pass>> passes_;
};

// Reads nodes one by one; what cannot be read ends the file or, with partial, is left out.
template <class Read>
Capture import_nodes(const std::filesystem::path& path, const ImportOptions& options,
                     const Read& read) {
  CaptureBuilder builder(path.filename().string());
  std::vector<Node> nodes;
  try {
    read(nodes, builder);
  } catch (const DataError& error) {
    if (!options.partial || nodes.empty()) throw;
    builder.capture().left_out.push_back(fmt::format("what follows the damage: {}", error.what()));
  }
  ChakraGraph(path, std::move(nodes), builder).run();
  return std::move(builder).finish();
}

}  // namespace

Capture import_chakra_protobuf(const std::filesystem::path& path, const ImportOptions& options) {
  return import_nodes(path, options, [&](std::vector<Node>& nodes, CaptureBuilder&) {
    std::string damage;
    const std::string text =
        read_expanded(path, options.max_expanded_bytes, options.partial ? &damage : nullptr);
    Message file(text);
    bool metadata = true;
    while (file.left() > 0) {
      const std::size_t at = text.size() - file.left();
      try {
        const std::string_view bytes = file.take(file.varint());
        if (!metadata) nodes.push_back(read_node(bytes));
        metadata = false;
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}: byte {}: {}", printable(path.string()), at, error.what()),
                        {.in = {}, .hint = "expected a Chakra execution trace in protobuf form"});
      }
    }
    if (!damage.empty()) throw DataError(damage);
  });
}

Capture import_chakra_json(const std::filesystem::path& path, const ImportOptions& options) {
  constexpr std::size_t enough = 4096;
  const bool feeder = first_bytes(path, enough).find("\"workload_graph\"") != std::string::npos;
  return import_nodes(path, options, [&](std::vector<Node>& nodes, CaptureBuilder& builder) {
    ByteSource source(path, options.max_expanded_bytes);
    ondemand::parser parser;
    JsonPart part;
    read_json_parts(
        source, feeder ? "workload_graph" : "nodes",
        {.element =
             [&](std::string_view text, std::uint64_t at) {
               std::string problem;
               try {
                 ondemand::object object = part.open(parser, text, json_padding);
                 nodes.push_back(read_node(part, object));
                 return;
               } catch (const simdjson::simdjson_error& error) {
                 problem = error.what();
               } catch (const DataError& error) {
                 problem = error.what();
               }
               if (options.partial) return builder.leave_out("nodes that cannot be read");
               throw DataError(
                   fmt::format("{}: node at byte {}: {}", printable(path.string()), at, problem),
                   {.in = printable(text.substr(0, 200)), .hint = "--partial leaves it out"});
             },
         .member = {}});
  });
}

}  // namespace rubato

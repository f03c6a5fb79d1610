// MLCommons Chakra execution traces: protobuf (.et), the feeder's JSON, and the host's JSON of
// PyTorch's ExecutionTraceObserver, with or without device nodes linked in.

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/import/chakra_nodes.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/operator_work.hpp"

namespace rubato {

namespace {

constexpr double ns_per_us = 1000.0;
// COMM_SEND_NODE, COMM_RECV_NODE and COMM_COLL_NODE of et_def.proto.
bool is_communication(const ChakraNode& node) { return node.type >= 5 && node.type <= 7; }

class ChakraGraph {
 public:
  ChakraGraph(const std::filesystem::path& path, std::vector<ChakraNode> nodes,
              CaptureBuilder& builder)
      : path_(path), nodes_(std::move(nodes)), builder_(builder) {
    sort_by(nodes_, &ChakraNode::id);
    for (std::size_t i = 0; i < nodes_.size(); ++i) by_id_.emplace(nodes_[i].id, i);
  }

  void run() {
    builder_.capture().provenance.generator = "MLCommons Chakra";
    passes_.assign(nodes_.size(), std::nullopt);
    if (std::ranges::any_of(nodes_, &ChakraNode::on_device)) {
      device_nodes();
    } else {
      operators();
    }
  }

 private:
  // By the names of a node's callers. Cycles occur, so every node is asked once.
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
    const ChakraNode& launcher = nodes_[origin->second];
    if (!launcher.callers.empty()) return pass_of(origin->second);
    return pass_of_label(launcher.name).value_or(Pass::unknown);
  }

  // Work of the operators that launched, where their shapes are linked in. Of several kernels of
  // one operator it goes to the one named like a product or attention, else to the longest.
  std::unordered_map<std::size_t, OperatorWork> works_of_device_nodes() {
    std::unordered_map<std::uint64_t, std::size_t> chosen;  // by the operator's id
    const auto rank = [&](std::size_t i) {
      const KernelClass kind = kernel_class_of(nodes_[i].name);
      return std::pair(kind == KernelClass::gemm || kind == KernelClass::attention,
                       nodes_[i].duration_us);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const ChakraNode& node = nodes_[i];
      if (!node.on_device || node.callers.empty() || is_communication(node) ||
          node.name.starts_with("Mem"))
        continue;
      const auto [found, fresh] = chosen.emplace(node.callers.front(), i);
      if (!fresh && rank(i) > rank(found->second)) found->second = i;
    }
    std::unordered_map<std::size_t, OperatorWork> works;
    for (const auto& [id, kernel] : chosen) {
      const auto launcher = by_id_.find(id);
      if (launcher == by_id_.end() || nodes_[launcher->second].on_device) continue;
      const ChakraNode& op = nodes_[launcher->second];
      const OperatorWork work = operator_work({op.name, op.dims, op.dtypes, op.values});
      if (work.source != WorkSource::unknown) works.emplace(kernel, work);
    }
    return works;
  }

  void device_nodes() {
    const auto works = works_of_device_nodes();
    const bool timed = std::ranges::any_of(
        nodes_, [](const ChakraNode& n) { return n.on_device && n.start_us > 0.0; });
    // In files that have durations, a kernel of 0 us has none: even an empty one takes longer.
    // Copies of less than half a microsecond there are.
    const bool lasting = std::ranges::any_of(
        nodes_, [](const ChakraNode& n) { return n.on_device && n.duration_us > 0.0; });
    std::map<std::int64_t, std::int64_t> end_ns;  // of each stream, where no start is given
    std::uint64_t short_ones = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const ChakraNode& node = nodes_[i];
      if (!node.on_device) continue;
      const bool untimed = lasting && node.duration_us == 0.0 && !node.name.starts_with("Mem");
      if (!has_times(node) || untimed || (timed && node.start_us == 0.0)) {
        builder_.leave_out_untimed_launch();
        continue;
      }
      Kernel kernel;
      kernel.label = node.name;
      kernel.kind =
          is_communication(node) ? KernelClass::communication : kernel_class_of(node.name);
      if (node.name.starts_with("Memcpy")) kernel.kind = KernelClass::memcpy;
      if (node.name.starts_with("Memset")) kernel.kind = KernelClass::memset;
      if (const auto work = works.find(i); work != works.end()) give_work(work->second, kernel);
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

  // Marks the callers of an operator, up to the root or to what is marked. Cycles occur.
  void mark_callers(std::size_t node, std::vector<bool>& marked) const {
    for (;;) {
      const auto& callers = nodes_[node].callers;
      const auto caller = callers.empty() ? by_id_.end() : by_id_.find(callers.front());
      if (caller == by_id_.end() || marked[caller->second]) return;
      node = caller->second;
      marked[node] = true;
    }
  }

  // Without times: the work of every operator, from its shapes. Those that only call others that
  // compute are wrappers; a product is one only of products, since it may allocate, copy its bias
  // or sum up the bias's gradient beside its own work.
  void operators() {
    std::vector<OperatorWork> works(nodes_.size());
    std::vector<bool> calls_work(nodes_.size(), false), calls_product(calls_work);
    std::uint64_t not_understood = 0, foreign = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const ChakraNode& node = nodes_[i];
      if (node.dims.empty() || moves_nothing(node.name)) continue;
      if (node.name.starts_with("aten::"))
        works[i] = operator_work({node.name, node.dims, node.dtypes, node.values});
      if (works[i].source == WorkSource::unknown && !is_of_another_library(node)) continue;
      mark_callers(i, calls_work);
      if (is_product(node, works[i])) mark_callers(i, calls_product);
    }
    std::int64_t order = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const ChakraNode& node = nodes_[i];
      const OperatorWork& work = works[i];
      const bool wrapper = is_product(node, work) ? calls_product[i] : calls_work[i];
      if (wrapper || node.dims.empty() || moves_nothing(node.name)) continue;
      if (work.source != WorkSource::unknown) {
        add_operator(i, work, order++);
      } else if (node.name.starts_with("aten::")) {
        ++not_understood;
      } else if (is_of_another_library(node)) {
        ++foreign;
      }
    }
    if (order == 0) {
      throw DataError(fmt::format("{}: no node is device work or an operator with shapes",
                                  printable(path_.string())));
    }
    auto& left_out = builder_.capture().left_out;
    left_out.emplace_back("times, which are not in the file: the trace is made from shapes");
    if (not_understood > 0)
      left_out.push_back(
          fmt::format("{} operators whose shapes and types tell no work", not_understood));
    if (foreign > 0)
      left_out.push_back(
          fmt::format("{} operators that are not PyTorch's own, collectives among them", foreign));
  }

  // "fbgemm::split_embedding", "nccl:all_reduce"; not the engine of autograd.
  static bool is_of_another_library(const ChakraNode& node) {
    const std::string_view name = node.name;
    return name.find(':') != std::string_view::npos && !name.starts_with("aten::") &&
           name.find("autograd::") == std::string_view::npos && !name.starts_with("##");
  }

  static bool is_product(const ChakraNode& node, const OperatorWork& work) {
    if (work.source == WorkSource::unknown) return false;
    const bool attention = node.name.find("attention") != std::string::npos;
    const bool convolution = node.name.find("conv") != std::string::npos;
    return work.gemm || ((attention || convolution) && work.flops > work.dram_bytes);
  }

  void add_operator(std::size_t i, const OperatorWork& work, std::int64_t order) {
    const ChakraNode& node = nodes_[i];
    Kernel kernel;
    kernel.label = node.name;
    kernel.kind = class_of_operator(node.name);
    kernel.pass = pass_of(i);
    give_work(work, kernel);
    CapturedLaunch launch{.kernel = builder_.kernel(kernel, node.name.substr(6)),
                          .stream = builder_.stream(0, 0),
                          .start_ns = order,
                          .duration_ns = 0,
                          .launch_ns = {},
                          .step = {},
                          .pass = kernel.pass};
    builder_.launch(launch);
  }

  const std::filesystem::path& path_;
  std::vector<ChakraNode> nodes_;
  CaptureBuilder& builder_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<std::optional<Pass>> passes_;
};

// Where the file is damaged it is an error or, with partial, what follows is left out.
template <class Read>
Capture import_nodes(const std::filesystem::path& path, const ImportOptions& options,
                     const Read& read) {
  CaptureBuilder builder(path.filename().string());
  std::vector<ChakraNode> nodes;
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
  return import_nodes(path, options, [&](std::vector<ChakraNode>& nodes, CaptureBuilder&) {
    read_chakra_protobuf(path, options, nodes);
  });
}

Capture import_chakra_json(const std::filesystem::path& path, const ImportOptions& options) {
  return import_nodes(path, options, [&](std::vector<ChakraNode>& nodes, CaptureBuilder& builder) {
    read_chakra_json(path, options, nodes, builder);
  });
}

}  // namespace rubato

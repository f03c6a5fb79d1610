#pragma once
// The nodes of Chakra execution traces, from protobuf and from JSON.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

/// One node: an operator of the host, or work of the device.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;                    ///< NodeType of et_def.proto
  std::vector<std::uint64_t> callers;        ///< control dependencies
  std::vector<std::uint64_t> data;           ///< data dependencies
  double start_us = 0.0, duration_us = 0.0;  ///< 0: not said; see has_times()
  bool on_device = false;
  std::int64_t stream = 0;
  std::optional<std::uint64_t> comm_type;
  std::uint64_t comm_bytes = 0;                  ///< 0: not said
  std::vector<std::vector<std::uint64_t>> dims;  ///< of its inputs, shape [tensors][dimensions]
  std::vector<Dtype> dtypes;                     ///< shape [tensors]
  std::vector<std::string> values;               ///< of all its inputs, as text; may be empty
};

/// Whether the times are numbers within max_time_ns, forward or back. Others stand for unknown
/// ones.
[[nodiscard]] bool has_times(const ChakraNode& node);

/// Whether a file's first bytes are a message of metadata, and a node if it is among them.
[[nodiscard]] bool begins_as_chakra_protobuf(std::string_view head);

/// Appends the nodes of a file (.et). @throws DataError where it is damaged; the nodes before stay
void read_chakra_protobuf(const std::filesystem::path& path, const ImportOptions& options,
                          std::vector<ChakraNode>& nodes);

/// As read_chakra_protobuf, from the feeder's JSON or that of PyTorch's ExecutionTraceObserver.
/// @param builder  told of nodes that are left out
void read_chakra_json(const std::filesystem::path& path, const ImportOptions& options,
                      std::vector<ChakraNode>& nodes, CaptureBuilder& builder);

}  // namespace rubato

#pragma once
// The nodes of Chakra execution traces, from protobuf and from JSON.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

struct ChakraNode {
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

/// Throws DataError if a time is negative beyond reason, too large or not a number.
void check_times(const ChakraNode& node);

/// Appends the nodes of a file (.et). @throws DataError where it is damaged; the nodes before stay
void read_chakra_protobuf(const std::filesystem::path& path, const ImportOptions& options,
                          std::vector<ChakraNode>& nodes);

/// The same of the feeder's JSON and of that of PyTorch's ExecutionTraceObserver.
/// @param builder  told of nodes that are left out
void read_chakra_json(const std::filesystem::path& path, const ImportOptions& options,
                      std::vector<ChakraNode>& nodes, CaptureBuilder& builder);

}  // namespace rubato

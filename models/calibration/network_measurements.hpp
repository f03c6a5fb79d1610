#pragma once
// Measured times of collectives, as nccl-tests and rccl-tests print them.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/collective_time.hpp"

namespace rubato {

/// Time of one collective of one message size.
struct CollectivePoint {
  double message_bytes = 0.0;  ///< > 0
  double time_s = 0.0;         ///< > 0, median over repeats
};

/// One collective on one group of GPUs of one system, at all message sizes that were measured.
struct CollectiveSeries {
  std::string system;
  std::string link;  ///< as the file says it
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveGroup group;
  std::vector<CollectivePoint> points;  ///< by message, ascending, not empty

  /// The highest bus bandwidth measured, GB/s.
  [[nodiscard]] double peak_gbs() const;
};

/// The group with the links that the words of a table name. Inside nodes: NVLink (also Infinity
/// Fabric), but PCIe where the words say PCIe or a card that has nothing else. Between nodes: tcp,
/// libfabric (Slingshot, EFA, OFI) or, without such a word, rdma.
[[nodiscard]] CollectiveGroup group_of(double ranks, double nodes, std::string_view gpu,
                                       std::string_view link);

/// Plain or gzip. Reads columns system, gpu, gpus, nodes, link, collective, bytes, time_us; others
/// are ignored. Repeats become their median. @throws IoError, DataError listing the bad lines
[[nodiscard]] std::vector<CollectiveSeries> read_collective_series(
    const std::filesystem::path& path);
[[nodiscard]] std::vector<CollectiveSeries> parse_collective_series(std::string_view text,
                                                                    const std::string& name);

}  // namespace rubato

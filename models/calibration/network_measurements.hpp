#pragma once
// Measured times of collectives, as nccl-tests and rccl-tests print them.

#include <filesystem>
#include <span>
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

  /// Time that the model gives a message.
  /// @param bus_gbs        of endless messages, GB/s, > 0. On one node it is that of its links; of
  ///                       several those inside are taken to be as fast, at least as those of A100
  /// @param latency_scale  factor on latencies, > 0
  [[nodiscard]] CollectiveTime time(const NetworkParameters& parameters, double message_bytes,
                                    double bus_gbs, double latency_scale) const;

  /// Bus bandwidth of endless messages, GB/s: the highest with which the model meets the time of
  /// one of the longest messages (those of at least a quarter of the longest).
  [[nodiscard]] double endless_gbs(const NetworkParameters& parameters, double latency_scale) const;
};

/// The group with the links that the words of a table name. Inside nodes: NVLink (also Infinity
/// Fabric; by an older library where `older`), but PCIe where the words say PCIe or a card that has
/// nothing else. Between nodes: tcp, libfabric (Slingshot, EFA, OFI) or, without such a word, rdma.
[[nodiscard]] CollectiveGroup group_of(double ranks, double nodes, std::string_view gpu,
                                       std::string_view link, bool older);

/// Plain or gzip. Reads columns system, gpu, gpus, nodes, link, collective, bytes, time_us and,
/// where there is one, library (newer or older; newer where it is missing or empty); others are
/// ignored. Repeats become their median. @throws IoError, DataError listing the bad lines
[[nodiscard]] std::vector<CollectiveSeries> read_collective_series(
    std::span<const std::filesystem::path> paths);
[[nodiscard]] std::vector<CollectiveSeries> parse_collective_series(std::string_view text,
                                                                    const std::string& name);

}  // namespace rubato

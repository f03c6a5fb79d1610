#include "models/calibration/network_measurements.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "common/byte_source.hpp"
#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/statistics.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

bool names_any(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// nccl-tests says "alltoall" and "sendrecv".
std::optional<CollectiveKind> collective_from(const std::string& name) {
  if (name == "alltoall") return CollectiveKind::all_to_all;
  if (name == "sendrecv") return CollectiveKind::send_recv;
  return from_name<CollectiveKind>(name);
}

// What makes two rows points of one series.
using SeriesKey =
    std::tuple<std::string, std::string, std::string, bool, CollectiveKind, double, double>;
using SeriesTimes = std::map<double, std::vector<double>>;  // by message

class TableReader {
 public:
  explicit TableReader(const CsvTable& table) : table_(table) {}

  std::map<SeriesKey, SeriesTimes> read() {
    for (std::size_t row = 0; row < table_.rows(); ++row) read_row(row);
    errors_.throw_if_any({.in = {}, .hint = "bytes is a whole message, time_us its time in us"});
    return std::move(series_);
  }

 private:
  void read_row(std::size_t row) {
    const auto ranks = table_.number(row, gpus_, Range::positive, errors_);
    const auto nodes = table_.number(row, nodes_, Range::positive, errors_);
    const auto bytes = table_.number(row, bytes_, Range::positive, errors_);
    const auto time_us = table_.number(row, time_, Range::positive, errors_);
    if (!ranks || !nodes || !bytes || !time_us) return;
    if (*ranks < 2.0 || *nodes > *ranks || *nodes < 1.0) {
      errors_.add(fmt::format("{}: {} GPUs on {} nodes; expected at least 2 GPUs, and one a node",
                              table_.where(row), *ranks, *nodes));
      return;
    }
    constexpr double most_bytes = 1e18, most_us = 1e12, least_us = 1e-3;
    if (*bytes > most_bytes || *time_us > most_us || *time_us < least_us) {
      errors_.add(fmt::format("{}: {} bytes in {} us; expected at most {} bytes and {} to {} us",
                              table_.where(row), *bytes, *time_us, most_bytes, least_us, most_us));
      return;
    }
    const std::string& name = table_.cell(row, collective_);
    const auto kind = collective_from(name);
    if (!kind) {
      errors_.add(fmt::format("{}: collective '{}' is not known{}", table_.where(row), name,
                              did_you_mean(name, all_names<CollectiveKind>())));
      return;
    }
    const std::string library = library_ ? table_.cell(row, *library_) : "";
    if (!library.empty() && library != "newer" && library != "older") {
      errors_.add(fmt::format("{}: library '{}' is not known; expected newer or older",
                              table_.where(row), library));
      return;
    }
    series_[{table_.cell(row, system_), table_.cell(row, gpu_), table_.cell(row, link_),
             library == "older", *kind, *ranks, *nodes}][*bytes]
        .push_back(*time_us * 1e-6);
  }

  const CsvTable& table_;
  std::size_t system_ = table_.column("system"), gpu_ = table_.column("gpu"),
              gpus_ = table_.column("gpus"), nodes_ = table_.column("nodes"),
              link_ = table_.column("link"), collective_ = table_.column("collective"),
              bytes_ = table_.column("bytes"), time_ = table_.column("time_us");
  std::optional<std::size_t> library_ = table_.find_column("library");
  ErrorList errors_;
  std::map<SeriesKey, SeriesTimes> series_;
};

}  // namespace

CollectiveTime CollectiveSeries::time(const NetworkParameters& parameters, double message_bytes,
                                      double bus_gbs, double latency_scale) const {
  CollectiveGroup placed = group;
  placed.inside_gbs =
      group.nodes > 1.0 ? std::max(bus_gbs, NetworkParameters::nvlink_gbs) : bus_gbs;
  placed.inside_latency = placed.between_latency = latency_scale;
  return collective_time(parameters, kind, placed, message_bytes, bus_gbs);
}

double CollectiveSeries::endless_gbs(const NetworkParameters& parameters,
                                     double latency_scale) const {
  constexpr double least_share = 0.25;
  constexpr double most_over_measured = 1.5;  // latencies are a third of a long message's at most
  constexpr int halvings = 30;
  double best = 0.0;
  for (const CollectivePoint& point : points) {
    if (point.message_bytes < least_share * points.back().message_bytes) continue;
    double low = point.message_bytes * bus_factor(kind, group.ranks) / point.time_s * 1e-9;
    double high = low * most_over_measured;
    for (int i = 0; i < halvings; ++i) {
      const double middle = 0.5 * (low + high);
      const bool slower =
          time(parameters, point.message_bytes, middle, latency_scale).time_s > point.time_s;
      (slower ? low : high) = middle;
    }
    best = std::max(best, high);
  }
  return best;
}

CollectiveGroup group_of(double ranks, double nodes, std::string_view gpu, std::string_view link,
                         bool older) {
  using namespace std::string_view_literals;
  static constexpr std::array fabric{"nvlink"sv, "nvswitch"sv, "infinity"sv, "xgmi"sv};
  static constexpr std::array slots{"pcie"sv, "geforce"sv, "rtx"sv, "l40"sv, "tesla t4"sv};
  static constexpr std::array software{"tcp"sv, "socket"sv, "ethernet"sv, "a3 mega"sv};
  static constexpr std::array library{"ofi"sv, "libfabric"sv, "efa"sv, "slingshot"sv};
  const std::string words = lower_case(link), card = lower_case(gpu);
  CollectiveGroup group{
      .ranks = ranks, .nodes = nodes, .inside = older ? LinkKind::nvlink_older : LinkKind::nvlink};
  const bool pcie = names_any(words, slots) || names_any(card, slots);
  if (pcie && !names_any(words, fabric)) group.inside = LinkKind::pcie;
  if (names_any(words, library)) group.between = LinkKind::libfabric;
  if (names_any(words, software) && words.find("roce") == std::string::npos)
    group.between = LinkKind::tcp;
  return group;
}

std::vector<CollectiveSeries> parse_collective_series(std::string_view text,
                                                      const std::string& name) {
  const CsvTable table = CsvTable::parse(text, name);
  std::vector<CollectiveSeries> all;
  for (const auto& [key, times] : TableReader(table).read()) {
    const auto& [system, gpu, link, older, kind, ranks, nodes] = key;
    CollectiveSeries series{.system = system,
                            .link = link,
                            .kind = kind,
                            .group = group_of(ranks, nodes, gpu, link, older),
                            .points = {}};
    for (const auto& [bytes, seconds] : times) series.points.push_back({bytes, median(seconds)});
    all.push_back(std::move(series));
  }
  if (all.empty()) throw DataError(fmt::format("{} has no rows", name));
  return all;
}

std::vector<CollectiveSeries> read_collective_series(std::span<const std::filesystem::path> paths) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30U;
  std::vector<CollectiveSeries> all;
  for (const std::filesystem::path& path : paths) {
    std::ranges::move(parse_collective_series(read_expanded(path, most_bytes), path.string()),
                      std::back_inserter(all));
  }
  return all;
}

}  // namespace rubato

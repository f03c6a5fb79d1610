#include <cmath>

#include "models/calibration/network_measurements.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rubato::fuzz::require;
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    for (const rubato::CollectiveSeries& series : rubato::parse_collective_series(bytes, "input")) {
      require(!series.points.empty(), "a series has points");
      const double bus_gbs = series.endless_gbs(rubato::network_parameters(), 1.0);
      require(std::isfinite(bus_gbs) && bus_gbs > 0.0, "a bandwidth is a number > 0");
      require(series.group.nodes <= series.group.ranks, "a node has a rank");
      double last = 0.0;
      for (const rubato::CollectivePoint& point : series.points) {
        require(point.message_bytes > last && point.time_s > 0.0, "messages ascend, times are > 0");
        last = point.message_bytes;
      }
    }
  });
}

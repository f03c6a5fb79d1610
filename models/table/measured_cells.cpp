#include "models/table/measured_cells.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rubato {

bool MeasuredCells::Before::operator()(const ClockPair& a, const ClockPair& b) const noexcept {
  return std::tuple(a.mem.value, a.core_mhz, a.power_limit_w) <
         std::tuple(b.mem.value, b.core_mhz, b.power_limit_w);
}

MeasuredCells::MeasuredCells(std::size_t kernels, std::vector<ClockPair> clocks)
    : kernels_(kernels), clocks_(std::move(clocks)), cells_(kernels * clocks_.size()) {
  for (std::size_t c = 0; c < clocks_.size(); ++c) column_.emplace(clocks_[c], c);
}

void MeasuredCells::set(KernelId kernel, const ClockPair& clock, const OperatingPoint& point) {
  cells_[column_.at(clock) * kernels_ + index(kernel)] = point;
}

const OperatingPoint* MeasuredCells::find(KernelId kernel, const ClockPair& clock) const {
  const std::span<const OperatingPoint> cells = at(clock);
  if (cells.empty() || !(cells[index(kernel)].time_s > 0.0)) return nullptr;
  return &cells[index(kernel)];
}

std::span<const OperatingPoint> MeasuredCells::at(const ClockPair& clock) const {
  const auto column = column_.find(clock);
  if (column == column_.end()) return {};
  return std::span(cells_).subspan(column->second * kernels_, kernels_);
}

std::size_t MeasuredCells::measured_at(const ClockPair& clock) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      at(clock), [](const OperatingPoint& cell) { return cell.time_s > 0.0; }));
}

}  // namespace rubato

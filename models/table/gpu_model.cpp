#include "models/table/gpu_model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "models/gpu/device.hpp"
#include "models/kernel/coefficients.hpp"

namespace rubato {

std::string_view name_of(CoefficientSource value) noexcept {
  switch (value) {
    case CoefficientSource::measured: return "measured";
    case CoefficientSource::anchored: return "anchored";
    case CoefficientSource::scaled: return "scaled";
    case CoefficientSource::derived: return "derived";
    case CoefficientSource::guessed: break;
  }
  return "guessed";
}

CoefficientSource source_of(const AnchoredKernel& kernel) noexcept {
  return kernel.split == SplitSource::fit ? CoefficientSource::measured
                                          : CoefficientSource::anchored;
}

std::optional<FoundCoefficients> find_coefficients(const GpuSpec& spec, const Kernel& kernel) {
  if (const CalibratedKernel* known = calibrated_kernel(spec, kernel))
    return {{carried_over(*known, kernel, spec.sm_count), work_moved(*known, kernel) > 0.0
                                                              ? CoefficientSource::scaled
                                                              : CoefficientSource::measured}};
  if (const auto from_class = derived(spec, kernel)) {
    const bool fitted = spec.calibrated && kernel.kind != KernelClass::other;
    return {{*from_class, fitted ? CoefficientSource::derived : CoefficientSource::guessed}};
  }
  if (const auto from_peaks = guessed(spec, kernel))
    return {{*from_peaks, CoefficientSource::guessed}};
  return std::nullopt;
}

bool captured_here(const GpuSpec& spec, const Trace& trace) {
  return !trace.captured || match_device(spec, trace.captured->device) != DeviceMatch::other;
}

namespace {

// Which kernels were measured at every clock, shape [kernels].
std::vector<bool> whole_kernels(const MeasuredCells& measured) {
  std::vector<bool> whole(measured.kernels(), true);
  for (const ClockPair& clock : measured.clocks()) {
    const std::span<const OperatingPoint> cells = measured.at(clock);
    for (std::size_t k = 0; k < cells.size(); ++k) {
      if (!(cells[k].time_s > 0.0)) whole[k] = false;
    }
  }
  return whole;
}

}  // namespace

bool GpuModel::bind(const Kernel& kernel, std::optional<ClockPair> captured) {
  const double limit_w = spec_.power_limit.limit_w;
  std::optional<CapturePoint> anchor;
  FoundCoefficients bound{{}, CoefficientSource::guessed};
  bool dropped = false;
  if (captured && kernel.measured_time_s) {
    anchor = CapturePoint{*captured, *kernel.measured_time_s, limit_w};
    const AnchoredKernel own = anchored(spec_, kernel, *anchor);
    bound = {own.coefficients, source_of(own)};
    dropped = own.flops_dropped || own.bytes_dropped;
  } else if (const auto found = find_coefficients(spec_, kernel)) {
    bound = *found;
  } else if (kernel.measured_time_s) {
    // Captured on another GPU, and nothing else is known: its time there is a guess.
    bound.coefficients =
        anchored(spec_, kernel, {spec_.default_clock, *kernel.measured_time_s, limit_w})
            .coefficients;
  } else {
    return false;
  }
  coefficients_.push_back(bound.coefficients);
  sources_.push_back(bound.source);
  anchors_.push_back(anchor);
  work_dropped_.push_back(dropped);
  return true;
}

// A kernel all of whose cells were measured.
void GpuModel::bind_measured() {
  coefficients_.emplace_back();
  sources_.push_back(CoefficientSource::measured);
  anchors_.emplace_back();
  work_dropped_.push_back(false);
}

GpuModel::GpuModel(GpuSpec spec, const Trace& trace, std::optional<double> power_limit_w,
                   std::shared_ptr<const MeasuredCells> measured)
    : spec_(std::move(spec)),
      power_limit_w_(accepted_power_limit_w(spec_, power_limit_w)),
      measured_(std::move(measured)) {
  std::optional<ClockPair> captured;
  if (captured_here(spec_, trace))
    captured = captured_clock(spec_, trace.captured ? trace.captured->clock : std::nullopt);
  const std::vector<bool> whole = measured_ ? whole_kernels(*measured_) : std::vector<bool>{};
  ErrorList errors;
  for (const Kernel& kernel : trace.kernels) {
    if (measured_ && whole[kernels()]) {
      bind_measured();
      continue;
    }
    if (bind(kernel, captured)) continue;
    errors.add(fmt::format(
        "kernel '{}': {} knows no coefficients for class '{}' without FLOPs and DRAM bytes",
        kernel.name, spec_.name, name_of(kernel.kind)));
  }
  errors.throw_if_any({.in = trace.name, .hint = "add flops and dram_bytes to the trace"});
}

GpuModel GpuModel::with(std::vector<KernelCoefficients> coefficients) const {
  GpuModel other = *this;
  other.coefficients_ = std::move(coefficients);
  return other;
}

OperatingPoint GpuModel::evaluate(KernelId kernel, const ClockPair& clock) const {
  if (measured_) {
    if (const OperatingPoint* cell = measured_->find(kernel, clock)) return *cell;
    if (!(coefficients_[index(kernel)].core_cycles > 0.0))
      throw DataError("a kernel was not measured at a clock that is asked for");
  }
  return operating_point(spec_, coefficients_[index(kernel)], clock, power_limit_w_);
}

double GpuModel::idle_power_w(const ClockPair& clock) const {
  return waiting_power_w(spec_, spec_.mem_states[index(clock.mem)],
                         effective_core_mhz(spec_, clock));
}

std::vector<OperatingPoint> evaluate_all(const GpuModel& model, const ClockGrid& grid) {
  const GpuSpec& spec = model.spec();
  std::vector<ClockState> states;
  std::vector<std::span<const OperatingPoint>> known;  // what was measured at each clock
  std::vector<std::size_t> alike;  // the first clock of the same memory state and power limit
  for (const ClockPair& clock : grid.pairs()) {
    known.push_back(model.measured() != nullptr ? model.measured()->at(clock)
                                                : std::span<const OperatingPoint>{});
    states.push_back(
        clock_state(spec, spec.mem_states[index(clock.mem)], effective_core_mhz(spec, clock)));
    const auto same = std::ranges::find_if(grid.pairs(), [&](const ClockPair& other) {
      return other.mem == clock.mem && other.power_limit_w == clock.power_limit_w;
    });
    alike.push_back(static_cast<std::size_t>(same - grid.pairs().begin()));
  }
  std::vector<OperatingPoint> cells(model.kernels() * grid.size());
  parallel_for(model.kernels(), [&](std::size_t k) {
    const KernelCoefficients& kernel = model.coefficients(id_at<KernelId>(k));
    std::vector<std::optional<OperatingPoint>> regulated(grid.size());
    for (std::size_t c = 0; c < grid.size(); ++c) {
      if (model.measured() != nullptr) {
        const bool measured = !known[c].empty() && known[c][k].time_s > 0.0;
        cells[k * grid.size() + c] =
            measured ? known[c][k] : model.evaluate(id_at<KernelId>(k), grid.pairs()[c]);
        continue;
      }
      const ClockPair& clock = grid.pairs()[c];
      const double limit_w = clock.power_limit_w.value_or(model.power_limit_w());
      OperatingPoint point = unlimited_point(states[c], kernel);
      if (!within_limit(spec, kernel, point, limit_w)) {
        auto& found = regulated[alike[c]];
        if (!found)
          found = regulated_point(spec, kernel, spec.mem_states[index(clock.mem)], limit_w);
        point = *found;
      }
      cells[k * grid.size() + c] = point;
    }
  });
  return cells;
}

ProfileTable profile_table(std::span<const OperatingPoint> cells, std::size_t kernels,
                           std::size_t clocks) {
  std::vector<double> time_s(cells.size());
  std::vector<double> energy_j(cells.size());
  std::ranges::transform(cells, time_s.begin(), &OperatingPoint::time_s);
  std::ranges::transform(cells, energy_j.begin(), &OperatingPoint::energy_j);
  return {kernels, clocks, std::move(time_s), std::move(energy_j)};
}

}  // namespace rubato

#include "models/calibration/paper_parameters.hpp"

#include <algorithm>
#include <cmath>

#include "models/gpu/spec_parameters.hpp"

namespace rubato {

namespace {

// Rough values to start from, by memory clock: what the shape of the published sweeps and the data
// sheet suggest before any fit.
double start_base_power_w(double mem_mhz) { return 27.0 + 0.006 * mem_mhz; }

// Time of the kernel that DRAM bounds most, over its time at a memory clock of 9501 MHz and the
// same core clock: srad at 5001 and 810 MHz, 2dconv at 405 MHz (apAdomas/GPU-FREQUENCY-DVFS
// 13eb4b4). The paper's numbers alone leave it open, as bytes and bandwidth of a GEMM may scale
// together.
double streaming_slowdown(double mem_mhz) {
  if (mem_mhz < 500.0) return 31.1;
  if (mem_mhz < 1000.0) return 13.5;
  return mem_mhz < 6000.0 ? 1.79 : 9501.0 / mem_mhz;
}
double start_bandwidth_gbs(double mem_mhz) {
  constexpr double sheet_gbs = 912.1;  // 384 bit, two transfers per cycle, 9501 MHz
  constexpr double reached = 0.94;     // gelu and layernorm of the paper at automatic clocks
  return reached * sheet_gbs / streaming_slowdown(mem_mhz);
}

}  // namespace

std::vector<double> voltage_knots() {
  return {210.0, 1050.0, 1260.0, 1470.0, 1680.0, 1800.0, 1890.0, 1965.0};
}

SharedLayout::SharedLayout(const GpuSpec& frame)
    : states_(static_cast<Eigen::Index>(frame.mem_states.size())),
      steps_(static_cast<Eigen::Index>(voltage_knots().size()) - 1) {
  Eigen::Index next = 0;
  const auto take = [&next](Eigen::Index count) {
    const Eigen::Index at = next;
    next += count;
    return at;
  };
  lowest_ = take(1);
  boost_ = take(states_);
  voltage_ = take(steps_);
  base_power_ = take(states_);
  clock_ = take(1);
  bandwidth_ = take(states_);
  crossbar_ = take(1);
  limit_ = take(1);
  auto_voltage_ = take(1);
  overlap_ = take(1);
  dram_ = take(1);
  leakage_ = take(1);
  price_ = take(1);
  card_power_ = take(1);
  card_voltage_ = take(1);
  size_ = next;
}

Eigen::VectorXd SharedLayout::start() const {
  Eigen::VectorXd x(size_);
  const std::vector<double> mem_mhz{405.0, 810.0, 5001.0, 9251.0, 9501.0, 9501.0};
  x[lowest_] = std::log(245.0 / 210.0);
  const std::vector<double> voltage_steps{0.02, 0.02, 0.05, 0.12, 0.12, 0.15, 0.1};
  for (Eigen::Index i = 0; i < steps_; ++i)
    x[voltage_ + i] = std::log(voltage_steps[static_cast<std::size_t>(i)]);
  for (Eigen::Index i = 0; i < states_; ++i) {
    const double mhz = mem_mhz[static_cast<std::size_t>(i) % mem_mhz.size()];
    x[boost_ + i] = std::log(1850.0);
    x[base_power_ + i] = std::log(start_base_power_w(mhz));
    x[bandwidth_ + i] = std::log(start_bandwidth_gbs(mhz));
  }
  x[clock_] = std::log(0.02);
  x[crossbar_] = std::log(1.6);
  x[limit_] = std::log(0.97);
  x[auto_voltage_] = std::log(0.15);
  x[overlap_] = std::log(8.0);
  x[dram_] = std::log(0.030);
  x[leakage_] = std::log(5.0);
  x[price_] = std::log(400.0);
  x[card_power_] = std::log(0.9);
  x[card_voltage_] = 0.0;
  return x;
}

Eigen::VectorXd SharedLayout::prior_weights() const {
  Eigen::VectorXd weights = Eigen::VectorXd::Constant(size_, 0.3);
  weights.segment(boost_, states_).setConstant(50.0);      // the ceiling is known to about 2 %
  weights.segment(bandwidth_, states_).setConstant(50.0);  // so is what streaming kernels reach
  return weights;
}

GpuSpec SharedLayout::spec(const GpuSpec& frame, const Eigen::VectorXd& x) const {
  GpuSpec spec = frame;
  const auto value = [&x](Eigen::Index i) { return std::exp(x[i]); };
  // Below the second sweep clock requests are interpolated; from there on they are exact.
  spec.core.requested_mhz = {frame.core.min_mhz, 2.0 * frame.core.min_mhz};
  spec.core.effective_mhz = {frame.core.min_mhz * std::min(value(lowest_), 2.0),
                             2.0 * frame.core.min_mhz};
  const std::vector<double> knots = voltage_knots();
  spec.voltage = {knots, {1.0}};
  for (Eigen::Index i = 0; i < steps_; ++i) {
    spec.voltage.relative_v.push_back(spec.voltage.relative_v.back() + value(voltage_ + i));
  }
  for (Eigen::Index i = 0; i < states_; ++i) {
    MemState& state = spec.mem_states[static_cast<std::size_t>(i)];
    state.boost_mhz = value(boost_ + i);
    state.base_power_w = value(base_power_ + i);
    state.bandwidth_gbs = value(bandwidth_ + i);
    state.voltage_scale = state.name == "auto" ? 1.0 + value(auto_voltage_) : 1.0;
  }
  order_bandwidths(spec.mem_states);
  spec.shared = {.leakage_w = value(leakage_),
                 .clock_w_per_mhz = value(clock_),
                 .dram_nj_per_byte = value(dram_),
                 .crossbar_bytes_per_cycle = value(crossbar_) * 1e3,  // from GB/s per MHz
                 .bandwidth_exponent = 6.0,
                 .overlap_exponent = value(overlap_)};
  spec.power_limit.regulated_frac = value(limit_);
  return spec;
}

std::optional<Eigen::VectorXd> SharedLayout::parameters_of(const GpuSpec& spec) const {
  if (std::ssize(spec.mem_states) != states_ || spec.voltage.core_mhz != voltage_knots() ||
      spec.core.effective_mhz.empty())
    return std::nullopt;
  Eigen::VectorXd x = start();
  x[lowest_] = std::log(spec.core.effective_mhz.front() / spec.core.min_mhz);
  const std::vector<double>& volts = spec.voltage.relative_v;
  for (Eigen::Index i = 0; i < steps_; ++i) {
    const auto next = static_cast<std::size_t>(i) + 1;
    x[voltage_ + i] = std::log(volts[next] - volts[next - 1]);
  }
  for (Eigen::Index i = 0; i < states_; ++i) {
    const MemState& state = spec.mem_states[static_cast<std::size_t>(i)];
    x[boost_ + i] = std::log(state.boost_mhz);
    x[base_power_ + i] = std::log(state.base_power_w);
    x[bandwidth_ + i] = std::log(state.bandwidth_gbs);
    if (state.name == "auto") x[auto_voltage_] = std::log(state.voltage_scale - 1.0);
  }
  x[clock_] = std::log(spec.shared.clock_w_per_mhz);
  x[crossbar_] = std::log(spec.shared.crossbar_bytes_per_cycle * 1e-3);
  x[limit_] = std::log(spec.power_limit.regulated_frac);
  x[overlap_] = std::log(spec.shared.overlap_exponent);
  x[dram_] = std::log(spec.shared.dram_nj_per_byte);
  x[leakage_] = std::log(spec.shared.leakage_w);
  if (!x.allFinite()) return std::nullopt;
  return x;
}

std::vector<bool> SharedLayout::in_specs() const {
  std::vector<bool> in(static_cast<std::size_t>(size_), true);
  for (const Eigen::Index i : {price_, card_power_, card_voltage_})
    in[static_cast<std::size_t>(i)] = false;
  return in;
}

bool SharedLayout::moves_cells(const GpuSpec& frame, Eigen::Index parameter, const ClockPair& clock,
                               bool of_sweep) const {
  const auto state = static_cast<Eigen::Index>(index(clock.mem));
  for (const Eigen::Index first : {boost_, base_power_}) {
    if (parameter >= first && parameter < first + states_) return parameter == first + state;
  }
  if (parameter >= bandwidth_ && parameter < bandwidth_ + states_) {  // as they are put in order
    const MemState& moved = frame.mem_states[static_cast<std::size_t>(parameter - bandwidth_)];
    return parameter == bandwidth_ + state ||
           moved.mem_mhz > frame.mem_states[index(clock.mem)].mem_mhz;
  }
  if (parameter == auto_voltage_) return frame.mem_states[index(clock.mem)].name == "auto";
  if (parameter == lowest_)  // as `spec` interpolates requests
    return !clock.core_mhz || *clock.core_mhz < 2.0 * frame.core.min_mhz;
  if (parameter == card_power_ || parameter == card_voltage_) return of_sweep;
  return parameter != price_;
}

GpuSpec SharedLayout::sweep_card(const GpuSpec& spec, const Eigen::VectorXd& x) const {
  GpuSpec card = spec;
  for (double& v : card.voltage.relative_v) v = 1.0 + (v - 1.0) * std::exp(x[card_voltage_]);
  for (MemState& state : card.mem_states) state.base_power_w *= std::exp(x[card_power_]);
  return card;
}

double SharedLayout::time_price_w(const Eigen::VectorXd& x) const { return std::exp(x[price_]); }

}  // namespace rubato

#include "sim/sharing/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/range.hpp"
#include "models/linear/levenberg_marquardt.hpp"

namespace rubato {

namespace {

// Sizes of the block in fp16: 4096 tokens a sequence, 2 sequences, 2048 hidden, 2 ranks.
constexpr double tokens = 4096.0 * 2.0, hidden = 2048.0, ranks = 2.0, element_bytes = 2.0;
constexpr double activation_bytes = tokens * hidden * element_bytes;
constexpr double qkv_bytes = 3.0 * activation_bytes / ranks;
constexpr double qkv_flops = 2.0 * tokens * hidden * 3.0 * hidden / ranks;
constexpr double projection_flops = 2.0 * tokens * hidden * hidden / ranks;
constexpr double weight_bytes = hidden * hidden * element_bytes / ranks;  // of the projection
constexpr double traffic_bytes = activation_bytes * 2.0 * (ranks - 1.0) / ranks;  // a ring's
// Bytes that bias, dropout and add move, as a share of theirs and the layer norm's together: 7.5
// and 2 passes over the activations.
constexpr double dropout_add_share = 7.5 / 9.5;

enum Parameter : std::size_t {
  elementwise_s,
  qkv_s,
  bias_s,
  rotary_s,
  attention_s,  // the block at the highest clock
  base_w,
  voltage,
  core_w,     // the card
  latency_s,  // the collective
  sm_gbs,
  threads_exponent,
  core_share,
  load_slowdown,
  dram_weight,
  sm_w
};

KernelCoefficients memory_bound(double time_s, const ClockState& top) {
  constexpr double core_part = 0.1;  // of the DRAM time
  return {.core_cycles = core_part * time_s / top.s_per_cycle,
          .dram_bytes = time_s / top.s_per_byte,
          .fixed_s = 1e-6};
}

KernelCoefficients core_bound(double time_s, double dram_bytes, const ClockState& top) {
  return {.core_cycles = time_s / top.s_per_cycle, .dram_bytes = dram_bytes, .fixed_s = 1e-6};
}

// The kernel that a window of the source starts with. The source numbers nine parts: a linear layer
// is two, a GEMM and its bias. Part 4, the split, moves nothing. The collective waits for the
// second part before its first: docs/contention.md.
std::size_t first_kernel(int op) {
  static const std::map<int, std::size_t> kernels{{0, 0}, {2, 1}, {3, 2}, {5, 4}, {6, 4}};
  const auto found = kernels.find(op);
  if (found == kernels.end())
    throw UsageError(fmt::format("no window of the measurements starts at part {}", op));
  return found->second;
}

std::size_t end_kernel(int op) {
  static const std::map<int, std::size_t> kernels{{1, 2}, {2, 3}, {4, 4}, {5, 5}, {6, 6}};
  const auto found = kernels.find(op);
  if (found == kernels.end())
    throw UsageError(fmt::format("no window of the measurements ends at part {}", op));
  return found->second;
}

// Prior standard deviation of the logarithm of a parameter, next to errors of 1 %. The prior
// decides where the rows say nothing: one clock alone, for example, says nothing of how cores and
// voltage follow the clock.
constexpr double prior_width = 0.25;

}  // namespace

namespace {

std::vector<OverlapRow> rows_of(const CsvTable& table) {
  ErrorList errors;
  std::vector<OverlapRow> rows;
  const auto column = [&](const char* name) { return table.column(name); };
  const std::size_t mhz = column("core_mhz"), first = column("overlap_first_op"),
                    last = column("overlap_last_op"), sms = column("comm_sms"),
                    threads = column("comm_block_threads"), time = column("time_s"),
                    energy = column("energy_j");
  for (std::size_t i = 0; i < table.rows(); ++i) {
    OverlapRow row;
    if (table.cell(i, mhz) != "auto") row.core_mhz = table.number(i, mhz, Range::positive, errors);
    row.first_op = static_cast<int>(table.number(i, first, Range::any, errors).value_or(-1.0));
    row.last_op = static_cast<int>(table.number(i, last, Range::any, errors).value_or(-1.0));
    row.comm_sms = table.number(i, sms, Range::positive, errors).value_or(1.0);
    row.comm_block_threads = table.number(i, threads, Range::positive, errors).value_or(1.0);
    row.time_s = table.number(i, time, Range::positive, errors).value_or(1.0);
    row.energy_j = table.number(i, energy, Range::positive, errors).value_or(1.0);
    rows.push_back(row);
  }
  errors.throw_if_any();
  return rows;
}

}  // namespace

std::vector<OverlapRow> read_overlap_rows(const std::filesystem::path& path) {
  return rows_of(CsvTable::read(path));
}

std::vector<OverlapRow> overlap_rows(std::string_view csv, std::string name) {
  return rows_of(CsvTable::parse(csv, std::move(name)));
}

const std::array<std::string_view, OverlapBlock::count> OverlapBlock::names{
    "elementwise_s",    "qkv_s",      "bias_s",        "rotary_s",    "attention_s",
    "base_w",           "voltage",    "core_w",        "latency_s",   "sm_gbs",
    "threads_exponent", "core_share", "load_slowdown", "dram_weight", "sm_w"};

OverlapBlock OverlapBlock::prior() {
  return {{250e-6, 400e-6, 70e-6, 300e-6, 800e-6, 45.0, 1.0, 150.0, 150e-6, 7.0, 0.8, 0.5, 0.5, 1.0,
           0.5}};
}

CollectiveSharing OverlapBlock::sharing() const {
  CollectiveSharing sharing;
  sharing.sm_gbs = values[sm_gbs];
  sharing.threads_exponent = values[threads_exponent];
  sharing.core_share = values[core_share];
  sharing.load_slowdown = values[load_slowdown];
  sharing.dram_weight = values[dram_weight];
  sharing.sm_w = values[sm_w];
  return sharing;
}

GpuSpec OverlapBlock::card(const GpuSpec& a100) const {
  constexpr double bandwidth_of_40gb = 1555.0 / 2039.0;  // HBM2 over HBM2e, data sheets
  GpuSpec card = a100;
  for (MemState& state : card.mem_states) {
    state.bandwidth_gbs *= bandwidth_of_40gb;
    state.base_power_w = values[base_w];
    state.voltage_scale = values[voltage];
  }
  return card;
}

OverlapCost OverlapBlock::predict(const GpuSpec& card, const OverlapRow& row) const {
  const ClockState top = clock_state(card, card.default_clock, false);
  const double t = values[elementwise_s], qkv = values[qkv_s];
  OverlappedSequence block;
  block.kernels = {memory_bound(dropout_add_share * t, top),
                   memory_bound((1.0 - dropout_add_share) * t, top),
                   core_bound(qkv, activation_bytes + qkv_bytes + 3.0 * weight_bytes, top),
                   memory_bound(values[bias_s], top),
                   memory_bound(values[rotary_s], top),
                   core_bound(values[attention_s], qkv_bytes + activation_bytes / ranks, top),
                   core_bound(qkv * projection_flops / qkv_flops,
                              activation_bytes / ranks + activation_bytes + weight_bytes, top)};
  for (KernelCoefficients& kernel : block.kernels)
    kernel.core_j = values[core_w] * kernel.core_cycles * top.s_per_cycle;
  block.sm_share.assign(block.kernels.size(), 1.0);
  if (row.first_op >= 0) {
    block.first = first_kernel(row.first_op);
    block.end = end_kernel(row.last_op);
  }
  const CollectiveSharing shared = sharing();
  const ClockPair clock{card.default_clock.mem, row.core_mhz};
  return overlap_cost(card, shared, block,
                      {collective_on_sms(shared, values[latency_s], traffic_bytes, row.comm_sms,
                                         row.comm_block_threads),
                       row.comm_sms},
                      clock, card.power_limit.limit_w);
}

OverlapBlock fit_overlap(const GpuSpec& a100, std::span<const OverlapRow> rows) {
  const auto parameters = static_cast<Eigen::Index>(OverlapBlock::count);
  const auto data = static_cast<Eigen::Index>(2 * rows.size());
  const OverlapBlock prior = OverlapBlock::prior();
  Eigen::VectorXd start(parameters);
  for (Eigen::Index i = 0; i < parameters; ++i)
    start[i] = std::log(prior.values[static_cast<std::size_t>(i)]);
  const auto at = [](const Eigen::VectorXd& point) {
    OverlapBlock block;
    for (std::size_t i = 0; i < OverlapBlock::count; ++i)
      block.values[i] = std::exp(point[static_cast<Eigen::Index>(i)]);
    return block;
  };
  const auto residuals = [&](const Eigen::VectorXd& point) {
    const OverlapErrors errors = overlap_errors(a100, at(point), rows);
    Eigen::VectorXd all(data + parameters);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      all[static_cast<Eigen::Index>(2 * i)] = 100.0 * errors.time[i];
      all[static_cast<Eigen::Index>(2 * i + 1)] = 100.0 * errors.energy[i];
    }
    all.tail(parameters) = (point - start) / prior_width;
    return all;
  };
  const auto jacobian = [&](const Eigen::VectorXd& point, const Eigen::VectorXd& here) {
    constexpr double step = 1e-4;
    Eigen::MatrixXd slopes(here.size(), point.size());
    for (Eigen::Index i = 0; i < point.size(); ++i) {
      Eigen::VectorXd moved = point;
      moved[i] += step;
      slopes.col(i) = (residuals(moved) - here) / step;
    }
    return slopes;
  };
  constexpr int iterations = 100;
  constexpr double max_step = 0.3;
  return at(
      levenberg_marquardt(LeastSquaresProblem{residuals, jacobian}, start, iterations, max_step));
}

double OverlapErrors::mean_magnitude(std::span<const double> errors) {
  double sum = 0.0;
  for (const double error : errors) sum += std::abs(error);
  return errors.empty() ? 0.0 : sum / static_cast<double>(errors.size());
}

double OverlapErrors::worst_magnitude(std::span<const double> errors) {
  double worst = 0.0;
  for (const double error : errors) worst = std::max(worst, std::abs(error));
  return worst;
}

OverlapErrors overlap_errors(const GpuSpec& a100, const OverlapBlock& block,
                             std::span<const OverlapRow> rows) {
  const GpuSpec card = block.card(a100);
  OverlapErrors errors;
  for (const OverlapRow& row : rows) {
    const OverlapCost cost = block.predict(card, row);
    errors.time.push_back(cost.time_s / row.time_s - 1.0);
    errors.energy.push_back(cost.energy_j / row.energy_j - 1.0);
  }
  return errors;
}

OverlapErrors cross_validated(const GpuSpec& a100, std::span<const OverlapRow> rows,
                              OverlapFold fold) {
  const auto group = [fold](const OverlapRow& row) -> std::pair<double, double> {
    switch (fold) {
      case OverlapFold::clock: return {row.core_mhz.value_or(0.0), 0.0};
      case OverlapFold::comm_sms: return {row.comm_sms, 0.0};
      case OverlapFold::window: return {row.first_op, row.last_op};
      case OverlapFold::block_threads: return {row.comm_block_threads, 0.0};
    }
    return {};
  };
  std::set<std::pair<double, double>> groups;
  for (const OverlapRow& row : rows) groups.insert(group(row));
  OverlapErrors errors{std::vector<double>(rows.size()), std::vector<double>(rows.size())};
  for (const auto& left_out : groups) {
    std::vector<OverlapRow> others, held;
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (group(rows[i]) != left_out) {
        others.push_back(rows[i]);
        continue;
      }
      held.push_back(rows[i]);
      at.push_back(i);
    }
    const OverlapErrors found = overlap_errors(a100, fit_overlap(a100, others), held);
    for (std::size_t i = 0; i < at.size(); ++i) {
      errors.time[at[i]] = found.time[i];
      errors.energy[at[i]] = found.energy[i];
    }
  }
  return errors;
}

}  // namespace rubato

#include "models/gpu/spec.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "models/gpu/spec_laws.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/gpu/spec_power.hpp"
#include "traces/files/json_names.hpp"
#include "traces/plausible.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_gpu_specs();

GpuSpec::GpuSpec() = default;
GpuSpec::GpuSpec(const GpuSpec& other) = default;
GpuSpec::GpuSpec(GpuSpec&& other) noexcept = default;
GpuSpec& GpuSpec::operator=(const GpuSpec& other) = default;
GpuSpec& GpuSpec::operator=(GpuSpec&& other) noexcept = default;
GpuSpec::~GpuSpec() = default;

namespace {

void read_ascending(const JsonNode& node, const std::vector<double>& values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= values[i - 1]) node.fail("the values must ascend");
  }
}

void check_plausible(const JsonNode& node, const char* key, std::string_view unit,
                     const Bounds& bounds, Quantity quantity) {
  const std::array columns{ReadColumn{.name = key, .quantity = quantity}};
  if (const auto wrong = implausible(key, node.number(), unit, bounds, columns)) node.fail(*wrong);
}

// Every section but name, title and the like carries its source.
JsonNode section(const JsonNode& root, std::string_view key, GpuSpec& spec) {
  JsonNode node = root.at(key);
  spec.sources[std::string(key)] = node.at("source").text();
  return node;
}

void read_mem_states(const JsonNode& root, GpuSpec& spec) {
  const JsonNode node = section(root, "memory", spec);
  node.expect_keys(
      {"source", "states", "dram_nj_per_byte", "crossbar_bytes_per_cycle", "bandwidth_exponent"},
      {"crossbar_core_mhz", "crossbar_relative"});
  for (const JsonNode& item : node.at("states").items()) {
    item.expect_keys({"name", "mem_mhz", "boost_mhz", "bandwidth_gbs", "base_power_w"},
                     {"max_core_mhz", "voltage_scale"});
    spec.mem_states.push_back(
        {.name = item.at("name").text(),
         .mem_mhz = item.at("mem_mhz").number(Range::positive),
         .boost_mhz = item.at("boost_mhz").number(Range::positive),
         .max_core_mhz = item.optional_number("max_core_mhz", Range::positive),
         .bandwidth_gbs = item.at("bandwidth_gbs").number(Range::positive),
         .base_power_w = item.at("base_power_w").number(Range::positive),
         .voltage_scale = item.optional_number("voltage_scale", Range::positive).value_or(1.0)});
  }
  if (spec.mem_states.empty())
    node.at("states").fail("the list is empty; expected at least one state");
  spec.shared.dram_nj_per_byte = node.at("dram_nj_per_byte").number(Range::non_negative);
  spec.shared.crossbar_bytes_per_cycle =
      node.at("crossbar_bytes_per_cycle").number(Range::positive);
  spec.shared.bandwidth_exponent = node.at("bandwidth_exponent").number(Range::positive);
  if (const auto clocks = node.find("crossbar_core_mhz")) {
    const JsonNode relative = node.at("crossbar_relative");
    spec.crossbar = {clocks->numbers(Range::positive), relative.numbers(Range::positive)};
    read_ascending(*clocks, spec.crossbar.core_mhz);
    if (spec.crossbar.core_mhz.size() != spec.crossbar.relative.size())
      relative.fail("must have as many values as crossbar_core_mhz");
  }
}

void read_core(const JsonNode& root, GpuSpec& spec) {
  const JsonNode clocks = section(root, "core_clocks", spec);
  clocks.expect_keys({"source", "min_mhz", "max_mhz", "step_mhz"},
                     {"requested_mhz", "effective_mhz"});
  spec.core = {.min_mhz = clocks.at("min_mhz").number(Range::positive),
               .max_mhz = clocks.at("max_mhz").number(Range::positive),
               .step_mhz = clocks.at("step_mhz").number(Range::positive),
               .requested_mhz = {},
               .effective_mhz = {}};
  for (const char* key : {"min_mhz", "max_mhz"})
    check_plausible(clocks.at(key), key, "MHz", core_clock_mhz, Quantity::clock);
  if (spec.core.min_mhz > spec.core.max_mhz) clocks.at("min_mhz").fail("is above max_mhz");
  if (const auto requested = clocks.find("requested_mhz")) {
    spec.core.requested_mhz = requested->numbers(Range::positive);
    read_ascending(*requested, spec.core.requested_mhz);
  }
  if (const auto effective = clocks.find("effective_mhz"))
    spec.core.effective_mhz = effective->numbers(Range::positive);
  if (spec.core.requested_mhz.size() != spec.core.effective_mhz.size())
    clocks.fail("requested_mhz and effective_mhz must have as many values");

  const JsonNode power = section(root, "core_power", spec);
  power.expect_keys({"source", "leakage_w", "clock_w_per_mhz"}, {"voltage_core_mhz", "relative_v"});
  spec.shared.leakage_w = power.at("leakage_w").number(Range::non_negative);
  spec.shared.clock_w_per_mhz = power.at("clock_w_per_mhz").number(Range::non_negative);
  if (spec.operators && !power.find("voltage_core_mhz")) {
    spec.voltage = curve_of(spec.operators->voltage, spec.core);
    return;
  }
  spec.voltage = {power.at("voltage_core_mhz").numbers(Range::positive),
                  power.at("relative_v").numbers(Range::positive)};
  read_ascending(power.at("voltage_core_mhz"), spec.voltage.core_mhz);
  if (spec.voltage.core_mhz.empty() ||
      spec.voltage.core_mhz.size() != spec.voltage.relative_v.size()) {
    power.at("relative_v").fail("must have as many values as voltage_core_mhz, at least one");
  }
  if (!std::ranges::is_sorted(spec.voltage.relative_v))
    power.at("relative_v").fail("must not fall");
}

void read_switching(const JsonNode& node, SwitchLatency& known) {
  node.expect_keys({"source"}, {"core_s", "core_stall_s", "core_j", "mem_s", "mem_stall_s", "mem_j",
                                "dwell_s", "guess"});
  const auto optional = [&node](const char* key) {
    return node.optional_number(key, Range::non_negative);
  };
  known = {.core_s = optional("core_s"),
           .mem_s = optional("mem_s"),
           .core_stall_s = optional("core_stall_s").value_or(0.0),
           .mem_stall_s = optional("mem_stall_s").value_or(0.0),
           .core_j = optional("core_j").value_or(0.0),
           .mem_j = optional("mem_j").value_or(0.0),
           .dwell_s = optional("dwell_s").value_or(0.0),
           .guess = {}};
  if (const auto guess = node.find("guess")) known.guess = guess->text();
  if (known.core_stall_s > known.core_s.value_or(0.0))
    node.at("core_stall_s").fail("is longer than core_s, the latency it is part of");
  if (known.mem_stall_s > known.mem_s.value_or(0.0))
    node.at("mem_stall_s").fail("is longer than mem_s, the latency it is part of");
}

void read_limits(const JsonNode& root, GpuSpec& spec) {
  const JsonNode limit = section(root, "power_limit", spec);
  limit.expect_keys({"source", "limit_w", "min_w", "max_w", "regulated_frac"});
  spec.power_limit = {limit.at("limit_w").number(Range::positive),
                      limit.at("min_w").number(Range::positive),
                      limit.at("max_w").number(Range::positive),
                      limit.at("regulated_frac").number(Range::positive)};
  for (const char* key : {"limit_w", "min_w", "max_w"})
    check_plausible(limit.at(key), key, "W", board_power_w, Quantity::power);
  const JsonNode chip = section(root, "chip", spec);
  chip.expect_keys({"source", "sm_count", "link_gbs", "overlap_exponent"},
                   {"compute_capability", "memory_gb", "pcie_gbs", "peak_flop_per_cycle"});
  spec.compute_capability = chip.optional_number("compute_capability", Range::positive);
  if (const auto memory = chip.find("memory_gb")) spec.memory_gb = memory->number(Range::positive);
  spec.sm_count = chip.at("sm_count").number(Range::positive);
  const bool known = spec.operators && spec.operators->paths.contains(Dtype::bf16);
  spec.peak_flop_per_cycle =
      known && !chip.find("peak_flop_per_cycle")
          ? spec.sm_count * spec.operators->paths.at(Dtype::bf16).flop_per_cycle_sm
          : chip.at("peak_flop_per_cycle").number(Range::positive);
  spec.link_gbs = chip.at("link_gbs").number(Range::positive);
  spec.shared.overlap_exponent = chip.at("overlap_exponent").number(Range::positive);
  read_switching(section(root, "switching", spec), spec.switching);
}

std::map<Dtype, double> read_rates(const JsonNode& node) {
  std::map<Dtype, double> rates;
  for (const std::string& key : node.keys()) {
    const auto dtype = from_name<Dtype>(key);
    if (!dtype || *dtype == Dtype::unknown)
      node.fail(
          fmt::format("unknown data type '{}'{}", key, did_you_mean(key, all_names<Dtype>())));
    rates[*dtype] = node.at(key).number(Range::positive);
  }
  return rates;
}

void read_peaks(const JsonNode& root, GpuSpec& spec) {
  if (!root.find("peaks")) {
    if (!spec.operators) return;
    for (const auto& [dtype, path] : spec.operators->paths) {
      const double rate = path.flop_per_cycle_sm * spec.sm_count;
      if (dtype != Dtype::fp32) spec.peaks.tensor_flop_per_cycle[dtype] = rate;
      if (dtype == Dtype::fp32 || dtype == Dtype::fp64)
        spec.peaks.cuda_flop_per_cycle[dtype] = rate;
    }
    spec.peaks.pcie_gbs = root.at("chip").optional_number("pcie_gbs", Range::positive);
    spec.sources["peaks"] = "of the architecture " + spec.architecture;
    return;
  }
  const JsonNode node = section(root, "peaks", spec);
  node.expect_keys({"source", "tensor_flop_per_cycle", "cuda_flop_per_cycle"}, {"pcie_gbs"});
  spec.peaks = {.tensor_flop_per_cycle = read_rates(node.at("tensor_flop_per_cycle")),
                .cuda_flop_per_cycle = read_rates(node.at("cuda_flop_per_cycle")),
                .pcie_gbs = node.optional_number("pcie_gbs", Range::positive)};
}

MemStateId mem_state_id(const JsonNode& node, const GpuSpec& spec) {
  const std::string name = node.text();
  const auto found = std::ranges::find(spec.mem_states, name, &MemState::name);
  if (found == spec.mem_states.end()) node.fail(fmt::format("there is no memory state '{}'", name));
  return id_at<MemStateId>(static_cast<std::size_t>(found - spec.mem_states.begin()));
}

std::optional<double> read_core_mhz(const JsonNode& node) {
  if (node.is_text() && node.text() == "auto") return std::nullopt;
  return node.number(Range::positive);
}

void read_grids(const JsonNode& root, GpuSpec& spec) {
  const JsonNode clock = root.at("default_clock");
  clock.expect_keys({"mem", "core"});
  spec.default_clock = {mem_state_id(clock.at("mem"), spec), read_core_mhz(clock.at("core"))};
  for (const JsonNode& item : root.at("grids").items()) {
    item.expect_keys({"name", "mem", "core"});
    NamedGrid grid{.name = item.at("name").text(), .mem_states = {}, .core_mhz = {}};
    for (const JsonNode& mem : item.at("mem").items()) {
      grid.mem_states.push_back(spec.mem_states[index(mem_state_id(mem, spec))].name);
    }
    const JsonNode core = item.at("core");
    if (core.is_text()) {
      if (core.text() != "all") core.fail("expected a list of clocks or \"all\"");
      constexpr double most_steps = 100'000.0;
      const double range = (spec.core.max_mhz - spec.core.min_mhz) / spec.core.step_mhz;
      if (!(range <= most_steps))
        core.fail(
            fmt::format("core_clocks has {:.3g} steps; expected at most {}", range, most_steps));
      const auto steps = static_cast<int>(std::lround(range));
      for (int i = 0; i <= steps; ++i)
        grid.core_mhz.emplace_back(spec.core.min_mhz + i * spec.core.step_mhz);
      grid.core_mhz.emplace_back(std::nullopt);
    } else {
      for (const JsonNode& mhz : core.items()) grid.core_mhz.push_back(read_core_mhz(mhz));
    }
    spec.grids.push_back(std::move(grid));
  }
}

KernelCoefficients read_coefficients(const JsonNode& node) {
  return {.core_cycles = node.at("core_cycles").number(Range::positive),
          .dram_bytes = node.at("effective_bytes").number(Range::positive),
          .fixed_s = node.at("fixed_s").number(Range::positive),
          .core_j = node.at("core_j").number(Range::non_negative),
          .limit_scale = node.at("limit_scale").number(Range::positive),
          .overlap_scale = node.at("overlap_scale").number(Range::positive),
          .idle_scale = node.optional_number("idle_scale", Range::positive).value_or(1.0)};
}

void read_kernels(const JsonNode& root, GpuSpec& spec) {
  spec.sources["kernels"] = spec.sources["classes"] = "none";
  if (!root.find("kernels")) return;
  const JsonNode node = section(root, "kernels", spec);
  node.expect_keys({"source", "list"});
  for (const JsonNode& item : node.at("list").items()) {
    item.expect_keys({"name", "class", "core_cycles", "effective_bytes", "fixed_s", "core_j",
                      "limit_scale", "overlap_scale"},
                     {"flops", "dram_bytes", "gemm", "dtype", "idle_scale"});
    CalibratedKernel kernel{.name = item.at("name").text(),
                            .kind = read_name<KernelClass>(item.at("class")),
                            .flops = item.optional_number("flops", Range::non_negative),
                            .dram_bytes = item.optional_number("dram_bytes", Range::positive),
                            .gemm = {},
                            .dtype = Dtype::unknown,
                            .coefficients = read_coefficients(item)};
    if (const auto dtype = item.find("dtype")) kernel.dtype = read_name<Dtype>(*dtype);
    if (const auto gemm = item.find("gemm")) {
      const auto mnkb = gemm->items();
      if (mnkb.size() != 4) gemm->fail("expected [m, n, k, batch]");
      kernel.gemm = GemmShape{mnkb[0].count(), mnkb[1].count(), mnkb[2].count(), mnkb[3].count()};
    }
    spec.kernels.push_back(std::move(kernel));
  }
  if (!root.find("classes")) return;
  const JsonNode classes = section(root, "classes", spec);
  classes.expect_keys({"source", "list"});
  for (const JsonNode& item : classes.at("list").items()) {
    item.expect_keys({"class", "cycles_per_unit", "dram_factor", "core_nj_per_unit", "fixed_s",
                      "overlap_scale"});
    spec.classes.push_back(
        {.kind = read_name<KernelClass>(item.at("class")),
         .cycles_per_unit = item.at("cycles_per_unit").number(Range::positive),
         .dram_factor = item.at("dram_factor").number(Range::positive),
         .core_nj_per_unit = item.at("core_nj_per_unit").number(Range::non_negative),
         .fixed_s = item.at("fixed_s").number(Range::positive),
         .overlap_scale = item.at("overlap_scale").number(Range::positive)});
  }
}

void read_fit(const JsonNode& root, GpuSpec& spec) {
  if (const auto range = root.find("fitted_range")) {
    range->expect_keys({"min_core_mhz", "max_core_mhz", "kernels", "points"});
    spec.fitted_range = FittedRange{range->at("min_core_mhz").number(Range::positive),
                                    range->at("max_core_mhz").number(Range::positive),
                                    range->at("kernels").count(), range->at("points").count()};
  }
  if (!root.find("uncertainty")) return;
  const JsonNode node = section(root, "uncertainty", spec);
  node.expect_keys({"source", "members"});
  const std::size_t shared = parameter_count(spec);
  const std::size_t all = shared + spec.kernels.size() * KernelCoefficients::count;
  for (const JsonNode& item : node.at("members").items()) {
    std::vector<double> member = item.numbers();
    if (member.size() != shared && member.size() != all)
      item.fail(fmt::format("has {} numbers; expected {} or {}", member.size(), shared, all));
    spec.ensemble.push_back(std::move(member));
  }
}

}  // namespace

GpuSpec parse_gpu_spec(std::string_view json_text, std::string name_for_messages) {
  const std::string where = name_for_messages;
  const JsonDocument document = JsonDocument::parse(json_text, std::move(name_for_messages));
  const JsonNode root = document.root();
  root.expect_keys({"schema", "name", "title", "calibrated", "chip", "core_clocks", "core_power",
                    "memory", "power_limit", "switching", "default_clock", "grids"},
                   {"architecture", "classes", "cluster", "fit_errors", "fitted_range", "kernels",
                    "logged_power", "operators", "peaks", "uncertainty", "waiting_power",
                    "utilisation"});  // of earlier versions, not read
  document.expect_schema(GpuSpec::schema);
  GpuSpec spec;
  spec.name = root.at("name").text();
  spec.title = root.at("title").text();
  spec.calibrated = root.at("calibrated").boolean();
  if (const auto architecture = root.find("architecture")) {
    spec.architecture = architecture->text();
    const auto json = nlohmann::ordered_json::parse(json_text);
    spec.operators = read_operators(
        spec.architecture,
        root.find("operators") ? rubato::json_text(json["operators"]) : std::string("{}"), where);
    spec.sources["operators"] = spec.operators->source;
  } else if (const auto operators = root.find("operators")) {
    operators->fail("there is no architecture whose entries these would replace");
  }
  read_mem_states(root, spec);
  read_core(root, spec);
  read_limits(root, spec);
  read_peaks(root, spec);
  if (const auto cluster = root.find("cluster")) spec.cluster = read_cluster(*cluster);
  read_grids(root, spec);
  read_kernels(root, spec);
  read_measured_power(root, spec);
  if (const auto errors = root.find("fit_errors")) {
    for (const std::string& key : errors->keys())
      spec.fit_errors[key] = errors->at(key).number(Range::non_negative);
  }
  read_fit(root, spec);
  check_laws(root, spec);
  return spec;
}

ClusterSpec cluster_of(const GpuSpec& spec) {
  if (spec.cluster) return *spec.cluster;
  constexpr double least_nvlink_gbs = 100.0;
  constexpr double nvlink_reached = 227.0 / 300.0, pcie_reached = 15.0 / 31.5;
  constexpr double nvlink_over_network = 300.0 / 23.0;  // as in a DGX A100
  constexpr double pcie_network_gbs = 1.25;             // 100 Gb/s for the eight of a node
  constexpr std::uint32_t any_nodes = 1'000'000;
  const bool nvlink = spec.link_gbs >= least_nvlink_gbs;
  return {.name = "guess-" + spec.name,
          .title = "guessed from the link of " + spec.title,
          .gpus_per_node = 8,
          .nodes = any_nodes,
          .inside = {nvlink ? LinkKind::nvlink : LinkKind::pcie,
                     spec.link_gbs * (nvlink ? nvlink_reached : pcie_reached), "guess"},
          .between = Link{LinkKind::rdma,
                          nvlink ? spec.link_gbs / nvlink_over_network : pcie_network_gbs, "guess"},
          .in_switch_gbs = {}};
}

std::vector<std::string> shipped_gpu_specs() { return names_of(embedded_gpu_specs()); }

}  // namespace rubato

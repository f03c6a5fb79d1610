// Writing a spec: the inverse of parse_gpu_spec.

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "common/json.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

Json core_clock(const std::optional<double>& core_mhz) {
  return core_mhz ? Json(*core_mhz) : Json("auto");
}

Json memory_json(const GpuSpec& spec) {
  Json states = Json::array();
  for (const MemState& state : spec.mem_states) {
    Json item{{"name", state.name},
              {"mem_mhz", state.mem_mhz},
              {"boost_mhz", state.boost_mhz},
              {"bandwidth_gbs", state.bandwidth_gbs},
              {"base_power_w", state.base_power_w},
              {"voltage_scale", state.voltage_scale}};
    if (state.max_core_mhz) item["max_core_mhz"] = *state.max_core_mhz;
    states.push_back(std::move(item));
  }
  Json memory{{"source", spec.sources.at("memory")},
              {"states", std::move(states)},
              {"dram_nj_per_byte", spec.shared.dram_nj_per_byte},
              {"crossbar_bytes_per_cycle", spec.shared.crossbar_bytes_per_cycle},
              {"bandwidth_exponent", spec.shared.bandwidth_exponent}};
  if (!spec.crossbar.core_mhz.empty()) {
    memory["crossbar_core_mhz"] = spec.crossbar.core_mhz;
    memory["crossbar_relative"] = spec.crossbar.relative;
  }
  return memory;
}

// All steps of the core clock and "auto", as "all" means when it is read.
bool has_all_clocks(const NamedGrid& grid, const CoreClocks& core) {
  const auto steps = std::lround((core.max_mhz - core.min_mhz) / core.step_mhz);
  if (std::ssize(grid.core_mhz) != steps + 2 || grid.core_mhz.back()) return false;
  for (std::size_t i = 0; i + 1 < grid.core_mhz.size(); ++i) {
    if (grid.core_mhz[i] != core.min_mhz + static_cast<double>(i) * core.step_mhz) return false;
  }
  return true;
}

Json grids_json(const GpuSpec& spec) {
  Json grids = Json::array();
  for (const NamedGrid& grid : spec.grids) {
    Json core = Json::array();
    for (const auto& core_mhz : grid.core_mhz) core.push_back(core_clock(core_mhz));
    if (has_all_clocks(grid, spec.core)) core = "all";
    grids.push_back({{"name", grid.name}, {"mem", grid.mem_states}, {"core", std::move(core)}});
  }
  return grids;
}

Json kernels_json(const GpuSpec& spec) {
  Json list = Json::array();
  for (const CalibratedKernel& kernel : spec.kernels) {
    const KernelCoefficients& c = kernel.coefficients;
    Json item{{"name", kernel.name},          {"class", name_of(kernel.kind)},
              {"core_cycles", c.core_cycles}, {"effective_bytes", c.dram_bytes},
              {"fixed_s", c.fixed_s},         {"core_j", c.core_j},
              {"limit_scale", c.limit_scale}, {"overlap_scale", c.overlap_scale}};
    if (c.idle_scale != 1.0) item["idle_scale"] = c.idle_scale;
    if (kernel.flops) item["flops"] = *kernel.flops;
    if (kernel.dram_bytes) item["dram_bytes"] = *kernel.dram_bytes;
    if (kernel.dtype != Dtype::unknown) item["dtype"] = name_of(kernel.dtype);
    if (kernel.gemm)
      item["gemm"] = {kernel.gemm->m, kernel.gemm->n, kernel.gemm->k, kernel.gemm->batch};
    list.push_back(std::move(item));
  }
  return {{"source", spec.sources.at("kernels")}, {"list", std::move(list)}};
}

Json classes_json(const GpuSpec& spec) {
  Json list = Json::array();
  for (const ClassCoefficients& c : spec.classes) {
    list.push_back({{"class", name_of(c.kind)},
                    {"cycles_per_unit", c.cycles_per_unit},
                    {"dram_factor", c.dram_factor},
                    {"core_nj_per_unit", c.core_nj_per_unit},
                    {"fixed_s", c.fixed_s},
                    {"overlap_scale", c.overlap_scale}});
  }
  return {{"source", spec.sources.at("classes")}, {"list", std::move(list)}};
}

// Sections and their entries begin lines, as do the elements of a list of objects; what lies deeper
// stays on its line. So files are readable and their diffs short.
void write(const Json& json, int depth, std::string& text) {
  const std::string indent(static_cast<std::size_t>(depth) * 2 + 2, ' ');
  const bool open = json.is_structured() && !json.empty() &&
                    (depth < 2 || (depth == 2 && json.is_array() && json.front().is_structured()));
  if (!open) {
    text += json_text(json);
    return;
  }
  text += json.is_object() ? "{\n" : "[\n";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    if (!first) text += ",\n";
    first = false;
    text += indent;
    if (json.is_object()) text += fmt::format("{}: ", json_text(Json(key)));
    write(value, depth + 1, text);
  }
  text += fmt::format("\n{}{}", indent.substr(2), json.is_object() ? '}' : ']');
}

Json rates_json(const std::map<Dtype, double>& rates) {
  Json json = Json::object();
  for (const auto& [dtype, rate] : rates) json[std::string(name_of(dtype))] = rate;
  return json;
}

Json peaks_json(const GpuSpec& spec) {
  Json json{{"source", spec.sources.at("peaks")},
            {"tensor_flop_per_cycle", rates_json(spec.peaks.tensor_flop_per_cycle)},
            {"cuda_flop_per_cycle", rates_json(spec.peaks.cuda_flop_per_cycle)}};
  if (spec.peaks.pcie_gbs) json["pcie_gbs"] = *spec.peaks.pcie_gbs;
  return json;
}

Json chip_json(const GpuSpec& spec) {
  Json json{{"source", spec.sources.at("chip")}, {"sm_count", spec.sm_count}};
  if (spec.compute_capability) json["compute_capability"] = *spec.compute_capability;
  json["peak_flop_per_cycle"] = spec.peak_flop_per_cycle;
  json["link_gbs"] = spec.link_gbs;
  json["overlap_exponent"] = spec.shared.overlap_exponent;
  if (spec.memory_gb) json["memory_gb"] = *spec.memory_gb;
  return json;
}

Json switching_json(const GpuSpec& spec) {
  const SwitchLatency& known = spec.switching;
  Json json{{"source", spec.sources.at("switching")}};
  const auto add = [&json](const char* key, double value) {
    if (value != 0.0) json[key] = value;
  };
  if (known.core_s) json["core_s"] = *known.core_s;
  add("core_stall_s", known.core_stall_s);
  add("core_j", known.core_j);
  if (known.mem_s) json["mem_s"] = *known.mem_s;
  add("mem_stall_s", known.mem_stall_s);
  add("mem_j", known.mem_j);
  add("dwell_s", known.dwell_s);
  if (!known.guess.empty()) json["guess"] = known.guess;
  return json;
}

Json logged_json(const GpuSpec& spec) {
  Json list = Json::array();
  for (const LoggedEnergy& one : spec.logged) {
    list.push_back({{"class", name_of(one.kind)},
                    {"core_factor", one.core_factor},
                    {"relative_error", one.relative_error}});
  }
  return {{"source", spec.sources.at("logged_power")}, {"list", std::move(list)}};
}

}  // namespace

std::string to_json(const GpuSpec& spec) {
  Json json{{"schema", GpuSpec::schema},
            {"name", spec.name},
            {"title", spec.title},
            {"calibrated", spec.calibrated},
            {"chip", chip_json(spec)},
            {"core_clocks",
             {{"source", spec.sources.at("core_clocks")},
              {"min_mhz", spec.core.min_mhz},
              {"max_mhz", spec.core.max_mhz},
              {"step_mhz", spec.core.step_mhz},
              {"requested_mhz", spec.core.requested_mhz},
              {"effective_mhz", spec.core.effective_mhz}}},
            {"core_power",
             {{"source", spec.sources.at("core_power")},
              {"leakage_w", spec.shared.leakage_w},
              {"clock_w_per_mhz", spec.shared.clock_w_per_mhz},
              {"voltage_core_mhz", spec.voltage.core_mhz},
              {"relative_v", spec.voltage.relative_v}}},
            {"memory", memory_json(spec)},
            {"power_limit",
             {{"source", spec.sources.at("power_limit")},
              {"limit_w", spec.power_limit.limit_w},
              {"min_w", spec.power_limit.min_w},
              {"max_w", spec.power_limit.max_w},
              {"regulated_frac", spec.power_limit.regulated_frac}}},
            {"switching", switching_json(spec)},
            {"default_clock",
             {{"mem", spec.mem_states[index(spec.default_clock.mem)].name},
              {"core", core_clock(spec.default_clock.core_mhz)}}},
            {"grids", grids_json(spec)},
            {"kernels", kernels_json(spec)},
            {"classes", classes_json(spec)},
            {"fit_errors", spec.fit_errors}};
  if (spec.operators) {
    json["architecture"] = spec.architecture;
    json["operators"] = Json::parse(spec.operators->text);
  }
  if (spec.cluster) json["cluster"] = cluster_json(*spec.cluster);
  if (spec.sources.contains("peaks")) json["peaks"] = peaks_json(spec);
  if (spec.fitted_range) {
    json["fitted_range"] = {{"min_core_mhz", spec.fitted_range->min_core_mhz},
                            {"max_core_mhz", spec.fitted_range->max_core_mhz},
                            {"kernels", spec.fitted_range->kernels},
                            {"points", spec.fitted_range->points}};
  }
  if (spec.waiting) {
    json["waiting_power"] = {{"source", spec.sources.at("waiting_power")},
                             {"core_mhz", spec.waiting->core_mhz},
                             {"power_w", spec.waiting->power_w}};
  }
  if (!spec.logged.empty()) json["logged_power"] = logged_json(spec);
  if (!spec.ensemble.empty())
    json["uncertainty"] = {{"source", spec.sources.at("uncertainty")}, {"members", spec.ensemble}};
  std::string text;
  write(json, 0, text);
  return text + '\n';
}

}  // namespace rubato

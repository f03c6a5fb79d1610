#include "models/calibration/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/byte_source.hpp"
#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "models/calibration/implausible.hpp"
#include "models/calibration/sweep_reader.hpp"
#include "models/gpu/device.hpp"
#include "traces/import/kernel_tuner.hpp"
#include "traces/plausible.hpp"

namespace rubato {

namespace {

// Where the file has what a row may say.
struct RowSources {
  SweepSource core;
  std::optional<SweepSource> mem, gpu, time, power, energy, cap, count, pass, kind;
  std::optional<SweepSource> bytes, reads, writes, active;  ///< of DRAM
  std::vector<SweepSource> name;                            ///< its parts, at least one
};

RowSources sources_in(const SweepReader& in) {
  RowSources found{.core = in.require({"core_mhz", "core_mhz_requested", "frequency"}),
                   .mem = in.find("mem_mhz"),
                   .gpu = in.find("gpu"),
                   .time = in.find_any({"time_s", "time"}),
                   .power = in.find("power_w"),
                   .energy = in.find_any({"energy_j", "energy"}),
                   .cap = in.find("power_cap_w"),
                   .count = in.find("count"),
                   .pass = in.find_any({"pass", "instruction"}),
                   .kind = in.find("class"),
                   .bytes = in.find("dram_bytes"),
                   .reads = in.find("dram_read_transactions"),
                   .writes = in.find("dram_write_transactions"),
                   .active = in.find("dram_active"),
                   .name = {}};
  if (!found.time && !found.power && !found.energy) (void)in.require({"time_s"});
  for (const char* part :
       {"workload", "workload_id", "batch_size", "stage", "instruction", "kernel"}) {
    if (const auto source = in.find(part)) found.name.push_back(*source);
  }
  if (found.name.empty()) (void)in.require({"kernel"});
  return found;
}

std::string name_in(const SweepReader& in, std::size_t row, const RowSources& from) {
  std::string name;
  for (const SweepSource& part : from.name) {
    if (!name.empty()) name += ':';
    name += in.text(row, part);
  }
  return name;
}

void expect_one_gpu(const SweepReader& in, std::size_t row, const SweepSource& from,
                    std::string& gpu) {
  const std::string& name = in.text(row, from);
  if (gpu.empty()) gpu = name;
  if (name == gpu) return;
  throw DataError(fmt::format("{}: gpu is '{}' after rows of '{}'; expected one GPU",
                              in.table().where(row), name, gpu),
                  {.in = {}, .hint = fmt::format("choose with --where 'gpu={}'", gpu)});
}

// DRAM bytes as counted, else from transactions, else from the share of time DRAM was active.
std::optional<double> dram_bytes_in(SweepReader& in, std::size_t row, const RowSources& from,
                                    const MemState* state, std::optional<double> time_s) {
  constexpr double transaction_bytes = 32.0;
  // Kernels at the limit of DRAM reach about 92 % of its peak, where the spec's bandwidth is.
  constexpr double reached_share = 0.92;
  const auto derived = [&](double bytes) {
    return in.checked(row, "DRAM traffic", bytes, Range::non_negative);
  };
  auto bytes = in.number(row, from.bytes, Range::non_negative);
  const auto reads = in.number(row, from.reads, Range::non_negative),
             writes = in.number(row, from.writes, Range::non_negative);
  if (!bytes && reads && writes) bytes = derived((*reads + *writes) * transaction_bytes);
  const auto share = in.number(row, from.active, Range::non_negative);
  if (!bytes && share && time_s && state != nullptr)
    bytes = derived(*share / reached_share * *time_s * state->bandwidth_gbs * 1e9);
  return bytes;
}

// Energy is power times time: a row with all three must agree with itself.
void expect_energy_of_power(SweepReader& in, std::size_t row, const SweepPoint& point,
                            const std::optional<double>& energy_j) {
  constexpr double most = 0.1;  // counters and samples of one run see other moments of it
  if (!energy_j || !point.time_s || !point.power_w) return;
  const double product_j = *point.time_s * *point.power_w;
  if (std::abs(*energy_j / product_j - 1.0) <= most) return;
  in.errors().add(fmt::format(
      "{}: energy is {:g} J, but {:g} s at {:g} W are {:g} J; expected agreement within {:.0f} % "
      "(another unit? e.g. --column energy_j=NAME:mJ)",
      in.table().where(row), *energy_j, *point.time_s, *point.power_w, product_j, percent * most));
}

// Powers, energies over times and times themselves must be a GPU's.
void expect_plausible(SweepReader& in, std::size_t row, const RowSources& from, const GpuSpec& spec,
                      const SweepPoint& point, const std::optional<double>& energy_j) {
  const Bounds power_w = plausible_power_w(spec);
  bool right = true;
  if (point.power_cap_w)
    right = in.expect_plausible(row, *point.power_cap_w, "W", power_w, {&from.cap});
  if (point.power_w) {
    right = in.expect_plausible(row, *point.power_w, "W", power_w, {&from.power}) && right;
  } else if (energy_j && point.time_s) {
    right = in.expect_plausible(row, *energy_j / *point.time_s, "W", power_w,
                                {&from.energy, &from.time});
  }
  if (point.time_s) {
    right = in.expect_plausible(row, *point.time_s, "s", run_time_s, {&from.time}) && right;
  } else if (energy_j && point.power_w) {
    right = right && in.expect_plausible(row, *energy_j / *point.power_w, "s", run_time_s,
                                         {&from.energy, &from.power});
  }
  if (right) expect_energy_of_power(in, row, point, energy_j);
}

// A row's point; nothing where its clock is not known.
std::optional<SweepPoint> point_in(SweepReader& in, std::size_t row, const RowSources& from,
                                   const GpuSpec& spec) {
  const auto core_mhz = in.core_mhz(row, from.core);
  const auto state = in.mem_state(row, from.mem);
  SweepPoint point{.clock = {state.value_or(MemStateId{0}), core_mhz.value_or(std::nullopt)},
                   .time_s = in.number(row, from.time),
                   .power_w = in.number(row, from.power),
                   .power_cap_w = in.number(row, from.cap),
                   .dram_bytes = {}};
  const auto energy_j = in.number(row, from.energy);
  expect_plausible(in, row, from, spec, point, energy_j);
  if (!point.power_w && energy_j && point.time_s)
    point.power_w = in.checked(row, "energy over time", *energy_j / *point.time_s);
  if (!point.time_s && energy_j && point.power_w)
    point.time_s = in.checked(row, "energy over power", *energy_j / *point.power_w);
  point.dram_bytes =
      dram_bytes_in(in, row, from, state ? &spec.mem_states[index(*state)] : nullptr, point.time_s);
  return core_mhz && state ? std::optional(point) : std::nullopt;
}

// How often a kernel runs, and in which pass; the same in all its rows.
void place_in_iteration(SweepReader& in, std::size_t row, const RowSources& from, bool is_new,
                        SweepKernel& kernel) {
  if (from.count) {
    const double count = in.number(row, from.count).value_or(1.0);
    constexpr double most = 1e9;
    if (count != std::floor(count) || count > most) {
      in.errors().add(fmt::format("{}: count is {}; expected a whole number from 1 to {:g}",
                                  in.table().where(row), count, most));
    } else if (!is_new && kernel.count != static_cast<std::uint32_t>(count)) {
      in.errors().add(fmt::format("{}: count of kernel '{}' is {}, {} in rows before",
                                  in.table().where(row), printable(kernel.name), count,
                                  kernel.count));
    } else {
      kernel.count = static_cast<std::uint32_t>(count);
    }
  }
  if (!from.pass || in.text(row, *from.pass).empty()) return;
  const std::string& name = in.text(row, *from.pass);
  if (const auto pass = from_name<Pass>(name)) {
    kernel.pass = *pass;
  } else if (in.find("pass")) {  // an instruction of Zeus may be something else, e.g. "load"
    in.errors().add(fmt::format("{}: pass '{}' is not known{}", in.table().where(row),
                                printable(name), did_you_mean(name, all_names<Pass>())));
  }
}

// @param unknown  names that are no class: the column may mean something else
void set_class(const SweepReader& in, std::size_t row, const RowSources& from, SweepKernel& kernel,
               std::set<std::string>& unknown) {
  if (!from.kind || in.text(row, *from.kind).empty()) return;
  const std::string& name = in.text(row, *from.kind);
  const auto kind = from_name<KernelClass>(name);
  if (!kind) unknown.insert(name);
  kernel.kind = kind.value_or(KernelClass::other);
}

// A card that draws more than the spec's power limit has another limit: taken as the least that its
// powers allow. Points that name no limit then get that one.
void name_higher_limit(Sweep& sweep, const PowerLimit& limit) {
  constexpr double noise = 1.03;
  double most_w = 0.0;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      if (!point.power_cap_w) most_w = std::max(most_w, point.power_w.value_or(0.0));
  }
  if (most_w <= noise * limit.limit_w) return;
  const double limit_w = std::ceil(most_w / limit.regulated_frac);
  for (SweepKernel& kernel : sweep.kernels) {
    for (SweepPoint& point : kernel.points) {
      point.cap_assumed = !point.power_cap_w;
      point.power_cap_w = point.power_cap_w.value_or(limit_w);
    }
  }
  sweep.notes.push_back(
      fmt::format("{} W were measured, the spec's limit is {} W: the limit of that card is taken "
                  "as {} W",
                  format_number(most_w), format_number(limit.limit_w), format_number(limit_w)));
}

// Times of one kernel that its clocks cannot explain.
// @param rows  of the points
void expect_usual_times(SweepReader& in, const SweepSource& time, const GpuSpec& spec,
                        const SweepKernel& kernel, std::span<const std::size_t> rows) {
  std::vector<TimedSetting> settings;
  std::vector<std::size_t> row_of;
  for (std::size_t i = 0; i < kernel.points.size(); ++i) {
    const SweepPoint& point = kernel.points[i];
    if (!point.time_s) continue;
    settings.push_back({.time_s = *point.time_s,
                        .core_mhz = point.clock.core_mhz.value_or(0.0),
                        .mem_mhz = spec.mem_states[index(point.clock.mem)].mem_mhz,
                        .power_limit_w = point.power_cap_w.value_or(spec.power_limit.limit_w)});
    row_of.push_back(rows[i]);
  }
  for (const OddTime& odd : odd_times(settings))
    in.errors().add(fmt::format(
        "{}: kernel '{}': {}", in.table().where(row_of[odd.at]), printable(kernel.name),
        odd_time_text(odd, settings, in.read_column(time), in.table().where(row_of[odd.usual]))));
}

Sweep sweep_of(CsvTable table, const std::string& file, const GpuSpec& spec,
               const SweepColumns& columns) {
  SweepReader in(std::move(table), file, spec, columns);
  const RowSources from = sources_in(in);
  Sweep sweep;
  sweep.file = file;
  sweep.applied_clocks = in.find("core_mhz").has_value() || !in.find("core_mhz_requested");
  std::map<std::string, std::size_t> position;
  std::vector<std::vector<std::size_t>> rows;  // of each kernel's points
  std::set<std::string> unknown_classes;
  for (std::size_t row = 0; row < in.table().rows(); ++row) {
    if (!in.kept(row)) continue;
    if (from.gpu) expect_one_gpu(in, row, *from.gpu, sweep.gpu);
    const std::optional<SweepPoint> point = point_in(in, row, from, spec);
    if (!point) continue;
    const std::string name = name_in(in, row, from);
    const bool idle = name == "idle" || name.ends_with(":idle");
    if (!point->power_w && (idle || !point->time_s)) {
      in.errors().add(fmt::format("{}: neither time nor power", in.table().where(row)));
      continue;
    }
    if (idle) {
      sweep.idle.push_back({point->clock, *point->power_w});
      continue;
    }
    const auto [entry, is_new] = position.emplace(name, sweep.kernels.size());
    if (is_new) {
      sweep.kernels.push_back({.name = name, .points = {}});
      rows.emplace_back();
    }
    SweepKernel& kernel = sweep.kernels[entry->second];
    place_in_iteration(in, row, from, is_new, kernel);
    set_class(in, row, from, kernel, unknown_classes);
    kernel.points.push_back(*point);
    rows[entry->second].push_back(row);
  }
  in.throw_if_any();
  for (std::size_t k = 0; k < sweep.kernels.size() && from.time; ++k)
    expect_usual_times(in, *from.time, spec, sweep.kernels[k], rows[k]);
  in.throw_if_any();
  in.note_memory(sweep.notes);
  in.note_copies(sweep.notes);
  if (!unknown_classes.empty())
    sweep.notes.push_back(fmt::format(
        "class '{}' is no class of kernels: taken as other; they are {}",
        printable(*unknown_classes.begin()), fmt::join(all_names<KernelClass>(), ", ")));
  if (sweep.kernels.empty() && sweep.idle.empty()) {
    throw DataError(fmt::format("{}: no row is left after --where", sweep.file));
  }
  if (!columns.keep_implausible) leave_out_implausible(sweep);
  name_higher_limit(sweep, spec.power_limit);
  return sweep;
}

// What GlobalPowerLimitOptimizer of Zeus saves (zeus/optimizer/power_limit.py, 0.16):
// {"measurements": [{"power_limit": W, "energy": J, "time": s}, ...]}, of the same steps under each
// limit. Energies are sums over the GPUs that trained, times those of the slowest.
KernelTunerTable zeus_limits(const JsonNode& root) {
  struct Measured {
    double limit_w, time_s, energy_j;
  };
  constexpr double at_limit = 1.05;  // readings pass a limit by a little
  double gpus = 1.0;
  std::vector<Measured> rows;
  for (const JsonNode& one : root.at("measurements").items()) {
    const Measured& row = rows.emplace_back(Measured{one.at("power_limit").number(Range::positive),
                                                     one.at("time").number(Range::positive),
                                                     one.at("energy").number(Range::positive)});
    gpus = std::max(gpus, std::ceil(row.energy_j / (at_limit * row.limit_w * row.time_s)));
  }
  KernelTunerTable table{.csv = "kernel,core_mhz_requested,power_cap_w,time_s,energy_j\n",
                         .left_out = {},
                         .notes = {}};
  for (const Measured& row : rows)
    table.csv += fmt::format("steps,auto,{},{},{}\n", row.limit_w, row.time_s, row.energy_j / gpus);
  if (gpus > 1.0)
    table.notes.push_back(
        fmt::format("one GPU would draw more than its limit: energies are taken as those of {} "
                    "GPUs, and divided",
                    gpus));
  return table;
}

// A JSON file as a table: of Zeus, or a cache of Kernel Tuner.
KernelTunerTable json_table(std::string_view text, const std::string& name) {
  if (text.find("\"measurements\"") != std::string_view::npos &&
      text.find("\"power_limit\"") != std::string_view::npos) {
    const JsonDocument document = JsonDocument::parse(text, name);
    return zeus_limits(document.root());
  }
  return read_kernel_tuner_cache(text, name);
}

}  // namespace

std::size_t Sweep::points() const noexcept {
  std::size_t count = 0;
  for (const SweepKernel& kernel : kernels) count += kernel.points.size();
  return count;
}

Sweep read_sweep(const std::filesystem::path& path, const GpuSpec& spec,
                 const SweepColumns& columns) {
  return parse_sweep(read_text(path), path.string(), spec, columns);
}

Sweep parse_sweep(std::string_view text, const std::string& name, const GpuSpec& spec,
                  const SweepColumns& columns) {
  if (!is_kernel_tuner_cache(text))
    return sweep_of(CsvTable::parse(text, name), name, spec, columns);
  const KernelTunerTable cache = json_table(text, name);
  Sweep sweep = sweep_of(CsvTable::parse(cache.csv, name + " as a table"), name, spec, columns);
  sweep.left_out.insert(sweep.left_out.begin(), cache.left_out.begin(), cache.left_out.end());
  sweep.notes.insert(sweep.notes.begin(), cache.notes.begin(), cache.notes.end());
  return sweep;
}

void add_idle(Sweep& sweep, const std::filesystem::path& path, const GpuSpec& spec) {
  const SweepColumns columns;
  SweepReader in(CsvTable::read(path), path.string(), spec, columns);
  const SweepSource core = in.require({"core_mhz"}),
                    power = in.require({"power_w", "power_w_median"});
  const auto mem = in.find("mem_mhz");
  const std::optional<SweepSource> from = power;
  for (std::size_t row = 0; row < in.table().rows(); ++row) {
    if (!in.kept(row)) continue;
    const auto core_mhz = in.core_mhz(row, core);
    const auto state = in.mem_state(row, mem);
    const auto power_w = in.number(row, power);
    if (power_w) (void)in.expect_plausible(row, *power_w, "W", plausible_power_w(spec), {&from});
    if (core_mhz && state && power_w) sweep.idle.push_back({{*state, *core_mhz}, *power_w});
  }
  in.throw_if_any();
  in.note_memory(sweep.notes);
  in.note_copies(sweep.notes);
}

std::string gpu_in_sweep(const std::filesystem::path& path, const SweepColumns& columns) {
  const std::string text = read_text(path);
  const CsvTable table = is_kernel_tuner_cache(text)
                             ? CsvTable::parse(json_table(text, path.string()).csv, path.string())
                             : CsvTable::parse(text, path.string());
  const auto renamed = columns.renamed.find("gpu");
  const auto gpu = table.find_column(renamed == columns.renamed.end() ? "gpu" : renamed->second);
  if (!gpu) return {};
  std::string found;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const bool kept = std::ranges::all_of(columns.where, [&](const auto& filter) {
      return table.cell(row, table.column(filter.first)) == filter.second;
    });
    if (!kept) continue;
    const std::string& name = table.cell(row, *gpu);
    if (!found.empty() && name != found) return {};
    found = name;
  }
  return parse_number(found) ? std::string{} : found;  // a number counts the GPUs of a node
}

}  // namespace rubato

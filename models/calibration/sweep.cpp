#include "models/calibration/sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "common/byte_source.hpp"
#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "models/calibration/implausible.hpp"
#include "traces/import/kernel_tuner.hpp"

namespace rubato {

namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array<Unit, 20> units{
    {{"s", 1.0},   {"ms", 1e-3},  {"us", 1e-6},    {"ns", 1e-9},       {"W", 1.0},
     {"mW", 1e-3}, {"J", 1.0},    {"mJ", 1e-3},    {"Wh", 3600.0},     {"MHz", 1.0},
     {"Hz", 1e-6}, {"kHz", 1e-3}, {"GHz", 1e3},    {"bytes", 1.0},     {"KB", 1e3},
     {"MB", 1e6},  {"GB", 1e9},   {"KiB", 1024.0}, {"MiB", 1048576.0}, {"1", 1.0}}};

// A column of the file under the name and in the unit it has here.
struct Source {
  std::size_t column;
  double scale = 1.0;
};

class SweepReader {
 public:
  SweepReader(CsvTable table, const std::string& name, const GpuSpec& spec,
              const SweepColumns& columns)
      : table_(std::move(table)), spec_(spec), columns_(columns) {
    for (const auto& [column, value] : columns_.where)
      filters_.emplace_back(table_.column(column), value);
    if (table_.rows() == 0) throw DataError(fmt::format("{}: there are no rows", name));
  }

  [[nodiscard]] std::optional<Source> find(const std::string& name) const {
    const auto renamed = columns_.renamed.find(name);
    if (renamed == columns_.renamed.end()) {
      const auto column = table_.find_column(name);
      return column ? std::optional(Source{*column}) : std::nullopt;
    }
    const auto colon = renamed->second.rfind(':');
    Source source{table_.column(renamed->second.substr(0, colon))};
    if (colon == std::string::npos) return source;
    const std::string unit = renamed->second.substr(colon + 1);
    const auto known = std::ranges::find(units, unit, &Unit::name);
    if (known == units.end()) {
      throw UsageError(
          fmt::format("unit '{}' of column {} is not known", unit, name),
          {.in = {}, .hint = "s, ms, us, ns, W, mW, J, mJ, Wh, MHz, kHz, Hz, bytes, MB, GB"});
    }
    source.scale = known->scale;
    return source;
  }

  /// The first of `names` that the file has.
  [[nodiscard]] std::optional<Source> find_any(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto found = find(name)) return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] Source require(std::initializer_list<const char*> names) const {
    if (const auto found = find_any(names)) return *found;
    return {table_.column(*names.begin())};  // throws, with the nearest name
  }

  [[nodiscard]] std::optional<double> number(std::size_t row, const std::optional<Source>& source,
                                             Range range = Range::positive) {
    if (!source) return std::nullopt;
    const auto value = table_.optional_number(row, source->column, range, errors_);
    return value ? checked(row, table_.header()[source->column], *value * source->scale, range)
                 : std::nullopt;
  }

  /// A number that was computed: absurd numbers of a file may give infinity or 0, which is an
  /// error.
  [[nodiscard]] std::optional<double> checked(std::size_t row, std::string_view what, double value,
                                              Range range = Range::positive) {
    if (std::isfinite(value) && in_range(value, range)) return value;
    errors_.add(fmt::format("{}: {} comes to {}; expected {}", table_.where(row), what, value,
                            expected_text(range)));
    return std::nullopt;
  }

  [[nodiscard]] const std::string& text(std::size_t row, const Source& source) const {
    return table_.cell(row, source.column);
  }

  [[nodiscard]] std::optional<std::optional<double>> core_mhz(std::size_t row,
                                                              const Source& source) {
    if (text(row, source) == "auto") return std::optional<double>{};
    const auto value = table_.number(row, source.column, Range::positive, errors_);
    if (!value) return std::nullopt;
    const auto scaled = checked(row, "core_mhz", *value * source.scale, Range::positive);
    return scaled ? std::optional(scaled) : std::nullopt;
  }

  [[nodiscard]] std::optional<MemStateId> mem_state(std::size_t row,
                                                    const std::optional<Source>& source) {
    const std::string name = source ? text(row, *source) : std::string{};
    if (name.empty() && spec_.mem_states.size() == 1) return MemStateId{0};
    const auto mhz = parse_number(name);
    for (std::size_t i = 0; i < spec_.mem_states.size(); ++i) {
      const MemState& state = spec_.mem_states[i];
      if (state.name == name || (mhz && parse_number(state.name) == *mhz * source->scale))
        return id_at<MemStateId>(i);
    }
    errors_.add(fmt::format("{}: mem_mhz '{}' is no memory state of {}", table_.where(row), name,
                            spec_.name));
    foreign_ = true;
    return std::nullopt;
  }

  [[nodiscard]] bool kept(std::size_t row) const {
    return std::ranges::all_of(filters_, [&](const auto& filter) {
      return table_.cell(row, filter.first) == filter.second;
    });
  }

  [[nodiscard]] const CsvTable& table() const { return table_; }
  [[nodiscard]] ErrorList& errors() { return errors_; }
  void throw_if_any() const {
    errors_.throw_if_any(
        {.in = {}, .hint = foreign_ ? "measured on another GPU? --gpu names its spec" : ""});
  }

 private:
  CsvTable table_;
  const GpuSpec& spec_;
  const SweepColumns& columns_;
  ErrorList errors_;
  bool foreign_ = false;  // a memory clock that the GPU does not have
  std::vector<std::pair<std::size_t, std::string>> filters_;
};

// Where the file has what a row may say.
struct RowSources {
  Source core;
  std::optional<Source> mem, gpu, time, power, energy, cap, count, pass;
  std::optional<Source> bytes, reads, writes, active;  ///< of DRAM
  std::vector<Source> name;                            ///< its parts, at least one
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
  for (const Source& part : from.name) {
    if (!name.empty()) name += ':';
    name += in.text(row, part);
  }
  return name;
}

void expect_one_gpu(const SweepReader& in, std::size_t row, const Source& from, std::string& gpu) {
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
  expect_energy_of_power(in, row, point, energy_j);
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

Sweep sweep_of(CsvTable table, const std::string& file, const GpuSpec& spec,
               const SweepColumns& columns) {
  SweepReader in(std::move(table), file, spec, columns);
  const RowSources from = sources_in(in);
  Sweep sweep;
  sweep.file = file;
  sweep.applied_clocks = in.find("core_mhz").has_value() || !in.find("core_mhz_requested");
  std::map<std::string, std::size_t> position;
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
    if (is_new) sweep.kernels.push_back({.name = name, .points = {}});
    SweepKernel& kernel = sweep.kernels[entry->second];
    place_in_iteration(in, row, from, is_new, kernel);
    kernel.points.push_back(*point);
  }
  in.throw_if_any();
  if (sweep.kernels.empty() && sweep.idle.empty()) {
    throw DataError(fmt::format("{}: no row is left after --where", sweep.file));
  }
  if (!columns.keep_implausible) leave_out_implausible(sweep);
  name_higher_limit(sweep, spec.power_limit);
  return sweep;
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
  const KernelTunerTable cache = read_kernel_tuner_cache(text, name);
  Sweep sweep = sweep_of(CsvTable::parse(cache.csv, name + " as a table"), name, spec, columns);
  sweep.left_out.insert(sweep.left_out.begin(), cache.left_out.begin(), cache.left_out.end());
  return sweep;
}

void add_idle(Sweep& sweep, const std::filesystem::path& path, const GpuSpec& spec) {
  const SweepColumns columns;
  SweepReader in(CsvTable::read(path), path.string(), spec, columns);
  const Source core = in.require({"core_mhz"}), power = in.require({"power_w", "power_w_median"});
  const auto mem = in.find("mem_mhz");
  for (std::size_t row = 0; row < in.table().rows(); ++row) {
    const auto core_mhz = in.core_mhz(row, core);
    const auto state = in.mem_state(row, mem);
    const auto power_w = in.number(row, power);
    if (core_mhz && state && power_w) sweep.idle.push_back({{*state, *core_mhz}, *power_w});
  }
  in.throw_if_any();
}

}  // namespace rubato

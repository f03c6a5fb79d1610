#include "traces/power_log.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/sort_by.hpp"
#include "common/byte_source.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/power_rows.hpp"

namespace rubato {

namespace {

// From the rows of all GPUs to the samples of one.
class SampleChoice {
 public:
  SampleChoice(PowerRows rows, std::string file, const PowerLogOptions& options)
      : read_(std::move(rows)), options_(options) {
    log_.file = std::move(file);
    log_.left_out = read_.cut_off;
  }

  [[nodiscard]] PowerLog log() {
    finish();
    return std::move(log_);
  }

 private:
  void finish() {
    if (!read_.whole_numbers.empty() && read_.gpus.size() > 1 && options_.gpu.empty())
      throw without_header(log_.file);
    choose_gpu();
    give_times();
    for (std::size_t section = 0; section < read_.sections.size(); ++section) choose_power(section);
    if (log_.samples.size() < read_.odd || (read_.odd > 0 && log_.samples.size() < 2)) {
      throw DataError(
          read_.first_odd,
          {.hint = read_.milliwatts ? "are these mW? then call the column power_mw" : ""});
    }
    describe();
    sort_by(log_.samples, &PowerSample::time_s);
    const auto twice = std::unique(  // a log that was appended to itself
        log_.samples.begin(), log_.samples.end(), [](const PowerSample& a, const PowerSample& b) {
          return a.time_s == b.time_s && a.power_w == b.power_w && a.core_mhz == b.core_mhz;
        });
    if (twice != log_.samples.end())
      log_.left_out.push_back(
          fmt::format("{} samples that are there twice", log_.samples.end() - twice));
    log_.samples.erase(twice, log_.samples.end());
    refuse_bursts();
    const auto repeated = std::unique(
        log_.samples.begin(), log_.samples.end(),
        [](const PowerSample& a, const PowerSample& b) { return a.time_s == b.time_s; });
    if (repeated != log_.samples.end()) {
      log_.left_out.push_back(
          fmt::format("{} samples at the time of the one before", log_.samples.end() - repeated));
      log_.samples.erase(repeated, log_.samples.end());
    }
    if (missing_ > 0) log_.left_out.push_back(fmt::format("{} samples without power", missing_));
    if (read_.sections.size() > 1) {
      log_.left_out.push_back(
          fmt::format("{} more headers within the log", read_.sections.size() - 1));
    }
    if (read_.odd > 0) {
      log_.left_out.push_back(fmt::format("{} lines that cannot be read; the first is line {}",
                                          read_.odd, read_.odd_line));
    }
    if (other_base_ > 0) {
      log_.left_out.push_back(
          fmt::format("{} samples whose times count from something else", other_base_));
    }
    if (log_.samples.size() < 2) {
      throw DataError(fmt::format("{}: {} samples with power; expected at least 2", log_.file,
                                  log_.samples.size()));
    }
    constexpr double least_w = 2.0;  // more than this any GPU draws that runs something
    const double most_w =
        std::ranges::max_element(log_.samples, {}, &PowerSample::power_w)->power_w;
    if (most_w > 0.0 && most_w < least_w)
      throw DataError(fmt::format("{}: its powers are at most {:.3g} W, which is no GPU at work",
                                  log_.file, most_w),
                      {.hint = "are these kW? then call the column power_kw"});
  }

  // Keeps the rows of the GPU that is meant. Appended logs may say more or less of the same one.
  void choose_gpu() {
    const std::string& wanted = options_.gpu;
    if (read_.rows.empty()) return;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < read_.gpus.size(); ++i) {
      if (wanted.empty() || is_gpu(read_.gpus[i], wanted)) chosen.push_back(i);
    }
    const bool one = std::ranges::all_of(chosen, [&](std::size_t i) {
      return std::ranges::all_of(
          chosen, [&](std::size_t k) { return may_be_one(read_.gpus[i], read_.gpus[k]); });
    });
    if (chosen.empty() || !one) throw no_choice(chosen.size());
    std::erase_if(read_.rows, [&](const PowerRow& row) {
      return std::ranges::find(chosen, row.gpu) == chosen.end();
    });
  }

  // Why none, or several, of the GPUs are meant.
  [[nodiscard]] UsageError no_choice(std::size_t chosen) const {
    constexpr std::size_t most = 20;
    std::vector<std::string> all;
    bool indexed = false;
    for (const LoggedGpu& gpu : read_.gpus) {
      if (all.size() < most) all.push_back(text_of(gpu));
      indexed |= std::ranges::find(gpu, "index", &LoggedGpu::value_type::first) != gpu.end();
    }
    const std::string listed =
        fmt::format("{}{}", fmt::join(all, "; "), read_.gpus.size() > most ? "; ..." : "");
    if (options_.gpu.empty()) {
      return UsageError(fmt::format("{}: interleaved samples of {} GPUs: {}", log_.file,
                                    read_.gpus.size(), listed),
                        {.hint = "--power-gpu says which one is meant, by any of these"});
    }
    const std::string wanted = printable(options_.gpu);
    if (read_.gpus.size() == 1 && read_.gpus.front().empty()) {
      return UsageError(
          fmt::format("{}: --power-gpu is {}, but the log does not say of which GPU its rows are",
                      log_.file, wanted),
          {.hint = "leave it out if the log is of one GPU; of several, log a column index, "
                   "pci.bus_id or uuid"});
    }
    return UsageError(
        fmt::format("{}: {} '{}'{}; the log has {}", log_.file,
                    chosen == 0 ? "no GPU is" : "several GPUs are", wanted,
                    parse_count(wanted) && !indexed ? " (there is no column index)" : "", listed),
        {.hint = chosen == 0 ? "--power-gpu takes any of these"
                             : "--power-gpu takes several of these with '/' between"});
  }

  void give_times() {
    if (!read_.untimed) {
      if (options_.period_s) {
        throw UsageError(fmt::format("{}: its rows have times of their own", log_.file),
                         {.hint = "leave --power-period out"});
      }
    } else if (!options_.period_s) {
      throw UsageError(
          fmt::format("{}:{}: the rows of {} have no times; say how far they are apart", log_.file,
                      read_.untimed_line, read_.sections.front().entity ? "dcgmi dmon" : "the log"),
          {.hint =
               "--power-period 0.1 for dcgmi dmon -d 100; or put a date before each line, which "
               "nvidia-smi dmon does with -o DT"});
    } else {
      double next_s = 0.0;
      for (PowerRow& row : read_.rows) row.sample.time_s = next_s += *options_.period_s;
    }
    if (read_.rows.empty()) return;
    log_.base = read_.rows.front().base;
    const auto before = read_.rows.size();
    std::erase_if(read_.rows, [&](const PowerRow& row) { return row.base != log_.base; });
    other_base_ = before - read_.rows.size();
    // Times of day begin anew at midnight.
    constexpr double day_s = 86400.0;
    if (log_.base != TimeBase::relative || read_.rows.front().sample.time_s > day_s) return;
    double days_s = 0.0, last_s = 0.0;
    for (PowerRow& row : read_.rows) {
      if (row.sample.time_s + days_s < last_s - day_s / 2.0) days_s += day_s;
      last_s = row.sample.time_s += days_s;
    }
  }

  // Samples of a header's rows: of the first power column that has at least half as many values as
  // the fullest one. power.draw.instant is [N/A] on GPUs that do not have it.
  void choose_power(std::size_t section) {
    const PowerColumns& s = read_.sections[section];
    const std::size_t columns = std::max<std::size_t>(s.powers.size(), 1);
    std::vector<std::size_t> counts(columns, 0);
    const auto power_at = [&](const PowerRow& row, std::size_t column) {
      return read_.powers[row.first_power + column];
    };
    for (const PowerRow& row : read_.rows) {
      if (row.section != section) continue;
      for (std::size_t c = 0; c < columns; ++c) counts[c] += !std::isnan(power_at(row, c));
    }
    const std::size_t most = *std::ranges::max_element(counts);
    std::size_t chosen = 0;
    while (2 * counts[chosen] < most) ++chosen;
    const std::size_t at = s.powers.empty() ? s.side_by_side.front().first : s.powers[chosen];
    bool any = false;
    for (const PowerRow& row : read_.rows) {
      if (row.section != section) continue;
      any = true;
      if (std::isnan(power_at(row, chosen))) {
        ++missing_;
        continue;
      }
      log_.samples.push_back(row.sample);
      log_.samples.back().power_w = power_at(row, chosen);
    }
    if (!any) return;
    chosen_.insert({s.header[at].name, &s});
    if (chosen > 0) {
      replaced_.insert(fmt::format("{} has hardly any values; {} is taken",
                                   s.header[s.powers.front()].name, s.header[at].name));
    }
  }

  void describe() {
    if (chosen_.empty()) return;
    const auto& [name, columns] = *chosen_.begin();
    const auto field = std::ranges::find(columns->header, name, &LogField::name);
    if (columns->entity) {
      log_.kind = PowerLogKind::dcgm;
    } else if (name.starts_with("power.draw") || name == "pwr" || read_.headless) {
      log_.kind = PowerLogKind::nvidia_smi;
    } else if (columns->powers.empty() || (name == "power" && field->unit.empty())) {
      log_.kind = PowerLogKind::zeus;
    }
    log_.instantaneous = std::ranges::all_of(
        chosen_, [](const auto& one) { return one.first.find("instant") != std::string::npos; });
    for (const std::string& text : replaced_) log_.left_out.push_back(text);
  }

  // Rows of several GPUs without a column that tells them apart come in groups of one size.
  void refuse_bursts() const {
    const auto& samples = log_.samples;
    const auto whole = [](const PowerSample& one) { return one.time_s == std::floor(one.time_s); };
    if (samples.size() < 16 || std::ranges::all_of(samples, whole)) return;
    std::vector<double> gaps;
    for (std::size_t i = 1; i < samples.size(); ++i)
      gaps.push_back(samples[i].time_s - samples[i - 1].time_s);
    std::vector<double> sorted = gaps;
    std::ranges::sort(sorted);
    const double longest_s = sorted[sorted.size() - 1 - sorted.size() / 20];
    std::map<std::size_t, std::size_t> sizes;  // of groups between long gaps
    std::size_t size = 1, groups = 0;
    for (const double gap : gaps) {
      if (gap < 0.2 * longest_s) {
        ++size;
        continue;
      }
      ++sizes[size], ++groups;
      size = 1;
    }
    const auto usual =
        std::ranges::max_element(sizes, {}, [](const auto& one) { return one.second; });
    if (groups < 8 || usual->first < 2 || 10 * usual->second < 9 * groups) return;
    throw DataError(
        fmt::format("{}: its rows come in groups of {}, as of {} GPUs that no column tells apart",
                    log_.file, usual->first, usual->first),
        {.hint = "log with a column index, pci.bus_id or uuid, or of one GPU (nvidia-smi -i 0)"});
  }

  PowerRows read_;
  PowerLogOptions options_;
  PowerLog log_;
  std::map<std::string, const PowerColumns*> chosen_;  // by name of the power column
  std::set<std::string> replaced_;
  std::size_t missing_ = 0, other_base_ = 0;
};

}  // namespace

double PowerLog::period_s() const {
  std::vector<double> steps;
  for (std::size_t i = 1; i < samples.size(); ++i)
    steps.push_back(samples[i].time_s - samples[i - 1].time_s);
  if (steps.empty()) return 0.0;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

PowerLog parse_power_log(std::string_view text, std::string name, const PowerLogOptions& options) {
  PowerRows rows = read_power_rows(text, name);
  return SampleChoice(std::move(rows), std::move(name), options).log();
}

PowerLog read_power_log(const std::filesystem::path& path, const PowerLogOptions& options) {
  return parse_power_log(read_text(path), path.string(), options);
}

std::string_view name_of(PowerLogKind value) noexcept {
  switch (value) {
    case PowerLogKind::nvidia_smi: return "nvidia-smi";
    case PowerLogKind::dcgm: return "DCGM";
    case PowerLogKind::zeus: return "Zeus";
    case PowerLogKind::samples: break;
  }
  return "samples";
}

}  // namespace rubato

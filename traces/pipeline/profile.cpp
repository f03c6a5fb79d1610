#include "traces/pipeline/profile.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "traces/pipeline/profile_checks.hpp"

namespace rubato {

namespace {

// What the ranks of one stage took for a pass at one setting.
struct Sample {
  double time_s = 0.0;
  CompensatedSum energy_j;
  std::size_t ranks = 0;
  std::size_t with_energy = 0;  // so many of the ranks; the others were not measured
};

using Key = ProfileKey;

// What a profile asks a stage to run at: core clock, and power limit or 0.
using Setting = std::pair<double, double>;

// The setting of any option, by which options of two passes are matched: models choose memory
// clocks too.
std::tuple<double, double, double> setting_of(const ClockOption& option) {
  return {option.core_mhz, option.mem_mhz, option.power_limit_w};
}

class ProfileReader {
 public:
  explicit ProfileReader(const CsvTable& table) : table_(table) {
    long_form_ = table.find_column("rank").has_value();
    if (long_form_) {
      table.expect_columns({"rank", "dp_rank", "pp_rank", "tp_rank", "stage", "instruction",
                            "frequency", "time", "energy"},
                           {"power_limit"});
    } else {
      table.expect_columns({"stage", "instruction", "frequency", "time", "energy"},
                           {"power_limit"});
    }
  }

  PipelineProfile read(std::string name) {
    const std::vector<bool> copies = table_.copies();
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      if (!copies[row]) add(row);
    }
    errors_.throw_if_any();
    checks_.expect_usual_times(errors_);
    errors_.throw_if_any();
    if (order_.empty()) {
      throw DataError(
          fmt::format("{}: there is no line; expected one per stage, pass and clock", name));
    }
    PipelineProfile profile{std::move(name), {}};
    if (const auto copied = std::ranges::count(copies, true); copied > 0)
      profile.notes.push_back(fmt::format("{} of {} rows are copies of earlier ones and count once",
                                          copied, copies.size()));
    for (const Key& key : order_) profile.passes.push_back(pass_of(key, profile.notes));
    errors_.throw_if_any();
    return profile;
  }

 private:
  // Leaves out a clock without energy beside others with one: it was not measured, and at 0 J would
  // be the cheapest.
  PassType pass_of(const Key& key, std::vector<std::string>& notes) {
    PassType pass{key.first, key.second, {}};
    const std::map<Setting, Sample>& samples = samples_.at(key);
    std::size_t unmeasured = 0, partly = 0;
    for (const auto& [setting, sample] : samples) {
      if (sample.with_energy == 0) ++unmeasured;
      if (sample.with_energy > 0 && sample.with_energy < sample.ranks) ++partly;
    }
    const bool any = unmeasured < samples.size();
    for (const auto& [setting, sample] : samples) {
      if (sample.with_energy == 0 && any) continue;
      const auto ranks = static_cast<double>(std::max<std::size_t>(sample.with_energy, 1));
      pass.options.push_back({.core_mhz = setting.first,
                              .time_s = sample.time_s,
                              .energy_j = sample.energy_j.value() / ranks,
                              .power_limit_w = setting.second});
    }
    std::ranges::reverse(pass.options);  // highest clock first
    const std::string what = fmt::format("{} of stage {}", name_of(key.second), key.first);
    if (!any) {
      notes.push_back(fmt::format(
          "{} has an energy of 0 J at every clock; it is taken to draw blocked power", what));
    } else if (samples.rbegin()->second.with_energy == 0) {
      errors_.add(fmt::format(
          "{} has an energy of 0 J at its highest clock, {} MHz, which savings are against; leave "
          "that clock out, or measure its energy",
          what, samples.rbegin()->first.first));
    } else if (unmeasured > 0) {
      notes.push_back(fmt::format("{} has an energy of 0 J at {} of {} clocks; they are left out",
                                  what, unmeasured, samples.size()));
    }
    if (partly > 0)
      notes.push_back(fmt::format(
          "{} has an energy of 0 J on some ranks at {} of {} clocks; the mean is of the others",
          what, partly, samples.size()));
    return pass;
  }

  std::optional<Key> read_key(std::size_t row) {
    const std::string& stage = table_.cell(row, table_.column("stage"));
    const std::string& kind = table_.cell(row, table_.column("instruction"));
    const auto number = parse_count(stage);
    if (!number || *number >= max_pipeline_passes) {
      errors_.add(
          fmt::format("{}: stage is '{}'; expected a whole number", table_.where(row), stage));
      return std::nullopt;
    }
    const auto& names = pass_kind_names();
    const auto found = std::ranges::find(names, kind);
    if (found == names.end()) {
      errors_.add(fmt::format("{}: instruction '{}' is not known{}", table_.where(row), kind,
                              did_you_mean(kind, names)));
      return std::nullopt;
    }
    return Key{static_cast<std::uint32_t>(*number), static_cast<PassKind>(found - names.begin())};
  }

  void add(std::size_t row) {
    if (table_.cell(row, table_.column("instruction")) == "load") return;
    const auto key = read_key(row);
    const auto number = [&](const char* column) {
      return table_.number(row, table_.column(column), Range::positive, errors_);
    };
    const auto core_mhz = number("frequency");
    const auto time_s = number("time");
    const auto energy_j = table_.number(row, table_.column("energy"), Range::non_negative, errors_);
    const auto limited = table_.find_column("power_limit");
    const auto limit_w = limited ? number("power_limit") : std::optional(0.0);
    if (!key || !core_mhz || !time_s || !energy_j || !limit_w) return;
    const ClockOption option{.core_mhz = *core_mhz,
                             .time_s = *time_s,
                             .energy_j = *energy_j,
                             .mem_mhz = 0.0,
                             .power_limit_w = *limit_w};
    if (!checks_.add(table_.where(row), *key, option, errors_)) return;
    if (!samples_.contains(*key)) order_.push_back(*key);
    Sample& sample = samples_[*key][{*core_mhz, *limit_w}];
    if (sample.ranks > 0 && !long_form_) {
      errors_.add(fmt::format("{}: stage {}, {} at {} MHz{} is given twice", table_.where(row),
                              key->first, name_of(key->second), *core_mhz,
                              limited ? fmt::format(" and {} W", *limit_w) : ""));
    }
    sample.time_s = std::max(sample.time_s, *time_s);
    sample.energy_j.add(*energy_j);
    if (!std::isfinite(sample.energy_j.value()))
      errors_.add(
          fmt::format("{}: the energies of the ranks add up to no number", table_.where(row)));
    ++sample.ranks;
    if (*energy_j > 0.0) ++sample.with_energy;
  }

  const CsvTable& table_;
  bool long_form_ = false;
  std::map<Key, std::map<Setting, Sample>> samples_;
  ProfileChecks checks_;
  std::vector<Key> order_;
  ErrorList errors_;
};

void scale(PassType& pass, double factor) {
  for (ClockOption& option : pass.options) {
    option.time_s *= factor;
    option.energy_j *= factor;
  }
}

// Backward less forward, clock by clock: what is left once recomputing is a pass of its own.
PassType without_forward(PassType backward, const PassType& forward, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(fmt::format("{}: stage {}: {}", name, backward.stage, why),
                    {.in = {}, .hint = "add rows with instruction 'recompute' to the profile"});
  };
  for (ClockOption& option : backward.options) {
    const auto same = std::ranges::find(forward.options, setting_of(option), setting_of);
    if (same == forward.options.end())
      refuse(fmt::format("the forward pass has no energy at {} MHz to take off the backward pass",
                         option.core_mhz));
    if (option.energy_j == 0.0 || same->energy_j == 0.0)
      refuse("recomputing cannot be taken off a backward pass where an energy is 0 J");
    option.time_s -= same->time_s;
    option.energy_j -= same->energy_j;
    if (option.time_s <= 0.0 || option.energy_j <= 0.0)
      refuse(fmt::format("the backward pass at {} MHz does not contain a forward pass",
                         option.core_mhz));
  }
  return backward;
}

// Options of one virtual stage and kind, made from what the profile has.
class TypeMaker {
 public:
  TypeMaker(const PipelineProfile& profile, const PipelineSchedule& schedule,
            double blocked_power_w, const std::vector<std::uint32_t>& stage_map)
      : profile_(profile),
        kind_(schedule.shape.kind),
        stage_map_(stage_map),
        blocked_power_w_(blocked_power_w) {
    const std::uint32_t stages = schedule.shape.stages;
    const std::uint32_t virtual_stages = stages * schedule.shape.chunks;
    if (stage_map_.empty() && profile.stages() != virtual_stages && profile.stages() != stages) {
      throw DataError(fmt::format("{}: the profile has {} stages; the pipeline has {}",
                                  profile.name, profile.stages(), virtual_stages),
                      {.in = {},
                       .hint = "say which profile stage each stage uses: 'rubato pipeline describe "
                               "--stage-map 0,1,6,7'"});
    }
    if (!stage_map_.empty() && stage_map_.size() != virtual_stages && stage_map_.size() != stages) {
      throw DataError(fmt::format("the stage map has {} entries; expected {}, one per stage",
                                  stage_map_.size(), virtual_stages));
    }
    const std::size_t listed = stage_map_.empty() ? profile.stages() : stage_map_.size();
    share_ = listed == virtual_stages ? 1.0 : 1.0 / schedule.shape.chunks;
    stages_ = stages;
    virtual_stages_ = virtual_stages;
    modulo_ = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(listed));
  }

  [[nodiscard]] PassType make(std::uint32_t virtual_stage, PassKind kind) const {
    PassType pass = from_profile(profile_stage(virtual_stage), kind);
    if (ends_step(kind)) {
      if (share_ == 1.0 && kind != PassKind::embedding_all_reduce) add_chunks(virtual_stage, pass);
    } else if (share_ != 1.0) {
      scale(pass, share_);
    }
    // Of a pass whose energy nobody measured no duration is cheaper than another.
    for (ClockOption& option : pass.options) {
      if (option.energy_j == 0.0) option.energy_j = blocked_power_w_ * option.time_s;
    }
    return pass;
  }

 private:
  [[nodiscard]] std::uint32_t profile_stage(std::uint32_t virtual_stage) const {
    const std::uint32_t place = virtual_stage % modulo_;
    return stage_map_.empty() ? place : stage_map_[place];
  }

  // A stage ends its step once, for all of its chunks: theirs are added where the profile has them.
  void add_chunks(std::uint32_t first, PassType& pass) const {
    bool any = false;
    for (std::uint32_t v = stages_; v < virtual_stages_; ++v)
      any = any || profile_.find(profile_stage(v), pass.kind) != nullptr;
    if (!any) return;
    for (std::uint32_t v = first + stages_; v < virtual_stages_; v += stages_)
      add_clocks(needed(profile_stage(v), pass.kind), pass);
  }

  void add_clocks(const PassType& more, PassType& pass) const {
    for (ClockOption& option : pass.options) {
      const auto same = std::ranges::find(more.options, setting_of(option), setting_of);
      if (same == more.options.end() || more.options.size() != pass.options.size())
        throw DataError(
            fmt::format("{}: {} of stages {} and {}, chunks of one stage, have different clocks",
                        profile_.name, name_of(pass.kind), pass.stage, more.stage),
            {.in = {}, .hint = "a stage ends its step at one clock: give both at the same clocks"});
      option.time_s += same->time_s;
      option.energy_j += same->energy_j;
    }
  }

  [[nodiscard]] PassType from_profile(std::uint32_t stage, PassKind kind) const {
    const bool split_backward = kind == PassKind::backward &&
                                kind_ == ScheduleKind::early_recompute &&
                                profile_.find(stage, PassKind::recompute) == nullptr;
    if (const PassType* found = profile_.find(stage, kind); found != nullptr && !split_backward) {
      return *found;
    }
    if (split_backward) {
      return without_forward(needed(stage, kind), needed(stage, PassKind::forward), profile_.name);
    }
    if (kind == PassKind::embedding_all_reduce) {  // lasts as long on all who share in it
      const auto any = std::ranges::find(profile_.passes, kind, &PassType::kind);
      if (any != profile_.passes.end()) return *any;
    }
    if (kind == PassKind::recompute) {
      PassType pass = needed(stage, PassKind::forward);
      pass.kind = kind;
      return pass;
    }
    if (kind == PassKind::input_gradient || kind == PassKind::weight_gradient) {
      PassType pass = needed(stage, PassKind::backward);
      pass.kind = kind;
      scale(pass, 0.5);
      return pass;
    }
    return needed(stage, kind);
  }

  [[nodiscard]] const PassType& needed(std::uint32_t stage, PassKind kind) const {
    if (const PassType* found = profile_.find(stage, kind)) return *found;
    throw DataError(
        fmt::format("{}: no profile of the {} pass of stage {}", profile_.name, name_of(kind),
                    stage),
        {.in = {}, .hint = "every stage needs rows for each instruction of the schedule"});
  }

  const PipelineProfile& profile_;
  ScheduleKind kind_;
  const std::vector<std::uint32_t>& stage_map_;
  double blocked_power_w_ = 0.0, share_ = 1.0;
  std::uint32_t modulo_ = 1;
  std::uint32_t stages_ = 1, virtual_stages_ = 1;
};

}  // namespace

std::uint32_t PipelineProfile::stages() const noexcept {
  std::uint32_t count = 0;
  for (const PassType& pass : passes) count = std::max(count, pass.stage + 1);
  return count;
}

const PassType* PipelineProfile::find(std::uint32_t stage, PassKind kind) const noexcept {
  for (const PassType& pass : passes) {
    if (pass.stage == stage && pass.kind == kind) return &pass;
  }
  return nullptr;
}

bool PipelineProfile::has(PassKind kind) const noexcept {
  return std::ranges::find(passes, kind, &PassType::kind) != passes.end();
}

PipelineProfile read_pipeline_profile(const std::filesystem::path& path) {
  const CsvTable table = CsvTable::read(path);
  return ProfileReader(table).read(path.string());
}

PipelineProfile parse_pipeline_profile(std::string_view text, std::string name) {
  const CsvTable table = CsvTable::parse(text, name);
  return ProfileReader(table).read(std::move(name));
}

PipelineWork pipeline_work(PipelineSchedule schedule, const PipelineProfile& profile,
                           double blocked_power_w, const std::vector<std::uint32_t>& stage_map) {
  if (!(blocked_power_w >= 0.0) || !std::isfinite(blocked_power_w)) {
    throw DataError(fmt::format("blocked power is {} W; expected a number >= 0", blocked_power_w));
  }
  const TypeMaker maker(profile, schedule, blocked_power_w, stage_map);
  PipelineWork work{std::move(schedule), {}, {}, blocked_power_w};
  std::map<Key, PassTypeId> known;
  for (const PipelinePass& pass : work.schedule.passes) {
    const Key key{pass.chunk * work.schedule.shape.stages + pass.stage, pass.kind};
    const auto [entry, is_new] = known.try_emplace(key, id_at<PassTypeId>(work.types.size()));
    if (is_new) {
      PassType type = maker.make(key.first, key.second);
      type.stage = pass.stage;
      work.types.push_back(std::move(type));
    }
    work.type_of_pass.push_back(entry->second);
  }
  return work;
}

PipelineWork with_host_power(PipelineWork work, double host_power_w) {
  for (PassType& type : work.types) {
    for (ClockOption& option : type.options) option.energy_j += host_power_w * option.time_s;
  }
  work.blocked_power_w += host_power_w;
  work.host_power_w += host_power_w;
  return work;
}

}  // namespace rubato

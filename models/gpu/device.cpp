#include "models/gpu/device.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/gpu/family.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_gpu_specs();

namespace {

using Words = DeviceWords;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_maker(const std::string& word) {
  static constexpr std::array makers{"nvidia",   "geforce",  "tesla", "quadro", "amd",
                                     "instinct", "graphics", "gpu",   "device"};
  return std::ranges::find(makers, word) != makers.end();
}

bool is_memory_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") && is_digit(word[0]);
}

// Kinds of cards that one chip comes on.
bool is_form(const std::string& word) {
  // "ac": cooled by air.
  static constexpr std::array forms{"pcie",   "nvl",         "hbm2",    "hbm2e", "hbm3", "hbm3e",
                                    "server", "workstation", "edition", "dgxs",  "ac"};
  return word.starts_with("sxm") || std::ranges::find(forms, word) != forms.end();
}

// NVIDIA's board numbers: "A100-PG509-200".
bool is_board(const std::string& word) {
  const auto all_digits = [](std::string_view text) { return std::ranges::all_of(text, is_digit); };
  return (word.size() == 5 && word.starts_with("pg") && all_digits(word.substr(2))) ||
         (word.size() == 3 && all_digits(word));
}

Words without_makers(Words words) {
  std::erase_if(words, is_maker);
  return words;
}

// What is left is the chip's: "a100", "rtx 3080 ti laptop".
Words chip_of(Words words) {
  std::erase_if(words, [](const std::string& word) {
    return is_maker(word) || is_memory_size(word) || is_form(word) || is_board(word);
  });
  return words;
}

// Drivers do not always say the form of the card; these names are of one form only.
Words with_form(Words words) {
  if (words == Words{"h100", "80gb", "hbm3"}) return {"h100", "sxm5", "80gb"};
  if (words == Words{"h200"}) return {"h200", "sxm5", "141gb"};
  return words;
}

// How near to its state's clock logs and drivers read a memory clock, as a share of it: 1215 MHz of
// 1215.5, 9490 of 9501.
constexpr double mem_reading_frac = 0.02;

// "sxm" and "pcie" of "sxm4" and "pcie"; nothing where no form is said.
std::string form_of(const Words& words) {
  for (const std::string& word : words) {
    if (word.starts_with("sxm")) return "sxm";
    if (word == "pcie" || word == "nvl") return "pcie";
  }
  return {};
}

}  // namespace

DeviceWords words_of_device(std::string_view name) {
  DeviceWords words;
  std::string word;
  const auto take = [&] {
    if (!word.empty()) words.insert(word);
    word.clear();
  };
  for (const char c : name.substr(0, name.find_first_of(",("))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      word += static_cast<char>(std::tolower(byte));
    } else {
      take();
    }
  }
  take();
  return words;
}

std::string form_of_device(std::string_view device) {
  return form_of(with_form(without_makers(words_of_device(device))));
}

DeviceMatch match_device(const GpuSpec& spec, std::string_view device) {
  const Words words = with_form(without_makers(words_of_device(device)));
  if (words.empty()) return DeviceMatch::unnamed;
  const Words known = without_makers(words_of_device(spec.title));
  const bool all_there = !known.empty() && std::ranges::includes(words, known);
  const bool nothing_else = std::ranges::all_of(
      words, [&](const std::string& word) { return known.contains(word) || is_memory_size(word); });
  if (all_there && nothing_else) return DeviceMatch::same;
  const Words chip = chip_of(words);
  return !chip.empty() && chip == chip_of(known) ? DeviceMatch::near : DeviceMatch::other;
}

GpuVendor vendor_of(std::string_view device) {
  for (const std::string& word : words_of_device(device)) {
    const bool instinct = word.size() > 2 && word.starts_with("mi") && is_digit(word[2]);
    if (instinct || word == "amd" || word == "instinct" || word == "radeon" ||
        word.starts_with("gfx"))
      return GpuVendor::amd;
    if (word == "intel" || word == "arc" || word == "gaudi") return GpuVendor::intel;
  }
  return GpuVendor::nvidia;
}

std::string_view name_of(GpuVendor value) noexcept {
  switch (value) {
    case GpuVendor::amd: return "AMD";
    case GpuVendor::intel: return "Intel";
    case GpuVendor::nvidia: break;
  }
  return "NVIDIA";
}

Bounds plausible_power_w(const GpuSpec& spec) {
  constexpr double least_share = 0.1, most_limits = 5.0;
  const double base_w = std::ranges::min(spec.mem_states, {}, &MemState::base_power_w).base_power_w;
  return {std::max(board_power_w.low, least_share * base_w),
          std::min(board_power_w.high, most_limits * spec.power_limit.max_w)};
}

std::optional<double> compute_capability(const GpuSpec& spec) {
  if (spec.compute_capability || vendor_of(spec.title) != GpuVendor::nvidia)
    return spec.compute_capability;
  for (const DeviceMatch match : {DeviceMatch::same, DeviceMatch::near}) {
    const std::vector<std::string> shipped = specs_matching(spec.title, match);
    if (!shipped.empty()) return load_gpu_spec(shipped.front()).compute_capability;
  }
  return std::nullopt;
}

std::vector<std::string> specs_matching(std::string_view device, DeviceMatch match) {
  const std::string form = form_of_device(device);
  std::vector<std::string> found, of_form;
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    if (match_device(spec, device) != match) continue;
    found.push_back(name);
    if (form_of_device(spec.title) == form) of_form.push_back(name);
  }
  const bool by_form = match == DeviceMatch::near && !form.empty() && !of_form.empty();
  return by_form ? of_form : found;
}

std::string usual_spec_of(const std::vector<std::string>& same) {
  std::string usual;
  for (const std::string& name : same) {
    if (load_gpu_spec(name).title.find_first_of(",(") != std::string::npos) continue;
    if (!usual.empty()) return "";
    usual = name;
  }
  return usual;
}

std::string spec_of_device(std::string_view device) {
  std::vector<std::string> found = specs_matching(device, DeviceMatch::same);
  if (found.size() == 1) return found.front();
  if (std::string usual = usual_spec_of(found); !usual.empty()) return usual;
  if (found.empty()) found = specs_matching(device, DeviceMatch::near);
  if (found.empty()) found = nearest_specs(device);
  constexpr std::size_t few = 3;
  found.resize(std::min(few, found.size()));
  throw UsageError(
      fmt::format("there is no GPU spec of '{}' among the {} shipped{}", printable(device),
                  shipped_gpu_specs().size(),
                  found.empty() ? "" : fmt::format("; near: {}", fmt::join(found, ", "))),
      {.in = {}, .hint = "'rubato gpus' lists them; your own: docs/add-a-gpu.md"});
}

GpuSpec load_gpu_spec(std::string_view name_or_path) {
  if (name_or_path.find(' ') != std::string_view::npos && !std::filesystem::exists(name_or_path))
    return load_gpu_spec(spec_of_device(name_or_path));
  const NamedText named =
      read_named(embedded_gpu_specs(), name_or_path, "GPU spec",
                 "'rubato gpus' lists them; or give the file of a spec (docs/add-a-gpu.md)");
  return parse_gpu_spec(named.text, named.path.string());
}

ClockPair captured_clock(const GpuSpec& spec, const std::optional<std::string>& label) {
  ClockPair clock = spec.default_clock;
  if (!label) return clock;
  const std::size_t slash = label->find('/');
  const std::string mem = label->substr(0, slash);
  const std::string core = slash == std::string::npos ? "" : label->substr(slash + 1);
  const auto mem_mhz = parse_number(mem), core_mhz = parse_number(core);
  const auto named = std::ranges::find(spec.mem_states, mem, &MemState::name);
  const bool good =
      (named != spec.mem_states.end() || mem == "auto" || (mem_mhz && *mem_mhz > 0.0)) &&
      (core == "auto" || (core_mhz && *core_mhz > 0.0));
  if (!good) {
    throw UsageError(
        fmt::format("'{}' is no captured clock; expected MEMORY/CORE in MHz, e.g. "
                    "1593/1410, or auto/auto",
                    printable(*label)));
  }
  const auto refuse = [&](std::string_view what, const std::string& known) {
    throw UsageError(fmt::format("'{}' is no captured clock of {}: {}", printable(*label),
                                 printable(spec.name), what),
                     {.in = {}, .hint = "MEMORY/CORE in MHz; it has " + known});
  };
  if (named != spec.mem_states.end()) {
    clock.mem = id_at<MemStateId>(static_cast<std::size_t>(named - spec.mem_states.begin()));
  } else if (mem_mhz) {
    const auto nearest = std::ranges::min_element(spec.mem_states, {}, [&](const MemState& state) {
      return std::abs(state.mem_mhz - *mem_mhz);
    });
    if (std::abs(nearest->mem_mhz - *mem_mhz) > mem_reading_frac * nearest->mem_mhz) {
      std::string states;
      for (const MemState& state : spec.mem_states)
        states += (states.empty() ? "memory " : ", ") + format_number(state.mem_mhz);
      refuse("no memory clock is near " + mem, states);
    }
    clock.mem = id_at<MemStateId>(static_cast<std::size_t>(nearest - spec.mem_states.begin()));
  }
  clock.core_mhz.reset();
  if (core_mhz) {
    const CoreClocks& range = spec.core;
    if (*core_mhz < range.min_mhz - range.step_mhz || *core_mhz > range.max_mhz + range.step_mhz) {
      refuse(
          "no core clock is near " + core,
          fmt::format("core {} to {}", format_number(range.min_mhz), format_number(range.max_mhz)));
    }
    const double steps = std::round((*core_mhz - range.min_mhz) / range.step_mhz);
    clock.core_mhz =
        std::clamp(range.min_mhz + steps * range.step_mhz, range.min_mhz, range.max_mhz);
  }
  return clock;
}

}  // namespace rubato

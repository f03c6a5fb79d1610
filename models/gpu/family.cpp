#include "models/gpu/family.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/gpu/device.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

namespace {

// Words that a name must have: '#' is a digit, '*' at the end whatever follows.
struct FamilyRule {
  std::string_view words;
  double compute_capability;
  double sm_count;  // 0: not known, or different cards
};

// The first rule that fits decides, so special names come before families.
constexpr std::array family_rules{
    // data centre
    FamilyRule{"b300", 10.3, 148},
    FamilyRule{"gb300", 10.3, 148},
    FamilyRule{"gb10", 12.1, 48},
    FamilyRule{"b###", 10.0, 148},
    FamilyRule{"gb###", 10.0, 148},
    FamilyRule{"h20", 9.0, 78},
    FamilyRule{"h100 pcie", 9.0, 114},
    FamilyRule{"h###", 9.0, 132},
    FamilyRule{"gh###", 9.0, 132},
    FamilyRule{"a100*", 8.0, 108},
    FamilyRule{"a800", 8.0, 108},
    FamilyRule{"a30", 8.0, 56},
    FamilyRule{"a30x", 8.0, 56},
    FamilyRule{"pg506", 8.0, 108},
    FamilyRule{"a10", 8.6, 72},
    FamilyRule{"a10g", 8.6, 80},
    FamilyRule{"a40", 8.6, 84},
    FamilyRule{"a16", 8.6, 10},
    FamilyRule{"a2", 8.6, 10},
    FamilyRule{"l4", 8.9, 58},
    FamilyRule{"l20", 8.9, 92},
    FamilyRule{"l40*", 8.9, 142},
    FamilyRule{"l2", 8.9, 24},
    FamilyRule{"v100*", 7.0, 80},
    FamilyRule{"gv100", 7.0, 80},
    FamilyRule{"p100", 6.0, 56},
    FamilyRule{"gp100", 6.0, 56},
    FamilyRule{"t4*", 7.5, 40},
    FamilyRule{"p40", 6.1, 30},
    FamilyRule{"tesla p4", 6.1, 20},
    FamilyRule{"tesla p6", 6.1, 16},
    FamilyRule{"m60", 5.2, 16},
    FamilyRule{"m40", 5.2, 24},
    FamilyRule{"m10", 5.0, 5},
    FamilyRule{"tesla m4", 5.2, 8},
    FamilyRule{"tesla m6", 5.2, 12},
    FamilyRule{"tesla k80", 3.7, 13},
    FamilyRule{"tesla k##*", 3.5, 15},
    FamilyRule{"cmp 170hx", 8.0, 70},
    // boards with the host's memory
    FamilyRule{"thor", 11.0, 20},
    FamilyRule{"orin", 8.7, 16},
    FamilyRule{"xavier", 7.2, 8},
    FamilyRule{"tx2", 6.2, 2},
    FamilyRule{"x1", 5.3, 2},
    // workstations
    FamilyRule{"rtx pro 6000", 12.0, 188},
    FamilyRule{"rtx pro 5000", 12.0, 110},
    FamilyRule{"rtx pro 4500", 12.0, 82},
    FamilyRule{"rtx pro", 12.0, 70},
    FamilyRule{"rtx 6000 ada", 8.9, 142},
    FamilyRule{"rtx 5000 ada", 8.9, 100},
    FamilyRule{"rtx ada", 8.9, 0},
    FamilyRule{"rtx a6000", 8.6, 84},
    FamilyRule{"rtx a5500", 8.6, 80},
    FamilyRule{"rtx a5000", 8.6, 64},
    FamilyRule{"rtx a4500", 8.6, 56},
    FamilyRule{"rtx a2000", 8.6, 26},
    FamilyRule{"rtx a####", 8.6, 48},
    FamilyRule{"rtx a###", 8.6, 16},
    FamilyRule{"quadro rtx 8000", 7.5, 72},
    FamilyRule{"quadro rtx 6000", 7.5, 72},
    FamilyRule{"quadro rtx ####", 7.5, 40},
    FamilyRule{"t###*", 7.5, 14},
    FamilyRule{"t####", 7.5, 14},
    FamilyRule{"quadro p####", 6.1, 20},
    FamilyRule{"quadro p###", 6.1, 4},
    FamilyRule{"quadro m####", 5.2, 13},
    FamilyRule{"titan v", 7.0, 80},
    FamilyRule{"titan rtx", 7.5, 72},
    FamilyRule{"titan xp", 6.1, 30},
    FamilyRule{"gtx titan x", 5.2, 24},
    FamilyRule{"titan x", 6.1, 28},
    FamilyRule{"titan", 3.5, 14},
    // GeForce
    FamilyRule{"rtx 5090", 12.0, 170},
    FamilyRule{"rtx 5080", 12.0, 84},
    FamilyRule{"rtx 50##", 12.0, 50},
    FamilyRule{"rtx 4090", 8.9, 128},
    FamilyRule{"rtx 40##", 8.9, 0},
    FamilyRule{"rtx 3090", 8.6, 82},
    FamilyRule{"rtx 3080 laptop", 8.6, 48},
    FamilyRule{"rtx 3080", 8.6, 68},
    FamilyRule{"rtx 30##", 8.6, 40},
    FamilyRule{"rtx 2080 ti", 7.5, 68},
    FamilyRule{"rtx 20##", 7.5, 40},
    FamilyRule{"gtx 16##", 7.5, 22},
    FamilyRule{"gtx 1080 ti", 6.1, 28},
    FamilyRule{"gtx 10##", 6.1, 15},
    FamilyRule{"gtx 9##*", 5.2, 16},
    FamilyRule{"gtx 7##*", 3.5, 12},
    FamilyRule{"mx###", 6.1, 3},
};

bool word_fits(std::string_view pattern, std::string_view word) {
  const bool open = pattern.ends_with('*');
  if (open) pattern.remove_suffix(1);
  if (open ? word.size() < pattern.size() : word.size() != pattern.size()) return false;
  return std::ranges::equal(pattern, word.substr(0, pattern.size()), [](char p, char c) {
    return p == '#' ? c >= '0' && c <= '9' : p == c;
  });
}

// "R100 (compute capability 9.0, 132 SMs)"
std::optional<GpuFamily> said_family(std::string_view device) {
  constexpr std::string_view key = "(compute capability ";
  const std::size_t found = device.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> parts = split(device.substr(found + key.size()), ',');
  const auto capability = parse_number(parts.front().substr(0, parts.front().find(')')));
  if (!capability || !(*capability >= 1.0 && *capability < 100.0)) return std::nullopt;
  GpuFamily family{*capability, std::nullopt};
  const std::vector<std::string_view> words = split(parts.back(), ' ');  // "", "132", "SMs)"
  const auto sms =
      parts.size() > 1 && words.size() > 1 ? parse_number(words[1]) : std::optional<double>();
  if (sms && *sms >= 1.0) family.sm_count = sms;
  return family;
}

bool is_geforce(const DeviceWords& words) {
  return words.contains("geforce") || words.contains("gtx") || words.contains("titan");
}

}  // namespace

std::optional<GpuFamily> family_of(std::string_view device) {
  if (vendor_of(device) != GpuVendor::nvidia) return std::nullopt;
  const DeviceWords words = words_of_device(device);
  for (const FamilyRule& rule : family_rules) {
    const bool fits = std::ranges::all_of(split(rule.words, ' '), [&](std::string_view pattern) {
      return std::ranges::any_of(words,
                                 [&](const std::string& word) { return word_fits(pattern, word); });
    });
    if (!fits) continue;
    return GpuFamily{rule.compute_capability,
                     rule.sm_count > 0 ? std::optional(rule.sm_count) : std::nullopt};
  }
  return said_family(device);
}

bool has_hbm(double compute_capability) {
  static constexpr std::array with_hbm{6.0, 7.0, 8.0, 9.0, 10.0, 10.3};
  return std::ranges::find(with_hbm, compute_capability) != with_hbm.end();
}

std::vector<std::string> nearest_specs(std::string_view device) {
  const std::optional<GpuFamily> own = family_of(device);
  if (!own) return {};
  // A GeForce and another card of one chip differ in clocks, memory and power limit as much as
  // chips of a fifth more SMs do.
  constexpr double other_card = 0.2;
  const DeviceWords words = words_of_device(device);
  struct Ranked {
    std::tuple<bool, double, bool, double> distance;
    std::string name;
    DeviceWords card;
  };
  std::vector<Ranked> ranked;
  const std::string form = form_of_device(device);
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    if (!spec.compute_capability) continue;
    const double sms = own->sm_count ? std::abs(std::log(spec.sm_count / *own->sm_count)) : 0.0;
    const bool same_cards = is_geforce(words) == is_geforce(words_of_device(spec.title));
    ranked.push_back({{has_hbm(*spec.compute_capability) != has_hbm(own->compute_capability),
                       std::abs(*spec.compute_capability - own->compute_capability),
                       !form.empty() && form_of_device(spec.title) != form,
                       sms + (same_cards ? 0.0 : other_card)},
                      name,
                      words_of_device(spec.title)});
  }
  std::ranges::stable_sort(ranked, {}, &Ranked::distance);
  std::vector<std::string> names;
  std::set<DeviceWords> cards;
  for (const Ranked& one : ranked) {
    if (cards.insert(one.card).second) names.push_back(one.name);
  }
  return names;
}

}  // namespace rubato

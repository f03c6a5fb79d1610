#include "tools/options/gpu.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"

#include "common/text.hpp"

namespace rubato {

namespace {

// What names a card: "NVIDIA GeForce RTX 3080 Ti, the card of ..." -> rtx, 3080, ti.
std::set<std::string> words_of(std::string_view name) {
  static constexpr std::array makers{"nvidia", "geforce", "tesla", "quadro"};
  std::set<std::string> words;
  std::string word;
  const auto take = [&] {
    if (!word.empty() && std::ranges::find(makers, word) == makers.end()) words.insert(word);
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

bool is_memory_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::isdigit(static_cast<unsigned char>(word[0])) != 0;
}

// Drivers do not always say the form of the card; these names are of one form only.
std::set<std::string> with_form(std::set<std::string> words) {
  if (words == std::set<std::string>{"h100", "80gb", "hbm3"}) return {"h100", "sxm5", "80gb"};
  if (words == std::set<std::string>{"h200"}) return {"h200", "sxm5", "141gb"};
  return words;
}

}  // namespace

std::vector<std::string> specs_of_device(std::string_view device) {
  const std::set<std::string> words = with_form(words_of(device));
  std::vector<std::string> found;
  for (const std::string& name : shipped_gpu_specs()) {
    const std::set<std::string> known = words_of(load_gpu_spec(name).title);
    const bool all_there = !known.empty() && std::ranges::includes(words, known);
    const bool nothing_else = std::ranges::all_of(words, [&](const std::string& word) {
      return known.contains(word) || is_memory_size(word);
    });
    if (all_there && nothing_else) found.push_back(name);
  }
  return found;
}

GpuSpec load_gpu_of_devices(std::span<const std::string> devices, const std::string& file) {
  const std::set<std::string> names(devices.begin(), devices.end());
  const auto refuse = [&](const std::string& why, const std::vector<std::string>& choice) {
    throw UsageError(
        fmt::format("{}: {}", printable(file), why),
        {.in = {},
         .hint = fmt::format("say which with --gpu: {}, or a file", fmt::join(choice, ", "))});
  };
  if (names.size() > 1)
    refuse(fmt::format("it is of different GPUs: {}",
                       printable(fmt::format("{}", fmt::join(names, ", ")))),
           shipped_gpu_specs());
  if (names.empty() || names.begin()->empty())
    refuse("it does not say on which GPU it was captured", shipped_gpu_specs());
  const std::string& device = *names.begin();
  const std::vector<std::string> found = specs_of_device(device);
  if (found.empty())
    refuse(fmt::format("no shipped spec is of its GPU, {}", printable(device)),
           shipped_gpu_specs());
  if (found.size() > 1)
    refuse(fmt::format("{} shipped specs are of its GPU, {}", found.size(), printable(device)),
           found);
  fmt::print(stderr, "note: taken as {}, after the device's name: {}\n", found.front(),
             printable(device));
  return load_gpu(found.front());
}

void say_if_not_calibrated(const GpuSpec& spec) {
  if (spec.calibrated) return;
  fmt::print(stderr, "note: {} is not calibrated: {}; its numbers are rough\n",
             printable(spec.name),
             spec.utilisation || spec.fitted_range ? "its power was fitted, its times were not"
                                                   : "its constants were scaled from another GPU");
}

GpuSpec load_gpu(const std::string& name_or_path) {
  GpuSpec spec = load_gpu_spec(name_or_path);
  say_if_not_calibrated(spec);
  return spec;
}

}  // namespace rubato

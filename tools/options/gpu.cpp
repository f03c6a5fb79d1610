#include "tools/options/gpu.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "models/gpu/device.hpp"
#include "models/gpu/family.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why,
                         const std::vector<std::string>& choice) {
  throw UsageError(
      fmt::format("{}: {}", printable(file), why),
      {.in = {},
       .hint = fmt::format("say which with --gpu: {}, or a file", fmt::join(choice, ", "))});
}

[[noreturn]] void refuse_vendor(const std::string& file, const std::string& device,
                                const std::string& why) {
  throw UsageError(
      fmt::format("{}: its GPU is {}; {}", printable(file), printable(device), why),
      {.in = {}, .hint = "docs/add-a-gpu.md says how to make a spec; give its file with --gpu"});
}

// Of several specs of one GPU, the one whose title is the GPU's alone: those of a particular card
// or fit say so behind it.
GpuSpec usual_spec_of(const std::vector<std::string>& same, const std::string& device,
                      const std::string& file) {
  std::vector<std::string> usual, others;
  for (const std::string& name : same) {
    const bool plain = load_gpu_spec(name).title.find_first_of(",(") == std::string::npos;
    (plain ? usual : others).push_back(name);
  }
  if (usual.size() != 1)
    refuse(file, fmt::format("{} shipped specs are of its GPU, {}", same.size(), device), same);
  tell("note: taken as {}, after the device's name: {}; --gpu takes {} instead\n", usual.front(),
       device, fmt::join(others, " or "));
  return load_gpu(usual.front());
}

GpuSpec shipped_spec_of(const std::string& device, const std::string& file) {
  const std::string shown = printable(device);
  const std::vector<std::string> same = specs_matching(device, DeviceMatch::same);
  if (same.size() > 1) return usual_spec_of(same, shown, file);
  if (same.size() == 1) {
    tell("note: taken as {}, after the device's name: {}\n", same.front(), shown);
    return load_gpu(same.front());
  }
  if (vendor_of(device) != GpuVendor::nvidia)
    refuse_vendor(file, device, "no spec of it is shipped, and none of NVIDIA's is near");
  const std::vector<std::string> near = specs_matching(device, DeviceMatch::near);
  if (near.size() == 1) {
    GpuSpec spec = load_gpu(near.front());
    tell(
        "note: taken as {}: no shipped spec is of {}, but {} has the same chip; its memory, "
        "clocks and power limit may differ\n",
        spec.name, shown, spec.title);
    return spec;
  }
  if (near.empty()) {
    std::vector<std::string> choice = nearest_specs(device);
    if (choice.empty())
      refuse(file, fmt::format("no shipped spec is of its GPU, {}", shown), shipped_gpu_specs());
    constexpr std::size_t few = 3;
    choice.resize(std::min(few, choice.size()));
    refuse(file,
           fmt::format("no shipped spec is of its GPU, {}; those of the nearest chips are listed, "
                       "the nearest first",
                       shown),
           choice);
  }
  refuse(
      file,
      fmt::format("no shipped spec is of its GPU, {}; {} are of the same chip", shown, near.size()),
      near);
}

}  // namespace

std::vector<std::string> device_names(std::span<const Capture> captures) {
  std::vector<std::string> names;
  for (const Capture& capture : captures) {
    for (const CaptureDevice& device : capture.devices) names.push_back(device.name);
  }
  return names;
}

GpuSpec load_gpu_of_devices(std::span<const std::string> devices, const std::string& file) {
  std::set<std::string> names(devices.begin(), devices.end());
  if (names.size() > 1) names.erase("");  // one run: GPUs without a name are as those with one
  if (names.size() > 1)
    refuse(file,
           fmt::format("it is of different GPUs: {}",
                       printable(fmt::format("{}", fmt::join(names, ", ")))),
           shipped_gpu_specs());
  if (names.empty() || names.begin()->empty())
    refuse(file, "it does not say on which GPU it was captured", shipped_gpu_specs());
  return shipped_spec_of(*names.begin(), file);
}

void check_devices(const GpuSpec& spec, std::span<const std::string> devices,
                   const std::string& file, OfAnotherGpu times) {
  const std::set<std::string> names(devices.begin(), devices.end());
  for (const std::string& device : names) {
    const std::string shown = printable(device);
    switch (match_device(spec, device)) {
      case DeviceMatch::same:
      case DeviceMatch::unnamed: break;
      case DeviceMatch::near:
        tell("note: captured on {}, the same chip as {} on another card\n", shown,
             printable(spec.title));
        break;
      case DeviceMatch::other:
        if (vendor_of(device) != vendor_of(spec.title)) {
          refuse_vendor(file, device,
                        fmt::format("{} is another vendor's, and knows nothing of its kernels",
                                    printable(spec.name)));
        }
        tell("note: captured on {}, which is not what {} describes: {}\n", shown,
             printable(spec.title),
             times == OfAnotherGpu::guessed
                 ? "captured times are used only for kernels of unknown work, as a guess"
                 : "its kernels are taken to last as long here, which nobody measured; changes in "
                   "% are rough, and totals are not this GPU's");
    }
  }
}

std::optional<std::string> spec_of_generator(const Provenance& provenance,
                                             std::span<const std::string> devices) {
  constexpr std::string_view option = "gpu=";
  if (!provenance.generator.starts_with("rubato ")) return std::nullopt;
  const std::vector<std::string> shipped = shipped_gpu_specs();
  for (const std::string_view item : split(provenance.options, ' ')) {
    if (!item.starts_with(option)) continue;
    const std::string name(item.substr(option.size()));
    if (std::ranges::find(shipped, name) == shipped.end()) continue;
    const GpuSpec spec = load_gpu_spec(name);
    const auto is_other = [&](const std::string& device) {
      return match_device(spec, device) != DeviceMatch::same;
    };
    if (devices.empty() || std::ranges::any_of(devices, is_other)) continue;
    tell("note: taken as {}, which it was generated with\n", name);
    return name;
  }
  return std::nullopt;
}

GpuSpec load_gpu_for_devices(const std::string& name_or_path, std::span<const std::string> devices,
                             const Provenance& provenance, const std::string& file,
                             OfAnotherGpu times) {
  if (name_or_path.empty()) {
    const auto generated = spec_of_generator(provenance, devices);
    return generated ? load_gpu(*generated) : load_gpu_of_devices(devices, file);
  }
  GpuSpec spec = load_gpu(name_or_path);
  check_devices(spec, devices, file, times);
  return spec;
}

void say_if_not_calibrated(const GpuSpec& spec) {
  if (spec.calibrated) return;
  tell("note: {} is not calibrated: {}; its numbers are rough\n", printable(spec.name),
       spec.utilisation || spec.fitted_range ? "its power was fitted, its times were not"
                                             : "its constants were scaled from another GPU");
}

GpuSpec load_gpu(const std::string& name_or_path) {
  GpuSpec spec = load_gpu_spec(name_or_path);
  say_if_not_calibrated(spec);
  return spec;
}

}  // namespace rubato

#include "tools/options/gpu.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "models/gpu/device.hpp"
#include "models/gpu/family.hpp"
#include "tools/command_line.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why,
                         const std::vector<std::string>& choice) {
  throw UsageError(
      fmt::format("{}: {}", printable(file), why),
      {.in = {},
       .hint = choice.empty()
                   ? "say which with --gpu NAME ('rubato gpus' lists them) or --gpu FILE"
                   : fmt::format("say which with --gpu: {}, or a file", fmt::join(choice, ", "))});
}

[[noreturn]] void refuse_vendor(const std::string& file, const std::string& device,
                                const std::string& why) {
  throw UsageError(
      fmt::format("{}: its GPU is {}; {}", printable(file), printable(device), why),
      {.in = {}, .hint = "docs/add-a-gpu.md says how to make a spec; give its file with --gpu"});
}

GpuSpec shipped_spec_of(const std::string& device, const std::string& file) {
  const std::string shown = printable(device);
  const std::vector<std::string> same = specs_matching(device, DeviceMatch::same);
  if (!same.empty()) {
    const std::string usual = same.size() == 1 ? same.front() : usual_spec_of(same);
    if (usual.empty())
      refuse(file, fmt::format("{} shipped specs are of its GPU, {}", same.size(), shown), same);
    std::vector<std::string> others = same;
    std::erase(others, usual);
    tell("note: GPU model {}, by the name of the device: {}{}\n", usual, shown,
         others.empty() ? "" : fmt::format("; --gpu takes {} instead", fmt::join(others, " or ")));
    return load_gpu(usual);
  }
  if (vendor_of(device) != GpuVendor::nvidia)
    refuse_vendor(file, device, "no spec of it is shipped, and none of NVIDIA's is near");
  const std::vector<std::string> near = specs_matching(device, DeviceMatch::near);
  if (near.size() == 1) {
    GpuSpec spec = load_gpu(near.front());
    tell(
        "note: GPU model {}: none is shipped for {}, but {} has the same chip; its memory, clocks "
        "and power limit may differ\n",
        spec.name, shown, spec.title);
    return spec;
  }
  if (near.empty()) {
    std::vector<std::string> choice = nearest_specs(device);
    if (choice.empty()) refuse(file, fmt::format("no shipped spec is of its GPU, {}", shown), {});
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
    for (const CaptureDevice& device : capture.devices) {
      std::string& name = names.emplace_back(device.name);
      if (!device.compute_capability || family_of(name)) continue;
      name = fmt::format("{} (compute capability {:.1f}{})", name.empty() ? "GPU" : name,
                         *device.compute_capability,
                         device.sm_count ? fmt::format(", {} SMs", *device.sm_count) : "");
    }
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
           {});
  if (names.empty() || names.begin()->empty())
    refuse(file, "it does not say on which GPU it was captured", {});
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
        tell("note: captured on {}, but the GPU model is that of {}: {}\n", shown,
             printable(spec.title),
             times == OfAnotherGpu::guessed
                 ? "captured times are used only for kernels of unknown work, as a guess"
                 : "kernels are assumed to take as long on both, which nobody measured; changes in "
                   "% are rough, and totals are not those of this GPU");
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

void add_power_limits_option(CommandLine& app, std::string& limits, std::string_view only) {
  app.add_option("--power-limits", limits,
                 fmt::format("{}power limits to choose from, W, e.g. 200:400:25 or 200,250: alone "
                             "at the default clocks, with --clocks at each of them",
                             only));
}

std::string with_power_limits(const std::string& clocks, const std::string& limits) {
  if (limits.empty()) return clocks;
  return fmt::format("{}{}limit={}", clocks, clocks.empty() ? "" : " ", limits);
}

void say_if_not_calibrated(const GpuSpec& spec) {
  if (spec.calibrated) return;
  const std::vector<std::string> near = nearest_specs(spec.title);
  const auto fitted = std::ranges::find_if(
      near, [](const std::string& name) { return load_gpu_spec(name).calibrated; });
  tell("note: {} is not calibrated: {}; its numbers are rough{}\n", printable(spec.name),
       !spec.fit_errors.empty() || spec.fitted_range ? "its power was fitted, its times were not"
                                                     : "its constants were scaled from another GPU",
       fitted == near.end() ? "" : fmt::format(" (the nearest that is: {})", *fitted));
}

GpuSpec load_gpu(const std::string& name_or_path) {
  GpuSpec spec = load_gpu_spec(name_or_path);
  say_if_not_calibrated(spec);
  return spec;
}

}  // namespace rubato

#include "traces/import/kineto/other_traces.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include "common/byte_source.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"

namespace rubato::kineto {

namespace {

namespace dom = simdjson::dom;

// What the events of a file say of whoever wrote it.
struct Traits {
  std::set<std::string, std::less<>> categories, processes;
  bool compiled = false;  ///< modules or operations of XLA
  bool pytorch = false, calls_gpu = false;
  bool begin_and_end = false;  ///< device work as two events, of its begin and of its end
};

void look_at(const dom::element& event, Traits& traits) {
  constexpr std::size_t most_kept = 8;
  const auto text_at = [](const dom::element& object, std::string_view key) {
    std::string_view text;
    return object.at_key(key).get(text) == simdjson::SUCCESS ? text : std::string_view();
  };
  const std::string_view category = text_at(event, "cat"), name = text_at(event, "name");
  if (!category.empty() && traits.categories.size() < most_kept)
    traits.categories.emplace(category);
  if (text_at(event, "ph") == "B" && (category == "kernel" || category == "Kernel"))
    traits.begin_and_end = true;
  for (const std::string_view own : {"cpu_op", "Operator", "python_function", "user_annotation"})
    traits.pytorch = traits.pytorch || category == own;
  traits.calls_gpu = traits.calls_gpu || category == "cuda_runtime" || category == "cuda_driver" ||
                     category == "Runtime";
  dom::element args;
  if (event.at_key("args").get(args) != simdjson::SUCCESS) return;
  if (name == "process_name" && traits.processes.size() < most_kept)
    traits.processes.emplace(text_at(args, "name"));
  for (const char* key : {"hlo_module", "hlo_op", "tf_op"})
    traits.compiled = traits.compiled || !text_at(args, key).empty();
}

Traits traits_of(const std::filesystem::path& path) {
  constexpr std::uint64_t enough = std::uint64_t{64} << 20;
  Traits traits;
  dom::parser parser;
  try {
    ByteSource source(path, enough);
    read_json_parts(
        source, "traceEvents",
        {.element =
             [&](std::string_view text, std::uint64_t) {
               dom::element event;
               if (parser.parse(text.data(), text.size(), false).get(event) == simdjson::SUCCESS)
                 look_at(event, traits);
             },
         .member = {}});
  } catch (const DataError&) {
    // What came before may be enough.
  }
  return traits;
}

}  // namespace

DataError no_device_work(const std::filesystem::path& path) {
  const Traits traits = traits_of(path);
  const std::string shown = printable(path.string());
  const bool devices = std::ranges::any_of(traits.processes, [](std::string_view process) {
    return process.find("/device:") != std::string_view::npos ||
           process.find("TPU") != std::string_view::npos;
  });
  if (traits.compiled || devices)
    return DataError(
        fmt::format("{}: is a trace of JAX or TensorFlow (XLA), which is not read", shown),
        {.in = {},
         .hint = "record the run with 'nsys profile', run 'nsys export --type sqlite' on the "
                 "report, and use the result"});
  if (traits.begin_and_end)
    return DataError(
        fmt::format("{}: its kernels are pairs of events, a begin ('B') and an end ('E')", shown),
        {.in = {},
         .hint = "expected one event ('X') with a duration for each, as PyTorch's "
                 "profiler writes them: give the file that it wrote"});
  const bool others = !traits.pytorch && !traits.calls_gpu &&
                      (!traits.categories.empty() || !traits.processes.empty());
  if (others)
    return DataError(
        fmt::format(
            "{}: is a trace of another tool than PyTorch's profiler, without device work; "
            "its {} are {}",
            shown, traits.processes.empty() ? "categories" : "processes",
            printable(fmt::format(
                "{}",
                fmt::join(traits.processes.empty() ? traits.categories : traits.processes, ", ")))),
        {.in = {}, .hint = "record with torch.profiler or with 'nsys profile'"});
  if (traits.calls_gpu)
    return DataError(
        fmt::format("{}: calls of the GPU's runtime are in it, but no device work", shown),
        {.in = {},
         .hint = "the profiler could not trace the GPU (CUPTI missing, in use by another profiler, "
                 "or not permitted); its warnings say why. Record with "
                 "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
  return DataError(fmt::format("{}: there is no device work in it{}", shown,
                               traits.categories.empty()
                                   ? ""
                                   : printable(fmt::format("; its categories are {}",
                                                           fmt::join(traits.categories, ", ")))),
                   {.in = {},
                    .hint = "record with activities=[ProfilerActivity.CPU, "
                            "ProfilerActivity.CUDA]"});
}

}  // namespace rubato::kineto

#include "models/gpu/spec.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "models/network/collective_time.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/expect_error.hpp"
#include "tests/text.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

std::string shipped() { return to_json(load_gpu_spec("rtx-3080-ti")); }

TEST(GpuSpec, ReadsBackToTheSameText) {
  EXPECT_EQ(to_json(parse_gpu_spec(shipped(), "s.json")), shipped());
}

// Of a file without the field nothing is said of the generation.
TEST(GpuSpec, KnowsItsGenerationWhereTheFileGivesIt) {
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    EXPECT_EQ(spec.compute_capability.has_value(), spec.title.starts_with("NVIDIA")) << name;
  }
  EXPECT_EQ(load_gpu_spec("rtx-2070-super").compute_capability, 7.5);
  EXPECT_EQ(load_gpu_spec("b300-sxm6").compute_capability, 10.3);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(shipped());
  json["chip"].erase("compute_capability");
  const GpuSpec without = parse_gpu_spec(json.dump(), "s.json");
  EXPECT_FALSE(without.compute_capability);
  EXPECT_FALSE(parse_gpu_spec(to_json(without), "s.json").compute_capability);
}

TEST(GpuSpec, KeepsTheClusterItIsPartOf) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  EXPECT_FALSE(spec.cluster);
  EXPECT_EQ(cluster_of(spec).inside.kind, LinkKind::nvlink);
  EXPECT_EQ(cluster_of(load_gpu_spec("rtx-3080-ti")).inside.kind, LinkKind::pcie);
  spec.cluster = load_cluster("dgx-a100");
  const GpuSpec again = parse_gpu_spec(to_json(spec), "s.json");
  EXPECT_EQ(again.cluster, spec.cluster);
  EXPECT_EQ(cluster_of(again).name, "dgx-a100");
}

// A collective takes its time on the cluster, and little more at low clocks, when copies take
// longer.
TEST(GpuModel, CollectivesTakeTheirTimeOnTheCluster) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.data_parallel = 16;
  const Trace trace = generate_training_step(shape).trace;
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  for (const char* name : {"dgx-a100", "ethernet-pcie"}) {
    spec.cluster = load_cluster(name);
    const GpuModel model(spec, trace);
    const auto at = std::ranges::find(trace.kernels, "d0_all_reduce_layer", &Kernel::name);
    const KernelId kernel = id_at<KernelId>(static_cast<std::size_t>(at - trace.kernels.begin()));
    const double link_s =
        collective_time(*spec.cluster, *at->collective, network_parameters()).time_s;
    EXPECT_NEAR(model.evaluate(kernel, spec.default_clock).time_s / link_s, 1.0, 1e-9) << name;
    const double slow_s = model.evaluate(kernel, {MemStateId{0}, 600.0}).time_s;
    EXPECT_GT(slow_s, link_s) << name;
    EXPECT_LT(slow_s, 1.3 * link_s) << name;
  }
  shape.data_parallel = 2000;
  spec.cluster = load_cluster("dgx-a100");
  expect_error<UsageError>([&] { GpuModel(spec, generate_training_step(shape).trace); },
                           "needs 2000 GPUs; dgx-a100 has 1120 (140 x 8)");
}

TEST(GpuSpec, KnowsWhatAChangeOfClockTakes) {
  const auto with = [](const std::string& keys) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(shipped());
    json["switching"] = nlohmann::ordered_json::parse("{\"source\": \"a test\"" + keys + "}");
    return parse_gpu_spec(json.dump(), "s.json");
  };
  const GpuSpec spec = with(
      R"(, "core_s": 0.006, "core_stall_s": 0.001, "mem_s": 0.02, "mem_j": 0.5, "dwell_s": 0.003,
          "guess": "of a sister card")");
  EXPECT_EQ(spec.switching.core_s, 0.006);
  EXPECT_EQ(spec.switching.core_stall_s, 0.001);
  EXPECT_EQ(spec.switching.mem_j, 0.5);
  EXPECT_EQ(spec.switching.guess, "of a sister card");
  EXPECT_EQ(to_json(parse_gpu_spec(to_json(spec), "s.json")), to_json(spec));
  expect_error<DataError>([&] { (void)with(R"(, "core_s": 0.001, "core_stall_s": 0.002)"); },
                          "core_stall_s: is longer than core_s");
  expect_error<DataError>([&] { (void)with(R"(, "mem_stall_s": 0.002)"); },
                          "mem_stall_s: is longer than mem_s");
}

// Dense rates of data sheets at the clock they are given for, TFLOP/s.
TEST(GpuSpec, PeaksAreThoseOfTheDataSheets) {
  struct Sheet {
    const char* spec;
    double mhz;
    Dtype dtype;
    bool tensor;
    double tflops;
  };
  for (const Sheet& sheet : {Sheet{"a100-sxm4-80gb", 1410.0, Dtype::bf16, true, 312.0},
                             {"a100-sxm4-80gb", 1410.0, Dtype::tf32, true, 156.0},
                             {"a100-sxm4-80gb", 1410.0, Dtype::fp64, true, 19.5},
                             {"a100-sxm4-80gb", 1410.0, Dtype::fp32, false, 19.5},
                             {"h100-sxm5", 1830.0, Dtype::fp8, true, 1978.9},
                             {"h100-sxm5", 1980.0, Dtype::fp32, false, 66.9},
                             {"rtx-3080-ti", 1665.0, Dtype::fp32, false, 34.1},
                             {"v100-pcie", 1380.0, Dtype::fp32, false, 14.1},
                             {"rtx-pro-6000", 2617.0, Dtype::fp8, true, 1007.6}}) {
    const PeakRates peaks = load_gpu_spec(sheet.spec).peaks;
    const auto& rates = sheet.tensor ? peaks.tensor_flop_per_cycle : peaks.cuda_flop_per_cycle;
    EXPECT_NEAR(rates.at(sheet.dtype) * sheet.mhz * 1e-6 / sheet.tflops, 1.0, 0.005)
        << sheet.spec << ' ' << name_of(sheet.dtype);
  }
}

TEST(GpuSpec, EveryShippedSpecHasPeaksThatAgreeWithItsChip) {
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    ASSERT_TRUE(spec.sources.contains("peaks")) << name;
    const auto& tensor = spec.peaks.tensor_flop_per_cycle;
    const double half =
        tensor.empty() ? spec.peaks.cuda_flop_per_cycle.at(Dtype::fp32) : tensor.at(Dtype::fp16);
    EXPECT_EQ(half, spec.peak_flop_per_cycle) << name;
    EXPECT_TRUE(spec.peaks.cuda_flop_per_cycle.contains(Dtype::fp64)) << name;
    EXPECT_GT(spec.peaks.pcie_gbs.value_or(0.0), 0.0) << name;
  }
}

TEST(GpuSpec, PeaksMayBeMissingButNotWrong) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(shipped());
  json["peaks"]["cuda_flop_per_cycle"] = {{"fp31", 1.0}};
  expect_error<DataError>([&] { (void)parse_gpu_spec(json.dump(), "s.json"); },
                          "unknown data type 'fp31'; did you mean 'fp32'?");
  json.erase("peaks");
  const GpuSpec of_architecture = parse_gpu_spec(json.dump(), "s.json");
  EXPECT_EQ(of_architecture.peaks.cuda_flop_per_cycle.at(Dtype::fp32), 128.0 * 80.0);
  json.erase("architecture");
  json.erase("operators");
  const GpuSpec spec = parse_gpu_spec(json.dump(), "s.json");
  EXPECT_TRUE(spec.peaks.tensor_flop_per_cycle.empty());
  EXPECT_EQ(to_json(parse_gpu_spec(to_json(spec), "s.json")), to_json(spec));
}

// A file that says a GPU is slower at a higher clock is refused where it is read.
TEST(GpuSpec, KeepsThePhysicsOfClocks) {
  const auto fails = [](const auto& change, std::string_view what) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(shipped());
    change(json);
    expect_error<DataError>([&] { (void)parse_gpu_spec(json.dump(), "s.json"); }, what);
  };
  const auto crossbar = [](std::vector<double> relative) {
    return [relative](nlohmann::ordered_json& json) {
      json.erase("uncertainty");  // of a spec without this curve
      json["memory"]["crossbar_core_mhz"] = {510.0, 600.0, 1200.0};
      json["memory"]["crossbar_relative"] = relative;
    };
  };
  fails(crossbar({1.0, 0.8, 0.8}),
        "memory.crossbar_relative: is 0.8 at 600 MHz, so bandwidth falls as the core clock rises "
        "from 510 MHz; expected at least 0.85");
  fails(crossbar({0.5, 1.0, 0.49}), "is 0.49 at 1200 MHz");
  nlohmann::ordered_json flat = nlohmann::ordered_json::parse(shipped());
  crossbar({1.0, 0.85, 0.425})(flat);  // the same bandwidth at all three
  EXPECT_EQ(parse_gpu_spec(flat.dump(), "s.json").crossbar.relative[2], 0.425);
  fails([](auto& json) { json["memory"]["states"][3]["bandwidth_gbs"] = 400.0; },
        "memory.states[3].bandwidth_gbs: is 400 GB/s at a memory clock of 9251 MHz; expected at "
        "least the 475.46 GB/s of state '5001', whose memory clock is lower");
  fails([](auto& json) { json["memory"]["states"][0]["max_core_mhz"] = 100.0; },
        "memory.states[0].max_core_mhz: is 100 MHz; expected at least the lowest core clock, 210 "
        "MHz");
  fails(
      [](auto& json) {
        json["core_clocks"]["effective_mhz"] = {430.0, 420.0};
      },
      "core_clocks.effective_mhz: falls from 430 to 420 MHz");
  fails(
      [](auto& json) {
        json["core_clocks"]["effective_mhz"] = {240.0, 500.0};
      },
      "core_clocks.effective_mhz: ends at 500 MHz, above the last request of 420 MHz");
  fails(
      [](auto& json) {
        json["core_power"]["relative_v"][0] = 0.1;
        json["memory"]["states"][5]["voltage_scale"] = 1.2;
      },
      "core_power.relative_v: starts at 0.1, which voltage_scale 1.2 of memory state 'auto' makes "
      "-0.08; expected a voltage > 0");
}

TEST(GpuSpec, EverySectionNamesItsSource) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  for (const char* key : {"chip", "core_clocks", "core_power", "memory", "power_limit", "switching",
                          "kernels", "classes"}) {
    EXPECT_FALSE(spec.sources.at(key).empty()) << key;
  }
}

TEST(GpuSpec, SaysWhatIsWrongAndWhere) {
  const auto fails = [](const std::string& text, std::string_view what) {
    expect_error<DataError>([&] { (void)parse_gpu_spec(text, "s.json"); }, what);
  };
  fails(replaced(shipped(), "\"step_mhz\"", "\"step_mhzs\""),
        "s.json: core_clocks: unknown key 'step_mhzs'; did you mean 'step_mhz'?");
  fails(replaced(shipped(), "\"mem_mhz\":405.0", "\"mem_mhz\":-405.0"),
        "s.json: memory.states[0].mem_mhz: found -405.0; expected a number > 0");
  fails(replaced(shipped(), "\"mem\": \"auto\"", "\"mem\": \"best\""),
        "there is no memory state 'best'");
  fails(replaced(shipped(), "\"schema\": 1", "\"schema\": 7"), "schema 7 is not supported");
  fails(shipped().substr(0, 900), "not valid JSON");
}

TEST(GpuSpec, UnknownNamesGetASuggestion) {
  expect_error<UsageError>([] { (void)load_gpu_spec("rtx-3080ti"); },
                           "there is no GPU spec 'rtx-3080ti'; did you mean 'rtx-3080-ti'?");
}

TEST(GpuModel, RefusesWhatItCannotModel) {
  const Trace trace = load_trace("gpt3-xl");
  expect_error<UsageError>(
      [&] { GpuModel(load_gpu_spec("rtx-3080-ti"), trace, 1000.0); },
      "a power limit of 1000 W is outside what rtx-3080-ti accepts; expected 100 to 400 W");
  Trace unknown = trace;
  unknown.kernels[1].name = "mystery";
  unknown.kernels[1].dram_bytes.reset();
  expect_error<DataError>(
      [&] { GpuModel(load_gpu_spec("rtx-3080-ti"), unknown); },
      "kernel 'mystery': rtx-3080-ti knows no coefficients for class 'layernorm'");
}

TEST(GpuModel, GuessesFromPeakRatesWithoutAClass) {
  Trace trace = load_trace("gpt3-xl");
  trace.kernels[2].name = "mystery";
  trace.kernels[2].kind = KernelClass::other;
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), trace);
  EXPECT_EQ(model.source(KernelId{2}), CoefficientSource::guessed);
  // The same GEMM measured takes 14.35 ms at default clocks.
  EXPECT_NEAR(model.evaluate(KernelId{2}, model.spec().default_clock).time_s / 0.01435, 1.0, 0.3);
}

TEST(GpuModel, SaysHowCoefficientsCameAbout) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.tensor_parallel = 2;
  shape.optimizer = true;
  const Trace trace = generate_training_step(shape).trace;
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), trace);
  const Trace whole = load_trace("gpt3-xl");
  const auto halved = [&](const Kernel& kernel) {
    const auto same = std::ranges::find(whole.kernels, kernel.name, &Kernel::name);
    return same->flops != kernel.flops || same->dram_bytes != kernel.dram_bytes ||
           same->gemm != kernel.gemm;
  };
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    const Kernel& kernel = trace.kernels[k];
    const auto expected = kernel.collective              ? CoefficientSource::guessed
                          : kernel.name.starts_with("x") ? CoefficientSource::derived
                          : halved(kernel)               ? CoefficientSource::scaled
                                                         : CoefficientSource::measured;
    EXPECT_EQ(model.source(id_at<KernelId>(k)), expected) << kernel.name;
  }
}

}  // namespace
}  // namespace rubato

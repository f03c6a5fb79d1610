// Operators from their shapes beside what was measured (models/data/measured/operators): every
// group within its bar. docs/accuracy.md has the same errors; bench/tables/accuracy.py makes it.

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "models/kernel/model.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/paths.hpp"
#include "traces/trace.hpp"
#include "traces/transformer/model_shape.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

struct MeasuredOperator {
  std::string spec, group;
  Kernel kernel;
  std::optional<double> core_mhz, cap_w, host_us, host_norm, apart_us, power_w, clock_mhz;
  double time_us = 0.0;
};

std::vector<MeasuredOperator> measured_operators() {
  const CsvTable table = CsvTable::read(measured_data("operators/operators.csv"));
  ErrorList errors;
  std::vector<MeasuredOperator> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto text = [&](const char* column) { return table.cell(i, table.column(column)); };
    const auto maybe = [&](const char* column) {
      return table.optional_number(i, table.column(column), Range::non_negative, errors);
    };
    const auto count = [&](const char* column) {
      return static_cast<std::uint64_t>(maybe(column).value_or(0.0));
    };
    MeasuredOperator row{.spec = text("spec"),
                         .group = text("group"),
                         .kernel = {},
                         .core_mhz = maybe("core_mhz"),
                         .cap_w = maybe("power_cap_w"),
                         .host_us = maybe("host_us"),
                         .host_norm = maybe("host_norm"),
                         .apart_us = maybe("apart_us"),
                         .power_w = maybe("power_w"),
                         .clock_mhz = maybe("clock_mhz"),
                         .time_us = maybe("time_us").value_or(0.0)};
    Kernel& kernel = row.kernel;
    kernel.name = kernel.label = text("label");
    kernel.kind = from_name<KernelClass>(text("class")).value();
    kernel.dtype = from_name<Dtype>(text("dtype")).value();
    kernel.dram_bytes = maybe("bytes");
    kernel.flops = maybe("flops");
    if (kernel.kind == KernelClass::attention) {
      kernel.attention =
          AttentionShape{count("batch"),    count("q_tokens"), count("kv_tokens"),   count("heads"),
                         count("kv_heads"), count("head_dim"), text("causal") == "1"};
    } else if (maybe("m")) {
      kernel.gemm = GemmShape{count("m"), count("n"), count("k"), count("batch")};
    }
    rows.push_back(std::move(row));
  }
  errors.throw_if_any({});
  return rows;
}

struct MeanError {
  double sum = 0.0, rows = 0.0;
  void add(double model, double seen) {
    sum += 100.0 * std::abs(model / seen - 1.0);
    ++rows;
  }
  [[nodiscard]] double mean() const { return sum / rows; }
};

struct GroupErrors {
  MeanError time, power, clock;
};

const std::map<std::string, GroupErrors>& group_errors() {
  static const std::map<std::string, GroupErrors> groups = [] {
    std::map<std::string, GroupErrors> found;
    std::map<std::string, GpuSpec> specs;
    for (const MeasuredOperator& row : measured_operators()) {
      if (!specs.contains(row.spec)) specs[row.spec] = load_gpu_spec(row.spec);
      const GpuSpec& spec = specs.at(row.spec);
      const OperatingPoint at = operating_point(
          spec, find_coefficients(spec, row.kernel).value().coefficients,
          {spec.default_clock.mem, row.core_mhz},
          row.spec == "rtx-5000-ada" ? row.cap_w.value() : spec.power_limit.limit_w);
      double us = at.time_s * 1e6 + row.apart_us.value_or(0.0);
      if (row.host_us) {
        const double p = row.host_norm.value();
        us = std::pow(std::pow(us, p) + std::pow(*row.host_us, p), 1.0 / p);
      }
      GroupErrors& errors = found[row.group + " | " + row.spec];
      errors.time.add(us, row.time_us);
      if (row.power_w) errors.power.add(at.energy_j / at.time_s, *row.power_w);
      if (row.clock_mhz) errors.clock.add(at.core_mhz, *row.clock_mhz);
    }
    return found;
  }();
  return groups;
}

struct Bar {
  const char* group;
  double time, power = 1e9, clock = 1e9;
};

TEST(Accuracy, OfOperatorsIsWithinItsBars) {
  for (const Bar& bar :
       {Bar{"product bf16, locked clocks | h100-sxm5", 3.0, 4.0},
        Bar{"product bf16, free running | h100-sxm5", 5.0, 4.0, 5.0},
        Bar{"product bf16, locked clocks | b200-sxm6", 6.0, 10.0},
        Bar{"product bf16, free running | b200-sxm6", 6.0, 10.0, 6.0},
        Bar{"product bf16, m from 2048 | h200-sxm5", 5.0, 5.0},
        Bar{"product bf16, m 256 to 1024 | h200-sxm5", 8.0, 10.0},
        Bar{"product bf16, m to 128 | h200-sxm5", 8.0},
        Bar{"attention, prefill over 1 ms | h200-sxm5", 8.0},
        Bar{"attention, decode over 0.1 ms | h200-sxm5", 8.0},
        Bar{"fp32 Linear | a100-pcie-80gb", 10.0}, Bar{"fp32 BMM | a100-pcie-80gb", 12.0},
        Bar{"fp32 BMM | v100-pcie", 13.0}, Bar{"fp32 element-wise | a100-pcie-80gb", 8.0},
        Bar{"fp32 layer norm | a100-pcie-80gb", 10.0}, Bar{"fp32 softmax | a100-pcie-80gb", 12.0},
        Bar{"stream of multiply-adds under power caps | rtx-5000-ada", 3.0, 4.0, 10.0},
        Bar{"Llama, norm | h100-sxm5", 15.0}, Bar{"Llama, activation | h100-sxm5", 15.0},
        Bar{"Llama, add | h100-sxm5", 15.0}}) {
    SCOPED_TRACE(bar.group);
    const GroupErrors& errors = group_errors().at(bar.group);
    EXPECT_LE(errors.time.mean(), bar.time);
    if (errors.power.rows > 0.0) {
      EXPECT_LE(errors.power.mean(), bar.power);
    }
    if (errors.clock.rows > 0.0) {
      EXPECT_LE(errors.clock.mean(), bar.clock);
    }
  }
}

// Every row of the page is what the model says, and every group is on it.
TEST(Accuracy, PageSaysWhatTheModelSays) {
  const std::string page = read_file(source_dir() / "docs/accuracy.md");
  EXPECT_TRUE(page.starts_with(read_file(source_dir() / "bench/tables/accuracy.md")));
  for (const auto& [group, errors] : group_errors()) {
    const auto at = page.find("| " + group + " | ");
    ASSERT_NE(at, std::string::npos) << group;
    const std::string row = page.substr(at, page.find('\n', at) - at);
    const auto cells = split(row, '|');
    ASSERT_GT(cells.size(), 6U);
    EXPECT_EQ(std::stod(std::string(cells[3])), errors.time.rows) << group;
    EXPECT_NEAR(std::stod(std::string(cells[4])), errors.time.mean(), 0.051) << group;
    if (errors.power.rows == 0.0) continue;
    EXPECT_NEAR(std::stod(std::string(cells[5])), errors.power.mean(), 0.051) << group;
  }
}

TrainingStep eager_qwen2() {
  TrainingStep step;
  ModelShape& shape = step.model;
  shape.name = "qwen2-1.5b";
  shape.layers = 28;
  shape.hidden = 1536;
  shape.heads = 12;
  shape.kv_heads = 2;
  shape.ffn = 8960;
  shape.vocab = 151936;
  shape.context = 32768;
  shape.norm = Norm::rmsnorm;
  shape.activation = Activation::swiglu;
  shape.positions = PositionEncoding::rope;
  shape.biases = false;
  step.phase = StepPhase::prefill;
  step.kernels = KernelStyle::eager;
  step.sequence_parallel = step.optimizer = step.flash_attention = false;
  return step;
}

OperatingPoint time_and_energy(const GpuSpec& spec, const Trace& trace, const ClockPair& clock) {
  const GpuModel model(spec, trace);
  OperatingPoint sum{};
  for (const Segment& part : trace.segments) {
    for (const KernelId id : part.launches) {
      const OperatingPoint one =
          operating_point(spec, model.coefficients(id), clock, spec.power_limit.limit_w);
      sum.time_s += part.repeat * one.time_s;
      sum.energy_j += part.repeat * one.energy_j;
    }
  }
  return sum;
}

// Prompts of Qwen2 1.5B as Hugging Face runs them, at 900 MHz (EnergAIzer cd607491, one_clock.csv):
// nothing but the A10's idle power was fitted to them. Those of fused kernels take half the time.
TEST(Accuracy, EagerPromptsTakeWhatWasMeasured) {
  struct Measured {
    const char *spec, *clock;
    std::uint64_t batch, seq;
    double time_s, energy_j;
  };
  TrainingStep step = eager_qwen2();
  for (const Measured& row : {Measured{"a10", "6251/900", 4, 512, 0.1735943, 20.3607},
                              {"a10", "6251/900", 8, 1024, 0.7806179, 94.3038},
                              {"a10", "6251/900", 4, 2048, 1.009623, 121.644},
                              {"a100-pcie-40gb", "1215/900", 8, 1024, 0.3140069, 55.0327},
                              {"a100-pcie-40gb", "1215/900", 8, 2048, 0.8318915, 144.9}}) {
    step.batch = row.batch;
    step.seq = row.seq;
    const GpuSpec spec = load_gpu_spec(row.spec);
    const OperatingPoint found = time_and_energy(spec, generate_training_step(step).trace,
                                                 parse_clock_pair(spec, row.clock));
    EXPECT_NEAR(found.time_s / row.time_s, 1.0, 0.08) << row.spec << ' ' << row.seq;
    EXPECT_NEAR(found.energy_j / row.energy_j, 1.0, 0.12) << row.spec << ' ' << row.seq;
  }
}

}  // namespace
}  // namespace rubato

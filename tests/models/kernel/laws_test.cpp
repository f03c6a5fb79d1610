// What holds for every GPU, whatever its numbers: in every shipped spec, in every draw of its
// uncertainty, for its own kernels and for kernels of every class. A tidy table of cells is filled
// for each memory state and compared along the clocks, across memory clocks and across limits.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/gpu/ensemble.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/kernel/anchor.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/kernel/shapes.hpp"
#include "models/table/fill.hpp"
#include "tests/uniform.hpp"
#include "traces/trace.hpp"

namespace rubato {
namespace {

constexpr double round_off = 1e-11;  // relative; the search at a limit ends within 1e-12
constexpr double no_limit_w = 1e9;

// Counts what was compared, and what broke the law.
struct Checks {
  std::uint64_t compared = 0, broken = 0;
  double worst = 0.0;
  std::string first;

  // That `more` is not below `less`.
  template <class Where>
  void ordered(double less, double more, const Where& where) {
    ++compared;
    if (more >= less * (1.0 - round_off)) return;
    if (broken++ == 0) first = where();
    worst = std::max(worst, less / more - 1.0);
  }
  template <class Where>
  void positive(double value, const Where& where) {
    ++compared;
    if (value > 0.0 && std::isfinite(value)) return;
    if (broken++ == 0) first = where();
  }
};

// Kernels of every class, of known work and of unknown one: from the class's fit, from peak rates,
// and captured, wherever the captured time splits.
std::vector<KernelCoefficients> kernels_of_all_classes(const GpuSpec& spec) {
  std::vector<KernelCoefficients> found;
  const CapturePoint at{spec.default_clock, 1e-3, spec.power_limit.limit_w};
  for (int c = 0; c <= static_cast<int>(KernelClass::other); ++c) {
    Kernel kernel;
    kernel.name = kernel.label = "captured";
    kernel.kind = static_cast<KernelClass>(c);
    for (const bool known : {false, true}) {
      if (known) {
        kernel.flops = 0.2 * spec.peak_flop_per_cycle * spec.core.max_mhz * 1e6 * at.time_s;
        kernel.dram_bytes = 0.3 * spec.mem_states.front().bandwidth_gbs * 1e9 * at.time_s;
        if (const auto fitted = derived(spec, kernel)) found.push_back(*fitted);
        if (const auto guess = guessed(spec, kernel)) found.push_back(*guess);
      }
      for (const double lean : {0.0, 0.5, 1.0})
        found.push_back(anchored(spec, kernel, at, lean).coefficients);
    }
  }
  return found;
}

// Products of every type, large and small, and attention that reads many keys with many queries or
// with one.
std::vector<KernelCoefficients> kernels_of_shapes(const GpuSpec& spec) {
  std::vector<KernelCoefficients> found;
  Kernel kernel;
  kernel.name = kernel.label = "shape";
  const auto add = [&] {
    if (const auto made = from_shape(spec, kernel)) found.push_back(*made);
  };
  kernel.kind = KernelClass::gemm;
  for (int t = 0; t <= static_cast<int>(Dtype::unknown); ++t) {
    kernel.dtype = static_cast<Dtype>(t);
    for (const std::uint64_t m : {1U, 300U, 8192U}) {
      kernel.gemm = GemmShape{.m = m, .n = 4096, .k = 4096};
      add();
    }
  }
  kernel.kind = KernelClass::attention;
  kernel.gemm.reset();
  kernel.dtype = Dtype::fp16;
  for (const std::uint64_t queries : {1U, 64U, 4096U}) {
    kernel.attention = AttentionShape{4, queries, 4096, 32, 8, 128, true};
    add();
  }
  return found;
}

std::vector<KernelCoefficients> kernels_of(const GpuSpec& spec) {
  std::vector<KernelCoefficients> kernels = kernels_of_all_classes(spec);
  for (const KernelCoefficients& kernel : kernels_of_shapes(spec)) kernels.push_back(kernel);
  for (const CalibratedKernel& kernel : spec.kernels) kernels.push_back(kernel.coefficients);
  return kernels;
}

// Every step of the core clock and what lies between: the middles, and both sides of each point of
// a curve.
std::vector<double> core_clocks(const GpuSpec& spec) {
  std::vector<double> clocks;
  for (double mhz = spec.core.min_mhz; mhz <= spec.core.max_mhz; mhz += spec.core.step_mhz / 2.0)
    clocks.push_back(mhz);
  for (const std::vector<double>& points :
       {spec.crossbar.core_mhz, spec.voltage.core_mhz, spec.core.requested_mhz}) {
    for (const double mhz : points) clocks.insert(clocks.end(), {mhz * 0.9999, mhz, mhz * 1.0001});
  }
  std::erase_if(clocks, [&](double mhz) { return mhz < spec.core.min_mhz; });
  std::ranges::sort(clocks);
  return clocks;
}

class Laws {
 public:
  Laws(const GpuSpec& spec, std::string name, Checks& checks)
      : spec_(spec),
        name_(std::move(name)),
        checks_(checks),
        kernels_(kernels_of(spec)),
        clocks_(core_clocks(spec)) {}

  void check() {
    for (std::size_t m = 0; m < spec_.mem_states.size(); ++m) along_limits(id_at<MemStateId>(m));
    along_memory();
  }

  // By how much a lower core clock takes more time than the default one times the ratio of the two,
  // without a limit: 0.1 is 10 %.
  [[nodiscard]] double most_beyond_ratio() const {
    const MemStateId mem = spec_.default_clock.mem;
    const double usual_mhz = effective_core_mhz(spec_, {mem, {}});
    double most = -1.0;
    const std::vector<double> usual{usual_mhz};
    const Cells at_usual = cells(mem, no_limit_w, true, usual), at = cells(mem, no_limit_w, true);
    for (std::size_t i = 0; i < at.time_s.size(); ++i) {
      const double mhz = clocks_[i % clocks_.size()];
      if (mhz < usual_mhz)
        most = std::max(most,
                        at.time_s[i] / at_usual.time_s[i / clocks_.size()] * mhz / usual_mhz - 1.0);
    }
    return most;
  }

 private:
  struct Cells {
    std::vector<double> time_s, energy_j;
    [[nodiscard]] double power_w(std::size_t i) const { return energy_j[i] / time_s[i]; }
  };

  [[nodiscard]] Cells cells(MemStateId mem, double limit_w, bool applied) const {
    return cells(mem, limit_w, applied, clocks_);
  }

  [[nodiscard]] Cells cells(MemStateId mem, double limit_w, bool applied,
                            const std::vector<double>& clocks) const {
    std::vector<ClockPair> pairs;
    for (const double mhz : clocks) pairs.push_back({mem, mhz});
    Cells out{std::vector<double>(kernels_.size() * clocks.size()), {}};
    out.energy_j.resize(out.time_s.size());
    (void)fill_cells({spec_, kernels_, limit_w}, {pairs, applied}, out.time_s.data(),
                     out.energy_j.data());
    return out;
  }

  [[nodiscard]] std::string where(const char* law, MemStateId mem, std::size_t i,
                                  double limit_w) const {
    return fmt::format("{}: {}, memory {}, kernel {}, {} MHz, {} W", name_, law,
                       spec_.mem_states[index(mem)].name, i / clocks_.size(),
                       clocks_[i % clocks_.size()], limit_w);
  }

  // Without a limit power rises with the clock; under any limit a higher clock takes no more time.
  void along_clocks(const Cells& cells, MemStateId mem, double limit_w) {
    for (std::size_t i = 0; i < cells.time_s.size(); ++i) {
      checks_.positive(cells.time_s[i], [&] { return where("time > 0", mem, i, limit_w); });
      checks_.positive(cells.energy_j[i], [&] { return where("energy > 0", mem, i, limit_w); });
      if (i % clocks_.size() == 0) continue;
      checks_.ordered(cells.time_s[i], cells.time_s[i - 1],
                      [&] { return where("higher clock, no more time", mem, i, limit_w); });
      checks_.ordered(cells.power_w(i - 1), cells.power_w(i),
                      [&] { return where("higher clock, no less power", mem, i, limit_w); });
    }
  }

  // A lower limit takes no less time and no more power.
  void along_limits(MemStateId mem) {
    Cells roomy;
    for (const double limit_w : {no_limit_w, spec_.power_limit.max_w, spec_.power_limit.limit_w,
                                 0.5 * (spec_.power_limit.limit_w + spec_.power_limit.min_w),
                                 spec_.power_limit.min_w, 0.5 * spec_.power_limit.min_w}) {
      Cells tight = cells(mem, limit_w, false);
      along_clocks(tight, mem, limit_w);
      for (std::size_t i = 0; i < roomy.time_s.size(); ++i) {
        checks_.ordered(roomy.time_s[i], tight.time_s[i],
                        [&] { return where("lower limit, no less time", mem, i, limit_w); });
        checks_.ordered(tight.power_w(i), roomy.power_w(i),
                        [&] { return where("lower limit, no more power", mem, i, limit_w); });
      }
      roomy = std::move(tight);
    }
  }

  // At one core clock in effect more memory clock takes no more time.
  void along_memory() {
    std::vector<Cells> of_state;
    for (std::size_t m = 0; m < spec_.mem_states.size(); ++m)
      of_state.push_back(cells(id_at<MemStateId>(m), no_limit_w, true));
    for (std::size_t a = 0; a < of_state.size(); ++a) {
      for (std::size_t b = 0; b < of_state.size(); ++b) {
        if (spec_.mem_states[a].mem_mhz >= spec_.mem_states[b].mem_mhz) continue;
        for (std::size_t i = 0; i < of_state[a].time_s.size(); ++i)
          checks_.ordered(of_state[b].time_s[i], of_state[a].time_s[i], [&] {
            return where("more memory clock, no more time", id_at<MemStateId>(b), i, no_limit_w);
          });
      }
    }
  }

  const GpuSpec& spec_;
  std::string name_;
  Checks& checks_;
  std::vector<KernelCoefficients> kernels_;
  std::vector<double> clocks_;
};

class KernelLaws : public testing::TestWithParam<std::string> {};

TEST_P(KernelLaws, HoldInEveryCellOfEverySpecAndDraw) {
  const GpuSpec spec = load_gpu_spec(GetParam());
  Checks checks;
  Laws(spec, spec.name, checks).check();
  for (std::size_t m = 0; m < spec.ensemble.size(); ++m)
    Laws(ensemble_member(spec, m), fmt::format("{} draw {}", spec.name, m), checks).check();
  RecordProperty("compared", std::to_string(checks.compared));
  EXPECT_GT(checks.compared, 100'000U);
  EXPECT_EQ(checks.broken, 0U) << "of " << checks.compared << ", worst " << checks.worst
                               << ", first " << checks.first;
}

// Measured rows break it on one GPU alone: the V100's crossbar steps, and kernels took up to 38.0 %
// more at 600 MHz. On the RTX 4050 rows are up to 1.5 % beyond it, on the A100 up to 0.9 % (but for
// one noisy workload).
TEST_P(KernelLaws, NoLowerClockTakesMoreTimeThanTheRatioToTheDefaultClock) {
  const GpuSpec spec = load_gpu_spec(GetParam());
  Checks checks;
  const double most = spec.name == "v100-pcie" ? 0.38 : 0.002;
  EXPECT_LE(Laws(spec, spec.name, checks).most_beyond_ratio(), most);
}

INSTANTIATE_TEST_SUITE_P(Specs, KernelLaws, testing::ValuesIn(shipped_gpu_specs()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Whatever numbers a fit or a draw comes to, they make a GPU that keeps the laws.
RC_GTEST_PROP(KernelLawsOfAnyNumbers, Hold, ()) {
  static const std::vector<std::string> names = shipped_gpu_specs();
  GpuSpec spec = load_gpu_spec(names[*rc::gen::inRange<std::size_t>(0, names.size())]);
  spec.kernels.resize(std::min<std::size_t>(spec.kernels.size(), 2));
  spec.ensemble.clear();
  Eigen::VectorXd moved = read_parameters(spec);
  for (double& value : moved) value += uniform(-1.0, 1.0);
  write_parameters(moved, spec);
  Checks checks;
  Laws(spec, spec.name, checks).check();
  RC_LOG() << checks.first << ", worst " << checks.worst;
  RC_ASSERT(checks.broken == 0U);
  RC_ASSERT(to_json(parse_gpu_spec(to_json(spec), "written.json")) == to_json(spec));
}

}  // namespace
}  // namespace rubato

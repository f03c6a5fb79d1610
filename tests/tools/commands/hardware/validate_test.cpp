// Models beside measurements, as a user compares and fits them.

#include <array>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/file.hpp"
#include "models/gpu/spec.hpp"
#include "tests/paths.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, SaysWhichKernelsTheSpecDoesNotKnow) {
  const std::string known = load_gpu_spec("v100-sxm2").kernels.front().name;
  std::ofstream(folder_ / "s.csv")
      << "kernel,core_mhz,time_s,power_w\nmine,1530,1,200\n" + known + ",1530,1,200\n";
  expect("validate s.csv --gpu v100-sxm2 --known", 0,
         "note: 1 of 2 kernels are not in v100-sxm2 and were left out: 'mine'");
}

// Times that no clock explains: whatever the GPU's own fit missed by says nothing of these kernels.
TEST_F(ProgramRun, KernelsAloneHaveErrorsOfTheirOwn) {
  constexpr std::array times_s{10.3, 15.4, 25.4, 1.5, 3.1, 19.0, 8.2, 2.4};
  std::string rows;
  for (std::size_t i = 0; i < times_s.size(); ++i)
    rows += fmt::format("k,{},{},200\n", 510 + 120 * i, times_s[i]);
  std::ofstream(folder_ / "noise.csv") << "kernel,core_mhz,time_s,power_w\n" << rows;
  std::ofstream(folder_ / "few.csv") << "kernel,core_mhz,time_s,power_w\n"
                                     << rows.substr(0, rows.find('\n') + 1);
  expect("calibrate noise.csv --gpu a100-sxm4-80gb --kernels-only -o noise.json", 0,
         "The GPU's own parameters are kept, those of a100-sxm4-80gb; the errors of that fit, not "
         "of this one:");
  const GpuSpec frame = load_gpu_spec("a100-sxm4-80gb"),
                noise = load_gpu_spec((folder_ / "noise.json").string());
  EXPECT_GT(noise.fit_errors.at("k_fold_time_mape_pct"), 50.0);
  EXPECT_GT(noise.fit_errors.at("own_time_pct"), 10.0 * frame.fit_errors.at("own_time_pct"));
  expect("calibrate few.csv --gpu a100-sxm4-80gb --kernels-only -o few.json", 0, "is not known");
  const GpuSpec few = load_gpu_spec((folder_ / "few.json").string());
  for (const auto& [name, error] : few.fit_errors) {
    EXPECT_TRUE(!name.ends_with("_mape_pct") || name.starts_with("residual_")) << name;
  }
  EXPECT_EQ(few.fit_errors.at("own_time_pct"), frame.fit_errors.at("own_time_pct"));
}

// The file says on which GPU it was measured.
TEST_F(ProgramRun, ATableBringsItsGpu) {
  std::ofstream(folder_ / "t.csv")
      << "gpu,kernel,core_mhz,time_s,power_w\nNVIDIA A40,k,1410,1,250\nNVIDIA A40,k,1305,1.1,200\n";
  expect("explore --table t.csv --slack 20", 0, "GPU model a40, by the name of the device");
  expect("explore --table t.csv --slack 20 --gpu a100-sxm4-80gb", 0,
         "note: measured on NVIDIA A40, but the GPU model is that of NVIDIA A100-SXM4-80GB");
  expect("validate t.csv --points 1", 0, "GPU model a40");
  expect("calibrate t.csv --kernels-only -o k.json", 0, "GPU model a40");
}

TEST_F(ProgramRun, ValidatesEachPointWithItsInterval) {
  const std::string table = (source_dir() / "docs/examples/a100-sweep.csv").string();
  const std::string validate = "validate '" + table + "' --gpu a100-sxm4-80gb";
  expect(validate + " --each-point --csv", 0,
         "kernel,mem,core_mhz,power_cap_w,time_s,predicted_time_s,time_low_s,time_high_s,energy_j,"
         "predicted_energy_j,energy_low_j,energy_high_j\n");
  expect(validate + " --each-point --intervals", 2, "--each-point does nothing with --intervals");
}

}  // namespace
}  // namespace rubato

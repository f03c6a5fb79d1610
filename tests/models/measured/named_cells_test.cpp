// Measured cells by the kernel's name.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/measured/named_cells.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

// Kernels with a time but no power have no cell.
TEST(NamedCells, NeedTimeAndPower) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep times = parse_sweep("kernel,core_mhz,time_s\na,510,2\na,1410,1\n", "t.csv", spec);
  std::vector<std::string> notes;
  expect_error<DataError>([&] { (void)named_cells(times, spec, notes); },
                          "t.csv: no row has time and power (or energy)");
}

// As explore takes them: 1 MHz beside a clock that can be set is that clock.
TEST(NamedCells, LieAtClocksThatCanBeSet) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep sweep =
      parse_sweep("kernel,core_mhz,time_s,power_w\na,512,2,100\na,1409,1,200\n", "t.csv", spec);
  std::vector<std::string> notes;
  const auto cells = named_cells(sweep, spec, notes);
  EXPECT_DOUBLE_EQ(cells->at(0, {MemStateId{0}, 510.0}).time_s, 2.0);
  EXPECT_DOUBLE_EQ(cells->at(0, {MemStateId{0}, 1410.0}).energy_j, 200.0);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("2 of 2 rows were observed beside"), std::string::npos) << notes[0];
}

}  // namespace
}  // namespace rubato

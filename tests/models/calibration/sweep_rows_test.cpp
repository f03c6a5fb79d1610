// Rows of a sweep that nobody should believe, and what is taken where a column is not there.

#include <string>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/calibration/sweep.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

class SweepRowsFile : public FileTest {
 protected:
  [[nodiscard]] std::filesystem::path write(const std::string& text) const {
    return file("sweep.csv", text);
  }

  GpuSpec a100_ = load_gpu_spec("a100-sxm4-80gb");
};

// A column in another unit, alone or with others: refused, with the option that reads it rightly.
TEST_F(SweepRowsFile, NamesTheUnitThatMakesSense) {
  struct Case {
    const char *text, *said, *column, *as;
  };
  for (const Case& c : {Case{"kernel,core_mhz,power_w\nk,1410,250000\n",
                             "--column power_w=power_w:mW", "power_w", "power_w:mW"},
                        {"kernel,core_mhz,time_s,power_w\nk,1410,1,250000\n",
                         "250 W if power_w is in mW", "power_w", "power_w:mW"},
                        {"kernel,core_mhz,time_s,energy_j\nk,1410,1,250000\n",
                         "--column energy_j=energy_j:mJ", "energy_j", "energy_j:mJ"},
                        {"kernel,core_mhz,time_s,energy_j\nk,1410,36,2.5\n",
                         "--column energy_j=energy_j:Wh", "energy_j", "energy_j:Wh"},
                        {"kernel,core_mhz,time_s,energy_j\nk,1410,5e6,1250\n",
                         "--column time_s=time_s:us", "time_s", "time_s:us"},
                        {"kernel,core_mhz,time_s,power_w\nk,1410000,1,250\n",
                         "--column core_mhz=core_mhz:kHz", "core_mhz", "core_mhz:kHz"},
                        {"kernel,core_mhz,mem_mhz,time_s\nk,1410,1593000,1\n",
                         "--column mem_mhz=mem_mhz:kHz", "mem_mhz", "mem_mhz:kHz"},
                        {"kernel,core_mhz,time_s,power_w,power_cap_w\nk,1410,1,250,300000\n",
                         "--column power_cap_w=power_cap_w:mW", "power_cap_w", "power_cap_w:mW"}}) {
    expect_error<DataError>([&] { (void)read_sweep(write(c.text), a100_); }, c.said);
    EXPECT_EQ(read_sweep(write(c.text), a100_, {.renamed = {{c.column, c.as}}}).points(), 1U)
        << c.text;
  }
  expect_error<UsageError>(
      [&] {
        (void)read_sweep(write("kernel,core_mhz,time_s\nk,1410,1\n"), a100_,
                         {.renamed = {{"time_s", "time_s:mW"}}});
      },
      "unit 'mW' of column time_s is of another quantity", "s, ms, us, ns, min, h");
}

// A time alone has no power to tell: the other rows of its kernel do.
TEST_F(SweepRowsFile, RefusesATimeThatItsClocksDoNotExplain) {
  const std::string rows = "kernel,core_mhz,time_s\nk,1410,0.10\nk,1200,0.115\nk,1005,0.13\n";
  EXPECT_EQ(read_sweep(write(rows + "k,510,0.27\n"), a100_).points(), 4U);
  expect_error<DataError>([&] { (void)read_sweep(write(rows + "k,510,270\n"), a100_); },
                          "sweep.csv:5: kernel 'k': time_s is 270 s, but 0.115 s in ",
                          "(0.27 s if time_s is in ms: --column time_s=time_s:ms)");
}

// One row more is no more evidence if it is the same row.
TEST_F(SweepRowsFile, ACopyOfARowCountsOnce) {
  const std::string rows = "k,1410,0.10,300\nk,510,0.27,120\nidle,510,,60\n";
  const Sweep once = read_sweep(write("kernel,core_mhz,time_s,power_w\n" + rows), a100_);
  const Sweep twice = read_sweep(write("kernel,core_mhz,time_s,power_w\n" + rows + rows), a100_);
  EXPECT_EQ(twice.points(), once.points());
  EXPECT_EQ(twice.idle.size(), 1U);
  EXPECT_TRUE(once.notes.empty());
  EXPECT_EQ(twice.notes,
            (std::vector<std::string>{"3 of 6 rows are copies of earlier ones and count once"}));
}

TEST_F(SweepRowsFile, AMemoryClockThatIsNotThereIsTheDefaultOne) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const Sweep sweep = read_sweep(write("kernel,core_mhz,time_s,power_w\nk,1410,1,200\n"), spec);
  EXPECT_EQ(sweep.kernels[0].points[0].clock.mem, spec.default_clock.mem);
  EXPECT_EQ(
      sweep.notes,
      (std::vector<std::string>{"no memory clock in the table: taken as the GPU's default, auto"}));
  expect_error<DataError>(
      [&] {
        (void)read_sweep(
            write("kernel,core_mhz,mem_mhz,time_s,power_w\nk,1410,,1,200\nk,1410,9501,1,200\n"),
            spec);
      },
      "sweep.csv:2: mem_mhz '' is no memory state of rtx-3080-ti");
}

}  // namespace
}  // namespace rubato

// Fits how a collective shares a GPU to the shipped measurements and prints parameters and errors,
// cross-validated on request:  sharing_fit OVERLAP.csv [--folds] [OTHER.csv ...]
// Other files (rows kept apart) are predicted by the fit, never fitted. docs/contention.md.

#include <array>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "sim/sharing/fit.hpp"

namespace {

using namespace rubato;

void print(std::string_view what, const OverlapErrors& errors) {
  fmt::print(
      "{:28} {:5} rows  time mean {:.2f} % worst {:.2f} %  energy mean {:.2f} % worst {:.2f} %\n",
      what, errors.time.size(), 100.0 * OverlapErrors::mean_magnitude(errors.time),
      100.0 * OverlapErrors::worst_magnitude(errors.time),
      100.0 * OverlapErrors::mean_magnitude(errors.energy),
      100.0 * OverlapErrors::worst_magnitude(errors.energy));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: sharing_fit OVERLAP.csv [--folds] [OTHER.csv ...]\n");
    return 2;
  }
  const GpuSpec a100 = load_gpu_spec("a100-sxm4-80gb");
  const std::vector<OverlapRow> rows = read_overlap_rows(argv[1]);
  const OverlapBlock block = fit_overlap(a100, rows);
  for (std::size_t i = 0; i < OverlapBlock::count; ++i)
    fmt::print("{:18} {:.6g}\n", OverlapBlock::names[i], block.values[i]);
  print("fitted", overlap_errors(a100, block, rows));
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--folds") {
      print(argv[i], overlap_errors(a100, block, read_overlap_rows(argv[i])));
      continue;
    }
    constexpr std::array folds{std::pair{"clocks left out", OverlapFold::clock},
                               std::pair{"SM counts left out", OverlapFold::comm_sms},
                               std::pair{"windows left out", OverlapFold::window},
                               std::pair{"block sizes left out", OverlapFold::block_threads}};
    for (const auto& [name, fold] : folds) print(name, cross_validated(a100, rows, fold));
  }
  return 0;
}

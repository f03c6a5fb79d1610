// Writes the seeds of a corpus as the files that libFuzzer begins with.
// Usage: fuzz_seeds FOLDER TO

#include <filesystem>

#include "common/file.hpp"
#include "tests/fuzz/seed.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::filesystem::path to(argv[2]);
  std::filesystem::create_directories(to);
  for (const rubato::fuzz::Seed& seed : rubato::fuzz::read_seeds(argv[1]))
    rubato::write_file(to / seed.name, seed.bytes);
}

// Runs a target on its corpus: every seed, then changed seeds. The changes are the same in every
// run; how many there are depends on the time allowed.
// Usage: NAME_corpus FOLDER [SECONDS]           all of it
//        NAME_corpus FOLDER SEED CHANGE         one input again, 0: the seed as it is

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "common/numbers.hpp"
#include "tests/fuzz/change.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/seed.hpp"

namespace rubato::fuzz {
namespace {

constexpr std::size_t most_changes = 300;           // of a seed
constexpr std::size_t largest_changed = 64 * 1024;  // larger seeds run as they are
constexpr unsigned most_seconds = 30;               // for one input: slower is a hang

char current[256];  // what runs, for the handler of signals

extern "C" void say_which(int signal) {
  constexpr char text[] = "\nthis input ended the process: ";
  (void)!::write(STDERR_FILENO, text, sizeof text - 1);
  (void)!::write(STDERR_FILENO, current, std::strlen(current));
  (void)!::write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const std::string& name, std::size_t change, std::string_view bytes) {
  fmt::format_to_n(current, sizeof current - 1, "{} {}{}", name, change, '\0');
  // Exactly as many bytes as there are, so that sanitizers see one too many.
  const auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
  std::ranges::copy(bytes, copy.get());
  ::alarm(most_seconds);
  LLVMFuzzerTestOneInput(copy.get(), bytes.size());
  ::alarm(0);
}

int run_seeds(const std::vector<Seed>& seeds) {
  int wrong = 0;
  for (const Seed& seed : seeds) {
    run(seed.name, 0, seed.bytes);
    const bool accepted = last_outcome() == Outcome::accepted;
    if (accepted == seed.good) continue;
    fmt::print(stderr, "{}: {}", seed.name, accepted ? "is accepted\n" : last_report());
    ++wrong;
  }
  return wrong;
}

int main_of(int argc, char** argv) {
  if (argc < 2) return 2;
  for (const int signal : {SIGABRT, SIGSEGV, SIGALRM, SIGFPE, SIGBUS})
    std::signal(signal, say_which);
  const std::vector<Seed> seeds = read_seeds(argv[1]);
  if (argc == 4) {
    const auto seed = std::ranges::find(seeds, std::string(argv[2]), &Seed::name);
    const auto change = parse_count(argv[3]);
    if (seed == seeds.end() || !change) return 2;
    run(seed->name, *change, changed(seeds, *seed, *change));
    fmt::print("{}", last_outcome() == Outcome::accepted ? "accepted\n" : last_report());
    return 0;
  }
  const double seconds = argc == 3 ? parse_number(argv[2]).value_or(0.0) : 1.0;
  const int wrong = run_seeds(seeds);
  if (wrong > 0 || seeds.empty()) return 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::size_t inputs = seeds.size();
  for (std::size_t change = 1; change <= most_changes; ++change) {
    for (const Seed& seed : seeds) {
      if (seed.bytes.size() > largest_changed) continue;
      if (std::chrono::steady_clock::now() > end) change = most_changes;
      run(seed.name, change, changed(seeds, seed, change));
      ++inputs;
    }
  }
  fmt::print("{} inputs from {} seeds\n", inputs, seeds.size());
  return 0;
}

}  // namespace
}  // namespace rubato::fuzz

int main(int argc, char** argv) { return rubato::fuzz::main_of(argc, argv); }

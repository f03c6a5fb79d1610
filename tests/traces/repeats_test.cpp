#include "traces/repeats.hpp"

#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/captures.hpp"
#include "traces/capture_stats.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/step_period.hpp"

namespace rubato {
namespace {

using Symbols = std::vector<std::uint32_t>;

Symbols symbols_of(std::string_view text) { return {text.begin(), text.end()}; }

bool has_period(const Symbols& s, std::size_t first, std::size_t end, std::size_t period) {
  for (std::size_t i = first; i + period < end; ++i) {
    if (s[i] != s[i + period]) return false;
  }
  return true;
}

// By definition: every span, every period.
std::vector<Repetition> repetitions_by_definition(const Symbols& s) {
  std::vector<Repetition> found;
  for (std::size_t first = 0; first < s.size(); ++first) {
    for (std::size_t end = first + 2; end <= s.size(); ++end) {
      for (std::size_t period = 1; 2 * period <= end - first; ++period) {
        if (!has_period(s, first, end, period)) continue;
        const bool longer = (first > 0 && s[first - 1] == s[first - 1 + period]) ||
                            (end < s.size() && s[end] == s[end - period]);
        if (!longer) found.push_back({first, end, period});
        break;  // larger periods are not the smallest
      }
    }
  }
  return found;  // in order of first, end
}

Symbols any_symbols(std::size_t longest) {
  const auto size = *rc::gen::inRange<std::size_t>(0, longest);
  const auto kinds = *rc::gen::inRange<std::uint32_t>(1, 4);
  Symbols s(size);
  for (auto& symbol : s) symbol = *rc::gen::inRange<std::uint32_t>(0, kinds + 1);
  // Random texts repeat little: copy a part of the text behind itself now and then.
  if (size > 8 && *rc::gen::inRange(0, 2) == 1) {
    const auto period = *rc::gen::inRange<std::size_t>(1, size / 2);
    const auto from = *rc::gen::inRange<std::size_t>(0, size - period);
    for (std::size_t i = from + period; i < size && i < from + 4 * period; ++i)
      s[i] = s[i - period];
  }
  return s;
}

TEST(Repetitions, AreThoseOfTheDefinition) {
  EXPECT_EQ(all_repetitions(symbols_of("mississippi")),
            (std::vector<Repetition>{{1, 8, 3}, {2, 4, 1}, {5, 7, 1}, {8, 10, 1}}));
  EXPECT_TRUE(all_repetitions({}).empty());
  rc::check([] {
    const Symbols s = any_symbols(40);
    RC_ASSERT(all_repetitions(s) == repetitions_by_definition(s));
  });
}

// The best of a part, then the same left and right of it.
void fold_by_definition(const Symbols& s, std::size_t first, std::size_t end, std::size_t least,
                        std::vector<Repetition>& out) {
  Repetition best{0, 0, 1};
  const auto saved = [](const Repetition& r) { return r.end > r.first ? r.saved() : 0; };
  for (std::size_t period = 1; 2 * period <= end - first; ++period) {
    for (std::size_t from = first; from + 2 * period <= end; ++from) {
      for (std::size_t to = from + 2 * period; to <= end; to += period) {
        const Repetition now{from, to, period};
        if (has_period(s, from, to, period) && saved(now) > saved(best)) best = now;
      }
    }
  }
  if (saved(best) < least) return;
  fold_by_definition(s, first, best.first, least, out);
  out.push_back(best);
  fold_by_definition(s, best.end, end, least, out);
}

TEST(Repetitions, BestOnesSaveMostFirst) {
  rc::check([] {
    const Symbols s = any_symbols(30);
    const auto least = *rc::gen::inRange<std::size_t>(1, 5);
    std::vector<Repetition> expected;
    fold_by_definition(s, 0, s.size(), least, expected);
    RC_ASSERT(best_repetitions(s, least) == expected);
  });
}

TEST(Repetitions, LongSequencesTakeNoLongTime) {
  // 2,000 steps of 24 layers each in a row of a million: quadratic time would be felt.
  Symbols s;
  for (std::uint32_t step = 0; step < 2000; ++step) {
    s.push_back(1);
    for (std::uint32_t i = 0; i < 24 * 20; ++i) s.push_back(10 + i % 20);
    s.push_back(step % 2 == 0 ? 2 : 3);
  }
  const auto found = best_repetitions(s, 8);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (Repetition{0, s.size(), 2 * 482}));
}

// ---- Steps ----

// O is a launch of an optimizer.
NameSequence sequence_of(std::string_view text) {
  NameSequence sequence;
  sequence.names = symbols_of(text);
  for (const char c : text) sequence.parts.push_back(c == 'O' ? 4 : 0);
  sequence.pauses_ns.assign(text.size(), 0);
  return sequence;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

const std::string step = "eLaLaLaLaLahO";  // embedding, five layers, head, optimizer

TEST(StepPeriod, FindsStepsBetweenPrologueAndPartialTail) {
  const auto found = [](const std::string& text) { return find_step_period(sequence_of(text)); };
  EXPECT_EQ(found(repeated(step, 4)), (StepPeriod{0, 13, 4}));
  EXPECT_EQ(found("abcdefg" + repeated(step, 5)), (StepPeriod{7, 13, 5}));
  EXPECT_EQ(found("xyz" + repeated(step, 5) + step.substr(0, 6)), (StepPeriod{3, 13, 5}));
  EXPECT_EQ(found("xyz" + repeated(step, 5) + "uvw"), (StepPeriod{3, 13, 5}));
  // The end of a step in front: the run begins there, steps are as many.
  const auto cut = found("LahO" + repeated(step, 3));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->period, 13U);
  EXPECT_EQ(cut->count, 3U);
}

TEST(StepPeriod, SaysWhenThereIsNone) {
  const auto none = [](const std::string& text) {
    EXPECT_FALSE(find_step_period(sequence_of(text))) << text;
  };
  none("");
  none("abcdefghijklmnopqrstuvwxyzO");
  none(repeated("aO", 100));                     // a period too short to be a step
  none("e" + repeated("abcdefghi", 12) + "hO");  // layers of one step
  none("e" + repeated("abcdefghi", 12));         // the same, cut off: no optimizer
  none(repeated("abcdefghiO", 2) + "klm");       // two periods and something else
  none(repeated("abcdefghiO", 3) + repeated("qrstuvwxyz1234567890", 2));  // less than half
}

TEST(StepPeriod, AStepHoldsEveryPartOfTheRun) {
  // Twelve micro-batches of forward and backward, then one optimizer: no step is seen twice.
  NameSequence sequence = sequence_of(repeated("fghijklmno", 12));
  EXPECT_FALSE(find_step_period(sequence));
  for (std::size_t i = 0; i < 120; ++i) sequence.parts[i] = i % 10 < 4 ? 1 : 2;
  EXPECT_EQ(find_step_period(sequence), (StepPeriod{0, 10, 12}));
  for (const char name : {'P', 'Q', 'R'}) {
    sequence.names.push_back(static_cast<std::uint32_t>(name));
    sequence.parts.push_back(4);
    sequence.pauses_ns.push_back(0);
  }
  EXPECT_FALSE(find_step_period(sequence));
}

TEST(StepPeriod, BeginsBehindTheOptimizerElseBehindTheLongestPause) {
  const std::string text = "nopq" + repeated("abcdefghijklmnopq", 4) + "abc";
  NameSequence sequence = sequence_of(text);
  for (std::size_t i = 0; i < text.size(); ++i) sequence.parts[i] = text[i] < 'i' ? 1 : 2;
  // Eight launches may be first; all give four steps.
  ASSERT_EQ(find_step_period(sequence), (StepPeriod{0, 17, 4}));
  for (std::size_t i = 4; i < text.size(); i += 17) sequence.pauses_ns[i] = 100;
  EXPECT_EQ(find_step_period(sequence), (StepPeriod{4, 17, 4}));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool optimizer = text[i] == 'n' || text[i] == 'o';
    sequence.parts[i] = optimizer ? 4 : 1;
  }
  EXPECT_EQ(find_step_period(sequence), (StepPeriod{2, 17, 4}));
}

// Two devices, a stream for collectives, a call of the host 50 ns before each launch.
TEST(StepPeriod, GivesLaunchesOfAllStreamsTheirStep) {
  CaptureBuilder builder("made");
  const auto add = [&](char name, std::uint32_t device, std::int64_t stream, std::int64_t start_ns,
                       KernelClass kind) {
    Kernel kernel;
    kernel.label = std::string(1, name);
    kernel.kind = kind;
    builder.launch({builder.kernel(kernel, kernel.label),
                    builder.stream(device, stream),
                    start_ns,
                    5,
                    start_ns - 50,
                    {},
                    Pass::unknown});
  };
  const std::string text = "xyz" + repeated("abcdefghi", 3) + "abc";
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (std::uint32_t device = 0; device < 2; ++device) {
      const std::int64_t at_ns = 1000 + 100 * static_cast<std::int64_t>(i) + 30 * device;
      add(text[i], device, 7, at_ns, text[i] == 'h' ? KernelClass::optimizer : KernelClass::other);
      // Called with the last kernel of a step, run with the first of the next.
      if (text[i] == 'i') {
        Kernel kernel;
        kernel.label = "nccl";
        kernel.kind = KernelClass::communication;
        builder.launch({builder.kernel(kernel, "nccl"),
                        builder.stream(device, 20),
                        at_ns + 100,
                        5,
                        at_ns - 40,
                        {},
                        Pass::unknown});
      }
    }
  }
  Capture capture = std::move(builder).finish();
  find_periodic_steps(capture);
  EXPECT_EQ(capture.step_source, StepSource::periodic);
  ASSERT_EQ(capture.steps.size(), 3U);
  EXPECT_EQ(capture.steps[1].start_ns, 1000 + 100 * 12 - 50);
  std::vector<int> kernels(3, 0), collectives(3, 0);
  int without = 0;
  for (const CapturedLaunch& launch : capture.launches) {
    if (!launch.step) {
      ++without;
      continue;
    }
    const bool compute = capture.streams[launch.stream].id == 7;
    ++(compute ? kernels : collectives)[*launch.step];
  }
  EXPECT_EQ(kernels, (std::vector<int>{18, 18, 18}));
  EXPECT_EQ(collectives, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(without, 12);
  EXPECT_EQ(fold(capture).segments.size(), 1U);
}

// Real captures with their annotations taken away.
TEST(StepPeriod, AgreesWithTheAnnotationsOfRealCaptures) {
  const auto bare = [](const char* file) {
    Capture capture = import_capture(captured(std::string("traces/") + file));
    for (CapturedLaunch& launch : capture.launches) launch.step.reset();
    capture.steps.clear();
    capture.step_source = StepSource::whole_file;
    find_periodic_steps(capture);
    return capture;
  };
  const Capture annotated = import_capture(captured("traces/kineto_a100_ddp2_resnet.json.gz"));
  const Capture found = bare("kineto_a100_ddp2_resnet.json.gz");
  ASSERT_EQ(found.steps.size(), annotated.steps.size());
  for (std::size_t i = 0; i < found.launches.size(); ++i)
    ASSERT_EQ(found.launches[i].step, annotated.launches[i].step) << i;
  // One step and the end of another: 24 layers, but no period of steps.
  EXPECT_TRUE(bare("kineto_h100_qwen_fwd.json.gz").steps.empty());
  // Nor are the 16 layers of a transformer's forward pass, or what one training step repeats.
  for (const char* file :
       {"nsys_h100_2gpu_dit.sqlite", "chakra_resnet_rank0.et.gz", "chakra_host_gpt2_train.json.gz"})
    EXPECT_TRUE(bare(file).steps.empty()) << file;
}

}  // namespace
}  // namespace rubato

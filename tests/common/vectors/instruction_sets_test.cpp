#include "common/vectors/instruction_sets.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

struct Numbers {
  std::vector<double> values;
};

// Adds `more` to all numbers, whole vectors at a time. @return how many are done
template <class V>
RUBATO_LANES std::size_t add(Numbers& numbers, double more) {
  std::size_t at = 0;
  for (; at + lanes::count<V> <= numbers.values.size(); at += lanes::count<V>)
    lanes::store(lanes::load<V>(&numbers.values[at]) + more, &numbers.values[at]);
  return at;
}

struct Loops {
  std::string_view name;
  std::size_t width;
  std::size_t (*add)(Numbers& numbers, double more);
};

TEST(InstructionSets, RunLoopsOnTheirOwnVectors) {
  const auto all = lanes::runnable([]<class Set>(Set) {
    using V = typename Set::Vector;
    return Loops{
        .name = Set::name, .width = lanes::count<V>, .add = Set::template compiled<add<V>>};
  });
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().name, "baseline");
  std::size_t width = 1;
  for (const Loops& loops : all) {
    EXPECT_EQ(loops.width, 2 * width) << loops.name;  // the slowest first
    width = loops.width;
    Numbers numbers{std::vector<double>(19, 1.0)};
    const std::size_t done = loops.add(numbers, 0.5);
    EXPECT_EQ(done, 19 / width * width) << loops.name;
    for (std::size_t i = 0; i < numbers.values.size(); ++i)
      EXPECT_EQ(numbers.values[i], i < done ? 1.5 : 1.0) << loops.name << ", number " << i;
  }
}

}  // namespace
}  // namespace rubato

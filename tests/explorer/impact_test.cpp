#include "explorer/impact.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

const std::string inputs_text = R"(schema = 1
tokens = {value = 3600000, source = "a"}
gpus = {value = 8, source = "b"}
pue = {value = 1.5, source = "c"}
price_per_kwh = {value = 0.25, currency = "EUR", source = "d"}
grid_gco2e_per_kwh = {value = 400, source = "e"}
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = inputs_text;
  return text.replace(text.find(from), from.size(), to);
}

void expect_no_inputs(const std::string& text, const std::string& message) {
  expect_error<DataError>([&] { (void)parse_impact_inputs(text, "i.toml"); }, message);
}

TEST(Impact, FollowsFromItsInputsByHand) {
  const ImpactInputs inputs = parse_impact_inputs(inputs_text, "i.toml");
  // 8 GPUs in 4 replicas of 100 tokens: 9000 iterations of 2 s and 1000 J a GPU.
  const Impact total =
      impact(inputs, {.tokens = 100, .gpus_per_replica = 2}, {.time_s = 2, .energy_j = 1000});
  EXPECT_DOUBLE_EQ(total.wall_time_h, 5.0);
  EXPECT_DOUBLE_EQ(total.gpu_kwh, 20.0);
  EXPECT_DOUBLE_EQ(total.host_kwh, 0.0);
  EXPECT_DOUBLE_EQ(total.facility_kwh, 30.0);
  EXPECT_DOUBLE_EQ(total.cost, 7.5);
  EXPECT_DOUBLE_EQ(total.kg_co2e, 12.0);
  // Hosts draw 100 W a GPU for 5 h.
  const Impact hosts = impact(
      parse_impact_inputs(inputs_text + "host_w_per_gpu = {value = 100, source = 'f'}\n", "i.toml"),
      {100, 2}, {2, 1000});
  EXPECT_DOUBLE_EQ(hosts.host_kwh, 4.0);
  EXPECT_DOUBLE_EQ(hosts.facility_kwh, 36.0);
  expect_error<DataError>(
      [&] {
        (void)impact(inputs, {100, 3}, {2, 1000});
      },
      "8 GPUs cannot be divided into replicas of 3");
}

TEST(Impact, EveryInputNeedsAValueAndASource) {
  expect_no_inputs(with("{value = 1.5, source = \"c\"}", "1.5"),
                   "i.toml:4: pue: a number alone; expected {value");
  expect_no_inputs(with("\"c\"", "\" \""), "the source is empty");
  expect_no_inputs(with("1.5", "0.9"), "expected a number >= 1");
  expect_no_inputs(with("gpus = {value = 8", "gpus = {value = 8.5"), "expected a whole number");
  expect_no_inputs(with("pue", "puee"), "unknown key 'puee'; did you mean 'pue'?");
  expect_no_inputs(with("currency = \"EUR\", ", ""), "key 'currency' is missing");
  expect_no_inputs(with("tokens = {value = 3600000", "tokens = {value = -1"),
                   "found -1; expected a number > 0");
  expect_no_inputs(impact_template(), "tokens.value: found nan; expected a number > 0");
}

}  // namespace
}  // namespace rubato

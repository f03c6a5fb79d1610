#include "common/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

JsonDocument parsed(std::string_view text) { return JsonDocument::parse(text, "a.json"); }

TEST(Json, ReadsValuesWithTheirPlace) {
  const JsonDocument document = parsed(R"({"kernels": [{"flops": 2.5}, {"flops": -1}]})");
  const auto kernels = document.root().at("kernels").items();
  EXPECT_EQ(kernels[0].at("flops").number(Range::positive), 2.5);
  expect_error<DataError>([&] { (void)kernels[1].at("flops").number(Range::non_negative); },
                          "a.json: kernels[1].flops: found -1; expected a number >= 0");
}

TEST(Json, NamesTheNearestKeyForAnUnknownOne) {
  const JsonDocument document = parsed(R"({"core_mhz_steps": 15})");
  expect_error<DataError>([&] { document.root().expect_keys({"core_mhz_step"}); },
                          "a.json: unknown key 'core_mhz_steps'; did you mean 'core_mhz_step'?");
}

TEST(Json, RefusesWhatAStrictReaderMust) {
  expect_error<DataError>([] { parsed(R"({"a": 1, "a": 2})"); },
                          "a.json: key 'a' occurs twice in one object");
  expect_error<DataError>([] { parsed("{\n  \"a\": 1,\n"); }, "not valid JSON",
                          "was the file cut off?");
  expect_error<DataError>([] { parsed("{\n  \"a\": nope}"); }, "a.json:2:9: not valid JSON");
  expect_error<DataError>([] { parsed(R"({"a": NaN})"); }, "a.json:1:7: not valid JSON");
  expect_error<DataError>([] { parsed(R"({"a": 1e999})"); }, "a.json");
  expect_error<DataError>([] { (void)parsed(R"({"a": 1})").root().at("b"); },
                          "a.json: key 'b' is missing or null");
  expect_error<DataError>([] { (void)parsed(R"({"a": "x"})").root().at("a").number(); },
                          R"(a.json: a: found "x"; expected a number)");
  expect_error<DataError>([] { (void)parsed(R"({"a": 1.5})").root().at("a").count(); },
                          "found 1.5; expected a whole number >= 0");
}

TEST(Json, SaysWhenAFileIsOfANewerSchema) {
  expect_error<DataError>([] { parsed(R"({"schema": 9})").expect_schema(1); },
                          "a.json: schema: schema 9 is not supported; expected 1",
                          "the file was written by a newer version of rubato");
}

TEST(Json, MissingIsNotZero) {
  const JsonDocument document = parsed(R"({"a": null, "b": 0})");
  EXPECT_FALSE(document.root().find("a"));
  EXPECT_FALSE(document.root().find("c"));
  EXPECT_EQ(document.root().find("b")->number(), 0.0);
}

RC_GTEST_PROP(Json, AnyBytesParseOrThrowADataError, (const std::string& text)) {
  try {
    (void)parsed(text);
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace rubato

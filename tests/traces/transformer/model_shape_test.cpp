#include "traces/transformer/model_shape.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/transformer/steps.hpp"
#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

struct Published {
  const char* model;
  double parameters;
  const char* source;
};

// To the last parameter, of the weights that were published.
TEST(ModelShape, ParametersAreThePublishedOnes) {
  constexpr Published exact[] = {
      {"llama2-7b", 6'738'415'616.0, "meta-llama/Llama-2-7b-hf"},
      {"llama2-13b", 13'015'864'320.0, "meta-llama/Llama-2-13b-hf"},
      {"llama2-70b", 68'976'648'192.0, "meta-llama/Llama-2-70b-hf"},
      {"llama3-8b", 8'030'261'248.0, "meta-llama/Meta-Llama-3-8B"},
      {"llama3-70b", 70'553'706'496.0, "meta-llama/Meta-Llama-3-70B"},
      {"llama3-405b", 405'853'388'800.0, "meta-llama/Llama-3.1-405B"},
      {"mixtral-8x7b", 46'702'792'704.0, "mistralai/Mixtral-8x7B-v0.1"},
      {"vit-l-16", 304'326'632.0, "torchvision vit_l_16"},
      // facebookresearch/DiT counts 675,129,632 with its 256 x 1152 sines of positions.
      {"dit-xl-2", 675'129'632.0 - 256.0 * 1152.0, "facebookresearch/DiT"},
  };
  for (const auto& [model, parameters, source] : exact)
    EXPECT_EQ(count_parameters(load_model_shape(model)).total, parameters) << model << source;
}

TEST(ModelShape, ParametersOfPapersToTheirDigits) {
  constexpr Published rounded[] = {
      {"gpt3-small", 125e6, "Brown et al., table 2.1"},
      {"gpt3-6.7b", 6.7e9, "Brown et al., table 2.1"},
      {"gpt3-13b", 13.0e9, "Brown et al., table 2.1"},
      {"gpt3-175b", 175.0e9, "Brown et al., table 2.1"},
      {"vit-l-16", 307e6, "Dosovitskiy et al., table 1"},
      {"vit-h-14", 632e6, "Dosovitskiy et al., table 1"},
      {"dit-xl-2", 675e6, "Peebles and Xie, table 1"},
  };
  for (const auto& [model, parameters, source] : rounded)
    EXPECT_NEAR(count_parameters(load_model_shape(model)).total / parameters, 1.0, 0.012)
        << model << source;
  // Jiang et al.: 13 B of the 47 B are active.
  EXPECT_NEAR(count_parameters(load_model_shape("mixtral-8x7b")).active, 12.88e9, 0.005e9);
}

TEST(ModelShape, DenseModelsMeetAllTheirParameters) {
  for (const std::string& name : model_shape_names()) {
    const ModelShape shape = load_model_shape(name);
    const ParameterCount count = count_parameters(shape);
    EXPECT_EQ(count.active == count.total, shape.experts == 0) << name;
    EXPECT_FALSE(shape.source.empty()) << name;
    EXPECT_EQ(shape.name, name);
  }
}

constexpr std::string_view small =
    R"({"schema": 1, "name": "small", "source": "test", "kind": "decoder", "layers": 2,
        "hidden": 64, "heads": 8, "ffn": 128, "vocab": 100, "context": 32, "norm": "rmsnorm",
        "activation": "swiglu", "positions": "rope", "biases": false)";

ModelShape with(const std::string& more) {
  return parse_model_shape(std::string(small) + more + "}", "small.json");
}

TEST(ModelShape, OneClearErrorForWhatAModelCannotBe) {
  EXPECT_EQ(with("").kv_heads, 8U);
  EXPECT_EQ(with(R"(, "kv_heads": 2)").kv_width(), 16U);
  const auto refused = [](const std::string& more, std::string_view what) {
    expect_error<DataError>([&] { (void)with(more); }, what);
  };
  refused(R"(, "kv_heads": 3)", "small.json: model 'small': kv_heads 3 does not divide heads 8");
  refused(R"(, "kv_heads": 16)", "kv_heads 16 does not divide heads 8");
  refused(R"(, "experts_per_token": 2)", "2 experts per token, but no experts");
  refused(R"(, "experts": 4)", "key 'experts_per_token' is missing");
  refused(R"(, "experts": 4, "experts_per_token": 0)", "experts_per_token is 0; expected 1 to");
  refused(R"(, "experts": 4, "experts_per_token": 5)", "experts_per_token is 5; expected 1 to");
  refused(R"(, "kv_head": 3)", "unknown key 'kv_head'");
  refused(R"(, "image": {"size": 8, "patch": 2, "channels": 3, "classes": 9})",
          "image is of kinds 'vit' and 'dit'");
}

TEST(ModelShape, KeysThatAKindNeedsAreMissed) {
  const auto without = [](std::string text, std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
    return [text] { (void)parse_model_shape(text + "}", "small.json"); };
  };
  const std::string all(small);
  expect_error<DataError>(without(all, R"("vocab": 100, )", ""), "key 'vocab' is missing");
  expect_error<DataError>(without(all, R"("context": 32, )", ""), "key 'context' is missing");
  expect_error<DataError>(without(all, "decoder", "vit"), "key 'image' is missing");
}

TEST(ModelShape, ShapesAreCheckedWhereverTheyComeFrom) {
  const auto refused = [](const ModelShape& shape, std::string_view what) {
    expect_error<UsageError>([&] { check(shape); }, what);
  };
  ModelShape shape = load_model_shape("llama3-8b");
  shape.heads = 48;
  refused(shape, "heads 48 does not divide hidden 4096");
  shape = load_model_shape("llama3-8b");
  shape.layers = 0;
  refused(shape, "layers is 0; expected a whole number from 1 to 1000000000");
  shape.layers = 10'000'000'000;
  refused(shape, "layers is 10000000000; expected");
  shape = load_model_shape("vit-l-16");
  shape.image.patch = 15;
  refused(shape, "patch 15 does not divide image size 224");
  shape.image.size = shape.image.patch = shape.image.channels = 1'000'000'000;
  refused(shape,
          "a patch has 1e+27 numbers, patch x patch x channels; expected at most 1000000000");
  shape.name = "two words";
  refused(shape, "a name has no blanks");
}

TEST(ModelShape, UnknownModelsNameTheNearest) {
  expect_error<UsageError>([] { (void)load_model_shape("llama3-8"); },
                           "there is no model 'llama3-8'; did you mean 'llama3-8b'?");
  expect_error<UsageError>([] { (void)load_model_shape("gpt3-2.8b"); },
                           "there is no model 'gpt3-2.8b'; did you mean 'gpt3-2.7b'?", ".json");
  expect_error<UsageError>([] { (void)load_model_shape("x"); }, "expected one of dit-xl-2, gpt3-");
  expect_error<IoError>([] { (void)load_model_shape("nowhere/x.json"); }, "x.json");
}

TEST(ModelShape, OnlyGptsRunWithTheKernelsOfLlmC) {
  for (const std::string& name : model_shape_names())
    EXPECT_EQ(is_gpt(load_model_shape(name)), name.starts_with("gpt")) << name;
  expect_error<UsageError>(
      [] {
        TrainingStep step{.model = load_model_shape("llama3-8b"), .seq = 1024};
        step.kernels = KernelStyle::llm_c;
        check(step);
      },
      "model 'llama3-8b' is not a GPT", "--kernels fused");
}

}  // namespace
}  // namespace rubato

#include "traces/transformer/model_shape.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>

#include <fmt/format.h>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/suggest.hpp"
#include "traces/transformer/limits.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_model_shapes();

namespace {

constexpr std::uint64_t shape_schema = 1;

// The enumerator whose name a file gives; `names` are in the order of the enumerators.
template <class Enum>
Enum choice(const JsonNode& node, std::initializer_list<const char*> names) {
  const std::string text = node.text();
  const std::vector<std::string> known(names.begin(), names.end());
  const auto found = std::ranges::find(known, text);
  if (found == known.end())
    node.fail(fmt::format("'{}' is not known{}", text, did_you_mean(text, known)));
  return static_cast<Enum>(found - known.begin());
}

ImageShape read_image(const JsonNode& node) {
  node.expect_keys({"size", "patch", "channels", "classes"});
  return {.size = node.at("size").count(),
          .patch = node.at("patch").count(),
          .channels = node.at("channels").count(),
          .classes = node.at("classes").count()};
}

ModelShape read_shape(const JsonNode& root) {
  root.expect_keys(
      {"schema", "name", "source", "kind", "layers", "hidden", "heads", "ffn", "norm", "activation",
       "positions", "biases"},
      {"kv_heads", "vocab", "context", "tied_embeddings", "experts", "experts_per_token", "image"});
  const auto count_or = [&](std::string_view key, std::uint64_t otherwise) {
    const auto node = root.find(key);
    return node ? node->count() : otherwise;
  };
  ModelShape shape;
  shape.name = root.at("name").text();
  shape.source = root.at("source").text();
  shape.kind = choice<ModelKind>(root.at("kind"), {"decoder", "vit", "dit"});
  shape.layers = root.at("layers").count();
  shape.hidden = root.at("hidden").count();
  shape.heads = root.at("heads").count();
  shape.kv_heads = count_or("kv_heads", shape.heads);
  shape.ffn = root.at("ffn").count();
  const bool text = shape.kind == ModelKind::decoder;
  shape.vocab = text ? root.at("vocab").count() : count_or("vocab", 0);
  shape.context = text ? root.at("context").count() : count_or("context", 0);
  shape.norm = choice<Norm>(root.at("norm"), {"layernorm", "rmsnorm"});
  shape.activation = choice<Activation>(root.at("activation"), {"gelu", "swiglu"});
  shape.positions = choice<PositionEncoding>(root.at("positions"), {"learned", "rope", "fixed"});
  shape.biases = root.at("biases").boolean();
  shape.tied_embeddings = false;
  if (const auto tied = root.find("tied_embeddings")) shape.tied_embeddings = tied->boolean();
  shape.experts = count_or("experts", 0);
  shape.experts_per_token =
      shape.experts > 0 ? root.at("experts_per_token").count() : count_or("experts_per_token", 0);
  if (!text || root.find("image")) shape.image = read_image(root.at("image"));
  return shape;
}

[[noreturn]] void refuse(const ModelShape& shape, const std::string& what) {
  throw UsageError(fmt::format("model '{}': {}", shape.name, what));
}

void check_range(const ModelShape& shape, std::string_view name, std::uint64_t value) {
  expect_range(name, value, fmt::format("model '{}': ", shape.name));
}

void check_experts(const ModelShape& shape) {
  if (shape.experts == 0 && shape.experts_per_token == 0) return;
  if (shape.experts == 0)
    refuse(shape, fmt::format("{} experts per token, but no experts", shape.experts_per_token));
  if (shape.kind != ModelKind::decoder) refuse(shape, "only decoders may have experts");
  if (shape.biases) refuse(shape, "experts with biases are not known");
  check_range(shape, "experts", shape.experts);
  if (shape.experts_per_token == 0 || shape.experts_per_token > shape.experts)
    refuse(shape, fmt::format("experts_per_token is {}; expected 1 to the {} experts there are",
                              shape.experts_per_token, shape.experts));
}

void check_image(const ModelShape& shape) {
  const ImageShape& image = shape.image;
  check_range(shape, "image.size", image.size);
  check_range(shape, "image.patch", image.patch);
  check_range(shape, "image.channels", image.channels);
  check_range(shape, "image.classes", image.classes);
  if (image.size % image.patch != 0)
    refuse(shape, fmt::format("patch {} does not divide image size {}", image.patch, image.size));
  constexpr double most_in_patch = 1e9;
  const double in_patch = static_cast<double>(image.patch) * static_cast<double>(image.patch) *
                          static_cast<double>(image.channels);
  if (in_patch > most_in_patch)
    refuse(shape, fmt::format("a patch has {:.3g} numbers, patch x patch x channels; expected at "
                              "most {:.0f}",
                              in_patch, most_in_patch));
  if (shape.vocab != 0 || shape.context != 0 || shape.tied_embeddings)
    refuse(shape, "vocab, context and tied_embeddings are of decoders");
  const bool fits = shape.kind == ModelKind::vit ? shape.positions == PositionEncoding::learned
                                                 : shape.positions == PositionEncoding::fixed;
  if (!fits)
    refuse(shape, shape.kind == ModelKind::vit ? "positions of a ViT are 'learned'"
                                               : "positions of a DiT are 'fixed'");
}

void check_decoder(const ModelShape& shape) {
  check_range(shape, "vocab", shape.vocab);
  check_range(shape, "context", shape.context);
  if (shape.image != ImageShape{}) refuse(shape, "image is of kinds 'vit' and 'dit'");
  if (shape.positions == PositionEncoding::fixed)
    refuse(shape, "positions of a decoder are 'learned' or 'rope'");
}

}  // namespace

std::uint64_t ModelShape::tokens_per_image() const {
  const std::uint64_t side = image.size / image.patch;
  return side * side + (kind == ModelKind::vit ? 1 : 0);
}

void check(const ModelShape& shape) {
  if (shape.name.empty() || shape.name.find_first_of(" =") != std::string::npos)
    refuse(shape, "a name has no blanks and no '='");
  check_range(shape, "layers", shape.layers);
  check_range(shape, "hidden", shape.hidden);
  check_range(shape, "heads", shape.heads);
  check_range(shape, "kv_heads", shape.kv_heads);
  check_range(shape, "ffn", shape.ffn);
  if (shape.hidden % shape.heads != 0)
    refuse(shape, fmt::format("heads {} does not divide hidden {}", shape.heads, shape.hidden));
  if (shape.heads % shape.kv_heads != 0)
    refuse(shape, fmt::format("kv_heads {} does not divide heads {}", shape.kv_heads, shape.heads));
  check_experts(shape);
  if (shape.kind == ModelKind::decoder) {
    check_decoder(shape);
  } else {
    check_image(shape);
  }
}

ModelShape parse_model_shape(std::string_view json, const std::string& name) {
  const JsonDocument document = JsonDocument::parse(json, name);
  document.expect_schema(shape_schema);
  ModelShape shape = read_shape(document.root());
  try {
    check(shape);
  } catch (const UsageError& error) {
    throw DataError(fmt::format("{}: {}", name, error.what()));
  }
  return shape;
}

ModelShape load_model_shape(std::string_view name_or_path) {
  const std::vector<std::string> names = model_shape_names();
  if (!name_or_path.ends_with(".json") && std::ranges::find(names, name_or_path) == names.end())
    throw UsageError(
        fmt::format("there is no model '{}'{}", name_or_path, did_you_mean(name_or_path, names)),
        {.in = {},
         .hint = "a file of a shape ends in .json; docs/model-shapes.md says what it holds"});
  const NamedText named = read_named(embedded_model_shapes(), name_or_path, "model", {});
  return parse_model_shape(named.text, named.path.string());
}

std::vector<std::string> model_shape_names() { return names_of(embedded_model_shapes()); }

}  // namespace rubato

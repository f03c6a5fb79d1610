#pragma once
// The shape of a transformer: what its kernels, parameters and activations follow from.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// What stands before and behind the layers, and whether attention is causal.
enum class ModelKind {
  decoder,  ///< language: token table, causal attention, cross entropy over the vocabulary
  vit,      ///< images to classes: patch embedding, class token, head on it
  dit       ///< latent images: patch embedding, layers modulated by adaLN-Zero, noise predicted
};
enum class Norm { layernorm, rmsnorm };
enum class Activation { gelu, swiglu };
enum class PositionEncoding { learned, rope, fixed };

/// Number of sines and cosines that tell a DiT its time step.
inline constexpr std::uint64_t dit_frequencies = 256;

/// Images of a ViT or DiT.
struct ImageShape {
  std::uint64_t size = 0;      ///< pixels (ViT) or latent pixels (DiT) along a side
  std::uint64_t patch = 0;     ///< pixels of a patch along a side, divides size
  std::uint64_t channels = 0;  ///< of the input
  std::uint64_t classes = 0;

  [[nodiscard]] std::uint64_t values_in_patch() const { return patch * patch * channels; }

  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

/// A transformer of equal layers, each attention and a feed-forward network (FFN), norms first.
struct ModelShape {
  std::string name;
  std::string source;  ///< where the numbers are published
  ModelKind kind = ModelKind::decoder;
  std::uint64_t layers = 0;
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;     ///< divides hidden
  std::uint64_t kv_heads = 0;  ///< divides heads; fewer than heads: grouped-query attention
  std::uint64_t ffn = 0;       ///< width of the FFN, of one expert where there are experts
  std::uint64_t vocab = 0;     ///< decoders
  std::uint64_t context = 0;   ///< decoders: longest sequence, rows of a learned position table
  Norm norm = Norm::layernorm;
  Activation activation = Activation::gelu;
  PositionEncoding positions = PositionEncoding::learned;
  bool biases = true;           ///< of the layers' matrices
  bool tied_embeddings = true;  ///< decoders: the head is the token table
  std::uint64_t experts = 0;    ///< of each layer, 0: one FFN for all tokens
  std::uint64_t experts_per_token = 0;
  ImageShape image;  ///< ViT, DiT

  [[nodiscard]] std::uint64_t head_width() const { return hidden / heads; }
  [[nodiscard]] std::uint64_t kv_width() const { return kv_heads * head_width(); }
  /// GPT-2 and GPT-3 were trained with dropout; later models are not.
  [[nodiscard]] bool has_dropout() const {
    return kind == ModelKind::decoder && positions == PositionEncoding::learned;
  }
  [[nodiscard]] bool causal() const { return kind == ModelKind::decoder; }
  /// Outputs of the first matrix of an FFN: SwiGLU has a gate beside them.
  [[nodiscard]] std::uint64_t ffn_outputs() const {
    return activation == Activation::swiglu ? 2 * ffn : ffn;
  }
  /// Tokens of an image, with the class token of a ViT.
  [[nodiscard]] std::uint64_t tokens_per_image() const;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// Checks the promises above: ranges (1 to 1e9), what divides what, experts and their choice.
/// @throws UsageError naming the first broken one, prefixed with the model's name
void check(const ModelShape& shape);

/// A shipped shape by name ("llama3-8b"), or a file as docs/model-shapes.md describes it.
/// @throws UsageError (unknown name, with the nearest), IoError, DataError
[[nodiscard]] ModelShape load_model_shape(std::string_view name_or_path);

/// @param name  shown in messages, usually the path
/// @throws DataError
[[nodiscard]] ModelShape parse_model_shape(std::string_view json, const std::string& name);

/// Names of the shipped shapes.
[[nodiscard]] std::vector<std::string> model_shape_names();

}  // namespace rubato

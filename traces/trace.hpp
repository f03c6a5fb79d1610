#pragma once
// The work of one training iteration: which kernels there are, and in which
// order they are launched. Everything else in the program starts from this.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"

namespace rubato {

/// Part of a training iteration a kernel belongs to.
enum class Pass { embedding, forward, loss, backward, embedding_backward, optimizer, unknown };

/// What a kernel does; decides which default model coefficients it gets.
enum class KernelClass {
  embedding,
  layernorm,
  residual_layernorm,
  gemm,
  gemm_batched,
  attention,
  softmax,
  permute,
  gelu,
  elementwise,
  bias,
  bias_reduce,
  reduce,
  optimizer,
  memset,
  memcpy,
  communication,
  other
};

/// What a kernel computes in. `fp32` is the arithmetic of CUDA cores; `tf32` is operands stored in
/// fp32 that tensor cores multiply, which is faster and less exact.
enum class Dtype { bf16, fp16, fp32, fp64, tf32, fp8, nvfp4, unknown };

/// Collective operation of a communication kernel.
enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send_recv,
  other
};

/// How a work figure (FLOPs, bytes) came about: counted by the hardware, by formula from known
/// shapes, by a rule of thumb, or not at all.
enum class WorkSource { measured, derived, guessed, unknown };

/// GEMM of `batch` products [m x k] * [k x n]; m is the fast (column-major) dimension.
struct GemmShape {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// What one launch of a fused attention kernel works on, as one GPU has it. A kernel that makes
/// gradients has the shape of the forward pass it belongs to.
struct AttentionShape {
  std::uint64_t batch = 0;      ///< sequences
  std::uint64_t q_tokens = 0;   ///< queries of a sequence: 1 when a token is decoded
  std::uint64_t kv_tokens = 0;  ///< keys of a sequence, and as many values
  std::uint64_t heads = 0;      ///< of queries
  std::uint64_t kv_heads = 0;   ///< divides heads
  std::uint64_t head_dim = 0;   ///< elements
  bool causal = false;  ///< the last query sees all keys, and each one before it one key fewer

  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// Pairs of query and key that the mask leaves, of one head and one sequence.
[[nodiscard]] double attended_pairs(const AttentionShape& shape);

/// Message of a communication kernel.
struct Collective {
  CollectiveKind kind = CollectiveKind::other;
  double message_bytes =
      0.0;  ///< size of the full buffer each rank ends up with or starts from, > 0
  std::uint32_t group_size = 1;  ///< ranks taking part, > 1
  std::uint32_t stride = 1;      ///< GPUs from one rank of the group to the next, >= 1

  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Grid and block of a launch.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

/// One unique kernel. Work figures are per launch; an unknown one is empty, never 0.
struct Kernel {
  std::string name;   ///< unique in its trace, e.g. "02_gemm_qkv"
  std::string label;  ///< as published or captured, need not be unique, e.g. "GEMM"
  KernelClass kind = KernelClass::other;
  Pass pass = Pass::unknown;
  Dtype dtype = Dtype::unknown;
  std::optional<double> flops;       ///< floating-point operations, >= 0
  std::optional<double> dram_bytes;  ///< bytes moved to and from DRAM, >= 0
  std::optional<GemmShape> gemm;
  std::optional<AttentionShape> attention = {};
  std::optional<Collective> collective;
  std::optional<LaunchShape> launch;
  std::optional<double> measured_time_s;  ///< captured time of one launch, > 0
  WorkSource work_source = WorkSource::unknown;

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// A run of launches that is repeated as a whole, e.g. the 24 equal layers.
struct Segment {
  std::string name;
  std::uint32_t repeat = 1;        ///< >= 1
  std::vector<KernelId> launches;  ///< in order, not empty

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Where a trace came from; free text, kept in files and databases.
struct Provenance {
  std::string generator;  ///< program and version, or tool that captured it
  std::string source;     ///< model, paper, file
  std::string options;    ///< e.g. "batch=40 seq=1024 tp=1 dp=1"

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// What a captured trace ran on: the measured times are of this GPU at these clocks.
struct CaptureConditions {
  std::string device;                ///< as the driver calls it; empty: not known
  std::optional<std::string> clock;  ///< MEMORY/CORE, e.g. "1593/1410"; nothing: not known

  friend bool operator==(const CaptureConditions&, const CaptureConditions&) = default;
};

/// Kernels and their launches in order. A "site" is one launch of the compact
/// form: segment s, position p. All repeats of a site share one clock in a plan.
struct Trace {
  std::string name;
  Provenance provenance;
  std::optional<CaptureConditions> captured;  ///< nothing: generated, or not known
  std::vector<Kernel> kernels;
  std::vector<Segment> segments;

  friend bool operator==(const Trace&, const Trace&) = default;
};

/// One launch of the compact form.
struct Site {
  KernelId kernel;
  std::uint32_t segment = 0;  ///< index into the segments
  std::uint32_t repeat = 1;   ///< of that segment
};

/// All sites in launch order; SiteId indexes this list.
[[nodiscard]] std::vector<Site> sites(std::span<const Segment> segments);
[[nodiscard]] std::vector<Site> sites(const Trace& trace);

/// Kernels of one iteration, repeats expanded, in launch order.
[[nodiscard]] std::vector<KernelId> launches(std::span<const Segment> segments);

/// Launches of each kernel in one iteration, shape [kernels].
[[nodiscard]] std::vector<std::uint64_t> launch_counts(const Trace& trace);

/// Checks the promises of the types above, and that each kernel is launched.
/// @throws DataError listing up to 20 broken ones, each prefixed with `where`
void validate(const Trace& trace, std::string_view where);

/// Names as used in files, e.g. Pass::embedding_backward <-> "embedding_backward".
[[nodiscard]] std::string_view name_of(Pass value) noexcept;
[[nodiscard]] std::string_view name_of(KernelClass value) noexcept;
[[nodiscard]] std::string_view name_of(Dtype value) noexcept;
[[nodiscard]] std::string_view name_of(CollectiveKind value) noexcept;
[[nodiscard]] std::string_view name_of(WorkSource value) noexcept;

/// The value with that name, or nothing.
template <class Enum>
[[nodiscard]] std::optional<Enum> from_name(std::string_view name) noexcept;

/// All names of an enumeration, for "did you mean".
template <class Enum>
[[nodiscard]] std::span<const std::string> all_names();

/// Bytes of one element; of nvfp4 4 bits and the scale of 8 bits that 16 elements share.
/// @throws DataError for Dtype::unknown
[[nodiscard]] double element_bytes(Dtype dtype);

}  // namespace rubato

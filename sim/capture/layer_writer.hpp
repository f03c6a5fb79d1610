#pragma once
// Launches the kernels of a layer with the collectives of its tensor-, context- and expert-parallel
// groups. Kernels wait for a collective, or run beside it where frameworks overlap the two.
// docs/parallel.md.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/capture/step_writer.hpp"
#include "traces/parallel/rank_work.hpp"

namespace rubato {

/// What runs beside the collectives of tensor parallelism.
struct TensorOverlap {
  /// In the backward pass, the all-gather of a layer's input runs beside the matrix product that
  /// gives the input's gradient. The reduce-scatter of that gradient runs beside the product that
  /// gives the weights' gradient. As Megatron-LM without further options.
  bool bulk = true;
  /// A product and the all-gather before it, or the reduce-scatter behind it, are done in so many
  /// pieces, so that one piece is sent while another is computed. 1: the product waits for all of
  /// the all-gather.
  std::uint32_t chunks = 1;

  friend bool operator==(const TensorOverlap&, const TensorOverlap&) = default;
};

/// Writes lists of kernels of one rank.
class LayerWriter {
 public:
  using Launches = RankWork::Launches;

  /// @param work, step  must outlive the writer; kernels of `step` begin with those of `work`
  LayerWriter(const RankWork& work, const TensorOverlap& overlap, StepWriter& step)
      : work_(work), overlap_(overlap), step_(step) {}

  /// Writes a list of kernels.
  /// @param last  gradients are complete behind it, so the kernels that sum them up run as well
  /// @param launched  called for each kernel of the list when it is launched
  void run(const Launches& list, bool last = true,
           const std::function<void(KernelId)>& launched = {});

 private:
  // Each writes from a position of a list on. @return launches of the list that it took, 0: none
  std::size_t run_at(const Launches& list, std::size_t at);
  std::size_t run_bulk(const Launches& list, std::size_t at);
  std::size_t run_ring(const Launches& list, std::size_t at);
  void gather_in_chunks(KernelId gather, KernelId product);
  void scatter_in_chunks(KernelId product, KernelId scatter);
  void communicate_alone(KernelId kernel);

  void launch(KernelId kernel);
  [[nodiscard]] std::uint32_t begin(KernelId kernel);
  [[nodiscard]] KernelId chunk_of(KernelId kernel);
  [[nodiscard]] bool is_product(const Launches& list, std::size_t at) const;
  [[nodiscard]] bool sends(const Launches& list, std::size_t at, CollectiveKind kind) const;
  [[nodiscard]] bool sums(const Launches& list, std::size_t at) const;

  const RankWork& work_;
  TensorOverlap overlap_;
  StepWriter& step_;
  bool last_ = true;
  std::function<void(KernelId)> launched_;
};

}  // namespace rubato

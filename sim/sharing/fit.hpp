#pragma once
// Fits CollectiveSharing to measurements of one attention block beside an all-reduce (Kareus,
// A100). Start with OverlapBlock. docs/contention.md.

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/sharing/overlap.hpp"

namespace rubato {

/// One measured setting: the means of its repetitions.
struct OverlapRow {
  std::optional<double> core_mhz;   ///< locked clock; nothing: "auto"
  int first_op = -1, last_op = -1;  ///< parts beside the collective, as the source numbers them;
                                    ///< -1: none, the collective runs by itself
  double comm_sms = 0.0;
  double comm_block_threads = 0.0;
  double time_s = 0.0;    ///< of a block
  double energy_j = 0.0;  ///< of a block, per GPU
};

/// Reads the columns of models/data/measured/kareus_a100_overlap/overlap.csv; others may be there.
/// @throws IoError, DataError
[[nodiscard]] std::vector<OverlapRow> read_overlap_rows(const std::filesystem::path& path);
/// The same of a file's text. @param name  for messages
[[nodiscard]] std::vector<OverlapRow> overlap_rows(std::string_view csv, std::string name);

/// The parameters fitted to the rows: how a collective shares a GPU, and this block on this card.
/// All > 0.
struct OverlapBlock {
  static constexpr std::size_t count = 15;
  static const std::array<std::string_view, count> names;

  std::array<double, count> values;  ///< in the order of `names`

  /// The prior, made without the rows: sizes of the block over usual rates, the spec's voltage.
  [[nodiscard]] static OverlapBlock prior();
  [[nodiscard]] CollectiveSharing sharing() const;
  /// The spec of the measured card, an A100-SXM4-40GB.
  /// @param a100  the shipped spec of an A100-SXM4
  [[nodiscard]] GpuSpec card(const GpuSpec& a100) const;
  /// Predicts one setting; the row's time and energy are not looked at.
  /// @throws UsageError for a window that the source does not have
  [[nodiscard]] OverlapCost predict(const GpuSpec& card, const OverlapRow& row) const;
};

/// Least squares (Levenberg and Marquardt) over the relative errors of time and energy, with a weak
/// Gaussian prior.
/// @param rows  at least 16, with both clocks and several SM counts
[[nodiscard]] OverlapBlock fit_overlap(const GpuSpec& a100, std::span<const OverlapRow> rows);

/// Relative errors, predicted over measured less 1.
struct OverlapErrors {
  std::vector<double> time, energy;  ///< shape [rows]

  [[nodiscard]] static double mean_magnitude(std::span<const double> errors);
  [[nodiscard]] static double worst_magnitude(std::span<const double> errors);
};

[[nodiscard]] OverlapErrors overlap_errors(const GpuSpec& a100, const OverlapBlock& block,
                                           std::span<const OverlapRow> rows);

/// What the rows that a fold of a cross-validation leaves out have in common.
enum class OverlapFold { clock, comm_sms, window, block_threads };

/// Cross-validation: errors of every row by a fit to the rows of all other folds.
[[nodiscard]] OverlapErrors cross_validated(const GpuSpec& a100, std::span<const OverlapRow> rows,
                                            OverlapFold fold);

}  // namespace rubato

#pragma once
// The loops that least squares of a few hundred parameters spend their time in, compiled once for
// each instruction set that pays. Each sum is added up in a fixed order, so that all sets give the
// same bits: docs/decisions/0012-simd.md.

#include <cstddef>
#include <span>
#include <string_view>

namespace rubato {

/// Rows and columns are padded to a multiple of so many numbers.
inline constexpr std::size_t dense_padding = 16;
/// Columns in a block. add_square leaves out blocks in which a row is zero.
inline constexpr std::size_t dense_block = 8;

/// Matrices lie by columns (by rows is the same where they are symmetric), `stride` numbers apart.
/// A stride is a multiple of dense_padding.
struct DenseLoops {
  std::string_view name;  ///< "avx512", "avx2", "baseline"

  /// Adds the outer product of a row with itself: sum(c, i) += row[c] row[i] for i >= c. Numbers
  /// with i < c may change.
  /// @param row     zero outside `blocks`, shape [stride]
  /// @param blocks  blocks of dense_block columns, ascending
  /// @param sum     shape [columns x stride]
  void (*add_square)(const double* row, std::span<const std::size_t> blocks, std::size_t stride,
                     double* sum);

  /// column[i] -= sum over j < count, from zero on and in this order, of a[j stride + i] factor[j],
  /// for i in [from, to), both multiples of dense_padding.
  void (*subtract)(const double* a, std::size_t stride, const double* factor, std::size_t count,
                   std::size_t from, std::size_t to, double* column);

  /// x = 2^x, relative error below 3e-16.
  /// @param x  in [-1022, 1024), shape [count], a multiple of dense_padding
  void (*exp2)(std::size_t count, double* x);
};

/// Those this machine can run, the slowest first.
[[nodiscard]] std::span<const DenseLoops> dense_loops();

}  // namespace rubato

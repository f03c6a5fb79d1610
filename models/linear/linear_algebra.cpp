#include "models/linear/linear_algebra.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <Eigen/Dense>

#include "models/linear/dense_loops.hpp"

namespace rubato {

using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

// Rows in a chunk: they are added up among themselves, then to the sum of the chunks before.
Eigen::Index rows_of_chunk(Eigen::Index rows) {
  constexpr Eigen::Index most = 504, multiple = 8;
  const Eigen::Index chunks = std::max<Eigen::Index>(1, (rows + most - 1) / most);
  return (rows / chunks + multiple) / multiple * multiple;
}

std::size_t padded(Eigen::Index numbers) {
  return (static_cast<std::size_t>(numbers) + dense_padding - 1) / dense_padding * dense_padding;
}

// Some rows of a matrix, each one's numbers side by side, with the blocks of each that are not
// zero.
class RowChunk {
 public:
  RowChunk(Eigen::Index rows, Eigen::Index columns)
      : stride_(padded(columns)),
        numbers_(static_cast<std::size_t>(rows) * stride_),
        used_(static_cast<std::size_t>(rows) * (stride_ / dense_block)) {}

  void read(const DenseView& a, Eigen::Index first, Eigen::Index rows) {
    std::ranges::fill(numbers_, 0.0);
    std::ranges::fill(used_, false);
    constexpr Eigen::Index at_once = 16;  // most are zero, and so are those around them
    for (Eigen::Index c = 0; c < a.cols(); ++c) {
      const double* column = a.col(c).data() + first;
      for (Eigen::Index r = 0; r < rows; r += at_once) {
        const Eigen::Index end = std::min(r + at_once, rows);
        std::uint64_t bits = 0;
        for (Eigen::Index i = r; i < end; ++i) bits |= std::bit_cast<std::uint64_t>(column[i]);
        if (bits == 0) continue;
        for (Eigen::Index i = r; i < end; ++i) {
          if (column[i] != 0.0)
            put(static_cast<std::size_t>(i), static_cast<std::size_t>(c), column[i]);
        }
      }
    }
  }

  void add_square(const DenseLoops& loops, std::size_t row, double* sum) {
    blocks_.clear();
    for (std::size_t b = 0; b < stride_ / dense_block; ++b) {
      if (used_[row * (stride_ / dense_block) + b] != 0) blocks_.push_back(b);
    }
    loops.add_square(numbers_.data() + row * stride_, blocks_, stride_, sum);
  }

 private:
  void put(std::size_t row, std::size_t column, double number) {
    numbers_[row * stride_ + column] = number;
    used_[row * (stride_ / dense_block) + column / dense_block] = true;
  }

  std::size_t stride_;
  std::vector<double> numbers_;      // shape [rows x stride]
  std::vector<unsigned char> used_;  // shape [rows x blocks]
  std::vector<std::size_t> blocks_;  // of one row
};

// L D L^T of a symmetric matrix whose rows and columns are sorted by its diagonal (pivots): what
// Eigen's LDLT makes, to the last bit. Eigen goes column by column and reads all columns before
// each one. Here a panel of columns is subtracted from all that follow while it is in the cache.
// Each element's sum is split where Eigen's product splits it: not at all in the first columns,
// later at every panel.
class SymmetricFactor {
 public:
  static constexpr Eigen::Index least_size = 64;   // below, panels do not pay
  static constexpr Eigen::Index most_size = 3968;  // above, Eigen's product splits sums elsewhere

  explicit SymmetricFactor(const DenseView& a)
      : size_(a.rows()),
        stride_(padded(size_)),
        order_(static_cast<std::size_t>(size_)),
        lower_(MatrixXd::Zero(static_cast<Eigen::Index>(stride_), size_)),
        diagonal_(a.diagonal()),
        of_row_(VectorXd::Zero(size_)),
        factors_(panel, size_) {
    sort_and_copy(a);
    for (Eigen::Index first = 0; first < size_; first += panel) {
      const Eigen::Index last = std::min(first + panel, size_);
      for (Eigen::Index k = first; k < last; ++k) finish(first, k);
      take_from_rest(first, last);
    }
  }

  [[nodiscard]] MatrixXd solve(const DenseView& b) const {
    MatrixXd x(b.rows(), b.cols());
    for (Eigen::Index k = 0; k < size_; ++k) x.row(k) = b.row(at(k));
    const auto lower = lower_.topRows(size_);
    lower.triangularView<Eigen::UnitLower>().solveInPlace(x);
    for (Eigen::Index k = 0; k < size_; ++k) {
      if (std::abs(diagonal_[k]) > std::numeric_limits<double>::min()) {
        x.row(k) /= diagonal_[k];
      } else {
        x.row(k).setZero();
      }
    }
    lower.transpose().triangularView<Eigen::UnitUpper>().solveInPlace(x);
    MatrixXd solution(b.rows(), b.cols());
    for (Eigen::Index k = 0; k < size_; ++k) solution.row(at(k)) = x.row(k);
    return solution;
  }

 private:
  static constexpr Eigen::Index panel = 16;
  static constexpr Eigen::Index first_columns = 128;
  static constexpr std::size_t strip = 128;  // rows of a panel that stay in the first-level cache

  [[nodiscard]] Eigen::Index at(Eigen::Index k) const {
    return order_[static_cast<std::size_t>(k)];
  }

  // Pivots: the largest number of the diagonal comes first, then the largest of the rest, and so
  // on, each by an exchange.
  void sort_and_copy(const DenseView& a) {
    std::iota(order_.begin(), order_.end(), Eigen::Index{0});
    for (Eigen::Index k = 0; k < size_; ++k) {
      Eigen::Index largest = 0;
      diagonal_.tail(size_ - k).cwiseAbs().maxCoeff(&largest);
      std::swap(diagonal_[k], diagonal_[k + largest]);
      std::swap(order_[static_cast<std::size_t>(k)], order_[static_cast<std::size_t>(k + largest)]);
    }
    for (Eigen::Index k = 0; k < size_; ++k) {
      for (Eigen::Index i = k + 1; i < size_; ++i)
        lower_(i, k) = a(std::max(at(i), at(k)), std::min(at(i), at(k)));
    }
  }

  // Subtracts `count` columns from `begin` on, each times its factor, from column k.
  void subtract(Eigen::Index begin, Eigen::Index count, const double* factors, std::size_t from,
                std::size_t to, Eigen::Index k) {
    loops_.subtract(lower_.col(begin).data(), stride_, factors, static_cast<std::size_t>(count),
                    from, to, lower_.col(k).data());
  }

  // Whether sums of the column's elements are not split. The last column with elements below the
  // diagonal is one: Eigen computes it as a product of two vectors.
  [[nodiscard]] bool is_whole(Eigen::Index k) const { return k < first_columns || k == size_ - 2; }

  static std::size_t rows_below(Eigen::Index k) {
    return static_cast<std::size_t>(k + 1) / dense_padding * dense_padding;
  }

  void finish(Eigen::Index first, Eigen::Index k) {
    const Eigen::Index begin = is_whole(k) ? 0 : first, count = k - begin;
    if (count > 0) {
      const VectorXd factors = diagonal_.segment(begin, count)
                                   .cwiseProduct(lower_.row(k).segment(begin, count).transpose());
      subtract(begin, count, factors.data(), rows_below(k), stride_, k);
    }
    diagonal_[k] -= of_row_[k];
    const Eigen::Index rest = size_ - k - 1;
    auto column = lower_.col(k).segment(k + 1, rest);
    if (std::abs(diagonal_[k]) > 0.0) column /= diagonal_[k];
    of_row_.tail(rest) += column.cwiseProduct(diagonal_[k] * column);
  }

  void take_from_rest(Eigen::Index first, Eigen::Index last) {
    const Eigen::Index begin = std::max(last, first_columns), rest = size_ - 2;
    for (Eigen::Index k = begin; k < rest; ++k) {
      factors_.col(k).head(last - first) =
          diagonal_.segment(first, last - first)
              .cwiseProduct(lower_.row(k).segment(first, last - first).transpose());
    }
    if (begin >= rest) return;
    for (std::size_t row = rows_below(begin); row < stride_; row += strip) {
      const std::size_t end = std::min(row + strip, stride_);
      for (Eigen::Index k = begin; k < rest && rows_below(k) < end; ++k) {
        subtract(first, last - first, factors_.col(k).data(), std::max(row, rows_below(k)), end, k);
      }
    }
  }

  const DenseLoops& loops_ = dense_loops().back();
  Eigen::Index size_;
  std::size_t stride_;
  std::vector<Eigen::Index> order_;
  MatrixXd lower_;     // L below its diagonal, shape [stride x size]
  VectorXd diagonal_;  // D; the diagonal of A where D is not yet known
  VectorXd of_row_;    // what is still to be subtracted from the diagonal
  MatrixXd factors_;   // D L^T of the panel, shape [panel x size]
};

}  // namespace

MatrixXd sparse_normal(const DenseView& a) {
  const DenseLoops& loops = dense_loops().back();
  const Eigen::Index columns = a.cols(), chunk = rows_of_chunk(a.rows());
  RowChunk rows(chunk, columns);
  MatrixXd sum = MatrixXd::Zero(columns, columns);
  MatrixXd part = MatrixXd::Zero(static_cast<Eigen::Index>(padded(columns)), columns);
  for (Eigen::Index first = 0; first < a.rows(); first += chunk) {
    const Eigen::Index count = std::min(chunk, a.rows() - first);
    rows.read(a, first, count);
    for (Eigen::Index r = 0; r < count; ++r)
      rows.add_square(loops, static_cast<std::size_t>(r), part.data());
    for (Eigen::Index c = 0; c < columns; ++c) {
      auto of_column = part.col(c).segment(c, columns - c);
      sum.col(c).tail(columns - c) += of_column;
      of_column.setZero();
    }
  }
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  return sum;
}

MatrixXd transposed_product(const DenseView& a, const DenseView& b) { return a.transpose() * b; }

MatrixXd product(const DenseView& a, const DenseView& b) { return a * b; }

MatrixXd solve_symmetric(const DenseView& a, const DenseView& b) {
  const bool large =
      a.rows() >= SymmetricFactor::least_size && a.rows() <= SymmetricFactor::most_size;
  if (large && a.allFinite() && a.diagonal().cwiseAbs().maxCoeff() > 0.0)
    return SymmetricFactor(a).solve(b);
  return a.ldlt().solve(b);
}

MatrixXd cholesky_factor(const DenseView& a) { return a.llt().matrixL(); }

VectorXd solve_transposed_lower(const DenseView& lower, const DenseView& b) {
  return lower.transpose().triangularView<Eigen::Upper>().solve(b);
}

MatrixXd inverse(const DenseView& a) {
  return solve_symmetric(a, MatrixXd::Identity(a.rows(), a.cols()));
}

std::optional<MatrixXd> inverse_if_well_conditioned(const DenseView& a) {
  constexpr double least_reciprocal = 1e-10;
  const VectorXd values = Eigen::SelfAdjointEigenSolver<MatrixXd>(a).eigenvalues().cwiseAbs();
  if (values.size() == 0 || values.minCoeff() <= least_reciprocal * values.maxCoeff())
    return std::nullopt;
  return inverse(a);
}

MatrixXd symmetric_root(const DenseView& a) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(a);
  return eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal();
}

VectorXd least_squares(const DenseView& a, const DenseView& b) {
  return a.colPivHouseholderQr().solve(b);
}

}  // namespace rubato

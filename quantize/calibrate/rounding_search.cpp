#include "quantize/calibrate/rounding_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/tensors/eigen.h"
#include "core/threads/parallel.h"

namespace miniqat::quantize {
namespace {

using Numbers = Eigen::MatrixXf;
using ConstNumbers = Eigen::Map<const Numbers>;

/// Rows that are rounded together, so that the triangle of H is read once for all of them.
constexpr std::int64_t kRowsAtOnce = 32;
/// A moved number stays for this number of moves, or for a fourth of all numbers.
constexpr std::int64_t kTabuMoves = 10;
constexpr std::int64_t kMostMovesInVain = 2000;
/// The least gain, relative to the first error. The slopes gather rounding errors, which must not pass for gains for
/// ever.
constexpr double kLeastGain = 1e-5;
constexpr std::int64_t kMostMovesEach = 20;

/// H, and its factor in the order of the diagonal.
struct FactoredMoments {
  ConstNumbers h;
  /// Ascending by H_ii.
  std::vector<Eigen::Index> order;
  Eigen::LLT<Numbers> factor;

  FactoredMoments(std::span<const float> moments, std::int64_t n)
      : h(moments.data(), n, n), order(static_cast<std::size_t>(n)) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](Eigen::Index i) { return h(i, i); });
    factor.compute(h(order, order));
  }
};

/// A column for each row of numbers.
struct RoundingBlock {
  ConstNumbers low;
  ConstNumbers high;
  /// value + d: where the error would be least if numbers could stay between their neighbours.
  Numbers target;

  RoundingBlock(const FactoredMoments& moments, const RoundingRows& rows, std::int64_t first, std::int64_t count)
      : low(part(rows.low, moments, first, count)),
        high(part(rows.high, moments, first, count)),
        target(part(rows.values, moments, first, count)) {
    if (rows.pull.empty()) return;
    const Numbers pull = part(rows.pull, moments, first, count)(moments.order, Eigen::all);
    target(moments.order, Eigen::all) += moments.factor.solve(pull);
  }

 private:
  static ConstNumbers part(std::span<const float> all, const FactoredMoments& moments, std::int64_t first,
                           std::int64_t count) {
    const std::int64_t n = moments.h.rows();
    return {all.data() + first * n, n, count};
  }
};

Numbers nearest_neighbours(const RoundingBlock& block, const ConstNumbers& values) {
  const auto down = (values - block.low).array() < (block.high - values).array();
  return down.select(block.low, block.high);
}

Numbers successive_rounding(const FactoredMoments& moments, const RoundingBlock& block) {
  const Eigen::Index n = block.low.rows();
  const auto& lower = moments.factor.matrixLLT();
  Numbers chosen(n, block.low.cols()), errors(n, block.low.cols());
  for (Eigen::Index i = n; i-- > 0;) {
    const Eigen::Index place = moments.order[static_cast<std::size_t>(i)], behind = n - 1 - i;
    const Eigen::RowVectorXf others = lower.col(i).tail(behind).transpose() * errors.bottomRows(behind) / lower(i, i);
    for (Eigen::Index r = 0; r < chosen.cols(); ++r) {
      const float wanted = block.target(place, r) - others(r);
      const float low = block.low(place, r), high = block.high(place, r);
      chosen(place, r) = wanted - low < high - wanted ? low : high;
      errors(i, r) = chosen(place, r) - block.target(place, r);
    }
  }
  return chosen;
}

/// The error of each row, up to a constant.
Eigen::VectorXd errors_of(const FactoredMoments& moments, const RoundingBlock& block, const Numbers& chosen) {
  const Numbers errors = chosen - block.target, products = moments.h * errors;
  return errors.cast<double>().cwiseProduct(products.cast<double>()).colwise().sum();
}

/// The moves of one row from a start.
class TabuSearch {
 public:
  /// `slopes` = H (chosen - target).
  TabuSearch(const ConstNumbers& h, const Eigen::VectorXf& steps, const Eigen::VectorXf& slopes, double error)
      : h_(h), steps_(steps), slopes_(slopes), diagonal_(h.diagonal()), least_gain_(kLeastGain * error) {
    const std::int64_t n = h.rows();
    tabu_ = std::min(kTabuMoves, n / 4);
    patience_ = std::min(3 * n, kMostMovesInVain);
    most_moves_ = kMostMovesEach * n;
    free_from_.resize(static_cast<std::size_t>(n));
  }

  /// The numbers to move, in order; one that is there twice has moved there and back.
  std::vector<Eigen::Index> run() {
    std::vector<Eigen::Index> moves;
    std::size_t best = 0;
    while (std::ssize(moves) - static_cast<std::int64_t>(best) < patience_ && std::ssize(moves) < most_moves_) {
      const Eigen::Index i = next(std::ssize(moves));
      if (i < 0) break;
      gain_ += change(i);
      slopes_ += steps_(i) * h_.col(i);
      steps_(i) = -steps_(i);
      moves.push_back(i);
      free_from_[static_cast<std::size_t>(i)] = std::ssize(moves) + tabu_;
      if (gain_ < best_gain_ - least_gain_) {
        best_gain_ = gain_;
        best = moves.size();
      }
    }
    moves.resize(best);
    return moves;
  }

 private:
  /// The change of the error if number i moves.
  float change(Eigen::Index i) const { return steps_(i) * (2 * slopes_(i) + steps_(i) * diagonal_(i)); }

  /// -1 for none. A number may move before its time if that makes a new best row.
  Eigen::Index next(std::int64_t move) const {
    Eigen::Index best = -1;
    float least = std::numeric_limits<float>::infinity();
    for (Eigen::Index i = 0; i < steps_.size(); ++i) {
      const float changed = change(i);
      if (!(changed < least) || steps_(i) == 0) continue;
      if (free_from_[static_cast<std::size_t>(i)] > move && gain_ + changed >= best_gain_ - least_gain_) continue;
      least = changed;
      best = i;
    }
    return best;
  }

  const ConstNumbers& h_;
  /// To the other neighbour.
  Eigen::VectorXf steps_;
  Eigen::VectorXf slopes_;
  const Eigen::VectorXf diagonal_;
  const double least_gain_;
  std::int64_t tabu_ = 0;
  std::int64_t patience_ = 0;
  std::int64_t most_moves_ = 0;
  std::vector<std::int64_t> free_from_;
  double gain_ = 0;
  double best_gain_ = 0;
};

/// The better start of each row, improved.
Numbers round_block(const FactoredMoments& moments, const RoundingBlock& block, const ConstNumbers& values,
                    const std::function<bool()>& stops) {
  Numbers chosen = nearest_neighbours(block, values);
  const Numbers successive = successive_rounding(moments, block);
  Eigen::VectorXd errors = errors_of(moments, block, chosen);
  const Eigen::VectorXd others = errors_of(moments, block, successive);
  for (Eigen::Index r = 0; r < chosen.cols(); ++r)
    if (others(r) < errors(r)) {
      chosen.col(r) = successive.col(r);
      errors(r) = others(r);
    }
  const Numbers slopes = moments.h * (chosen - block.target), starts = chosen;
  for (Eigen::Index r = 0; r < chosen.cols(); ++r) {
    if (stops && stops()) return chosen;
    const Eigen::VectorXf other = block.low.col(r) + block.high.col(r) - chosen.col(r), steps = other - chosen.col(r);
    for (const Eigen::Index i : TabuSearch(moments.h, steps, slopes.col(r), errors(r)).run())
      chosen(i, r) = chosen(i, r) == block.low(i, r) ? block.high(i, r) : block.low(i, r);
  }
  const Eigen::VectorXd ends = errors_of(moments, block, chosen);
  for (Eigen::Index r = 0; r < chosen.cols(); ++r)
    if (!(ends(r) < errors(r))) chosen.col(r) = starts.col(r);
  return chosen;
}

}  // namespace

std::vector<float> round_rows(std::span<const float> moments, std::int64_t n, const RoundingRows& rows,
                              const std::function<bool()>& stops) {
  const FactoredMoments shared(moments, n);
  const std::int64_t count = std::ssize(rows.values) / n, blocks = (count + kRowsAtOnce - 1) / kRowsAtOnce;
  std::vector<float> chosen(rows.values.size());
  parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      if (stops && stops()) return;
      const std::int64_t first = k * kRowsAtOnce, columns = std::min(kRowsAtOnce, count - first);
      const ConstNumbers values(rows.values.data() + first * n, n, columns);
      Eigen::Map<Numbers>(chosen.data() + first * n, n, columns) =
          round_block(shared, RoundingBlock(shared, rows, first, columns), values, stops);
    }
  });
  return chosen;
}

}  // namespace miniqat::quantize

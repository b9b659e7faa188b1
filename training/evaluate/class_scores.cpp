#include "training/evaluate/class_scores.h"

#include <cmath>

#include "core/tensors/eigen.h"

namespace miniqat::training {
namespace {

/// m = max_c z_c, NaN if one is. With e^(z - m) in place of e^z no sum overflows.
double highest(const Eigen::ArrayXd& z) { return z.maxCoeff<Eigen::PropagateNaN>(); }

}  // namespace

std::vector<double> class_scores(std::span<const float> logits) {
  const Eigen::ArrayXd z = vector_of(logits).cast<double>();
  const Eigen::ArrayXd powers = (z - highest(z)).exp();
  std::vector<double> scores(logits.size());
  vector_of(std::span(scores)) = powers / powers.sum();
  return scores;
}

double cross_entropy(std::span<const float> logits, std::int64_t label) {
  const Eigen::ArrayXd z = vector_of(logits).cast<double>();
  const double m = highest(z);
  return m + std::log((z - m).exp().sum()) - z[label];
}

}  // namespace miniqat::training

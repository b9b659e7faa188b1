#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace miniqat::training {

/// The softmax of logits, in double: scores between 0 and 1 that add up to 1. All are NaN if a logit is.
std::vector<double> class_scores(std::span<const float> logits);

/// -log of the label's score, in double and without overflow. NaN if a logit is.
double cross_entropy(std::span<const float> logits, std::int64_t label);

}  // namespace miniqat::training

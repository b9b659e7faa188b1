#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace miniqat::training {

/// The softmax of logits, in double: scores between 0 and 1 that add up to 1. All are NaN if a logit is.
std::vector<double> class_scores(std::span<const float> logits);

/// -log of the label's score, in double and without overflow. NaN if a logit is.
double cross_entropy(std::span<const float> logits, std::int64_t label);

/// What a class is called in tables, reports and JSON: its name, or its number, which is the label.
std::string class_name(const datasets::Dataset& dataset, std::int64_t number);

}  // namespace miniqat::training

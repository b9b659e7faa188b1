#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "integer/model.h"

namespace miniqat::training {

/// The widths that occur in an integer model.
struct IntegerBits {
  std::set<int> weights;
  /// The widths of what operations give; the input is the data set's bytes.
  std::set<int> activations;
  bool per_channel = false;

  /// "W4A4 per channel"; "W2-8A8" where layers differ.
  std::string label() const;
  /// {"weights": 4, "activations": 4}; a list of widths where layers differ, null where there is none.
  nlohmann::ordered_json json() const;
};

IntegerBits bits_of(const integer::Model& model);

}  // namespace miniqat::training

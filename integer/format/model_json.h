#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "integer/model.h"

namespace miniqat::integer {

// A model as JSON, for files and for exports; docs/integer-model.md lists the keys. They differ only in how they hold
// its long lists (weights, biases, multipliers): as numbers, or as places in a blob.

class ListWriter {
 public:
  virtual ~ListWriter() = default;
  /// Integers in [0, 2^bits - 1].
  virtual nlohmann::ordered_json unsigned_list(std::span<const std::uint8_t> values, int bits) = 0;
  virtual nlohmann::ordered_json int32_list(std::span<const std::int32_t> values) = 0;
  virtual nlohmann::ordered_json float32_list(std::span<const float> values) = 0;
};

/// Asked for the lists in the order in which they were written. May throw Error, which need not name the list.
class ListReader {
 public:
  virtual ~ListReader() = default;
  virtual std::vector<std::uint8_t> unsigned_list(const nlohmann::ordered_json& list, int bits) = 0;
  virtual std::vector<std::int32_t> int32_list(const nlohmann::ordered_json& list) = 0;
  virtual std::vector<float> float32_list(const nlohmann::ordered_json& list) = 0;
};

/// The model must have passed Model::check().
nlohmann::ordered_json model_to_json(const Model& model, ListWriter& lists);

/// Throws Error naming tensor, operation and key for keys that are unknown or missing and values of a wrong type or out
/// of their type's range. The result has yet to pass Model::check().
Model model_from_json(const nlohmann::ordered_json& json, ListReader& lists);

}  // namespace miniqat::integer

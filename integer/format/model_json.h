#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "integer/model.h"

namespace miniqat::integer {

/// Runs `read` and puts what it is about before the text of its errors.
template <class Read>
auto within(const std::string& what, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail(what, ": ", error.what());
  }
}

/// The keys of a JSON object, taken one by one, each of them required. Every failure is an Error that names the key.
class JsonFields {
 public:
  /// Throws Error unless `json`, which must outlive this, is an object.
  explicit JsonFields(const nlohmann::ordered_json& json);

  const nlohmann::ordered_json& at(const char* key);
  std::string text(const char* key);
  /// A whole number in [low, high], written without point or exponent.
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high);
  std::int32_t int32(const char* key);
  /// The float nearest to a number within float's range.
  float number(const char* key);
  const nlohmann::ordered_json& list(const char* key);
  /// Numbers of the kind that integer() takes.
  std::vector<std::int64_t> integers(const char* key, std::int64_t low, std::int64_t high);
  std::vector<std::string> texts(const char* key);
  /// The result of `read` for the key's value; its errors are those of the key.
  template <class Read>
  auto value(const char* key, const Read& read) {
    const nlohmann::ordered_json& json = at(key);
    return within(key, [&] { return read(json); });
  }
  /// The result of `read` for the fields of the object under the key; it takes all of them.
  template <class Read>
  auto object(const char* key, const Read& read) {
    return value(key, [&](const nlohmann::ordered_json& json) {
      JsonFields fields(json);
      auto result = read(fields);
      fields.done();
      return result;
    });
  }
  /// Throws Error for a key that nobody took.
  void done() const;

 private:
  const nlohmann::ordered_json& json_;
  std::vector<std::string> taken_;
};

/// A whole number in [low, high]; throws Error that calls it `what`.
std::int64_t json_integer(const nlohmann::ordered_json& json, const std::string& what, std::int64_t low,
                          std::int64_t high);

/// A value as an error shows it: short, in one line, ASCII.
std::string shown(const nlohmann::ordered_json& json);

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

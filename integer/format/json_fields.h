#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"

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

}  // namespace miniqat::integer

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat {

/// Walks over the attributes of an op, once to write them as JSON and once to read them. An attribute struct declares
/// its members to both directions in one function, for example
///
///   struct Conv2dAttributes {
///     std::array<std::int64_t, 2> strides = {1, 1};
///     void visit(AttributeVisitor& visitor) { visitor.field("strides", strides); }
///   };
///
/// A visitor that reads leaves a member alone when the file does not mention it (so defaults live in the struct), and
/// throws Error naming the attribute when the value has the wrong type.
class AttributeVisitor {
 public:
  virtual ~AttributeVisitor() = default;
  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, std::int64_t& value) = 0;
  virtual void field(std::string_view name, double& value) = 0;
  virtual void field(std::string_view name, std::string& value) = 0;
  virtual void field(std::string_view name, std::vector<std::int64_t>& value) = 0;
  virtual void field(std::string_view name, std::array<std::int64_t, 2>& value) = 0;
  virtual void field(std::string_view name, std::array<std::int64_t, 4>& value) = 0;
  /// A number stands for a vector of one element.
  virtual void field(std::string_view name, std::vector<double>& value) = 0;
  /// A list of pairs, as in Pad's paddings.
  virtual void field(std::string_view name, std::vector<std::array<std::int64_t, 2>>& value) = 0;
  /// A nested object, as a Variable's initializer.
  virtual void begin(std::string_view name) = 0;
  virtual void end() = 0;

  /// An enumeration by the names of its values, index = value.
  template <class Enum>
  void choice(std::string_view name, Enum& value, std::span<const std::string_view> names) {
    int index = static_cast<int>(value);
    choice_index(name, index, names);
    value = static_cast<Enum>(index);
  }

 protected:
  virtual void choice_index(std::string_view name, int& index, std::span<const std::string_view> names) = 0;
};

}  // namespace miniqat

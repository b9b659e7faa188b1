#pragma once

#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

namespace miniqat {

/// A part of a text: where the value is, and how to write it. It lives as long as the call that it is made for. A call
/// with parts compiles to few instructions, where a stream for each would make messages a third of the build.
class TextPart {
 public:
  TextPart(const char* text) : value_(text), write_(&write_text) {}
  TextPart(const std::string& text) : value_(&text), write_(&write_string) {}
  TextPart(const std::string_view& text) : value_(&text), write_(&write_view) {}
  /// Numbers, paths and whatever else has an operator<<, in the format of a stream that nobody set up.
  template <class T>
  TextPart(const T& value) : value_(&value), write_(&write_streamed<T>) {}

  void write(std::ostream& stream) const { write_(stream, value_); }

 private:
  using Write = void (*)(std::ostream&, const void*);

  static void write_text(std::ostream& stream, const void* text);
  static void write_string(std::ostream& stream, const void* text);
  static void write_view(std::ostream& stream, const void* text);
  template <class T>
  static void write_streamed(std::ostream& stream, const void* value) {
    stream << *static_cast<const T*>(value);
  }

  const void* value_;
  Write write_;
};

std::string join_parts(std::initializer_list<TextPart> parts);

/// Joins anything that can be streamed into one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
  return join_parts({TextPart(parts)...});
}

}  // namespace miniqat

#pragma once

#include <charconv>
#include <initializer_list>
#include <ostream>
#include <stdexcept>
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

/// The parts in one string.
std::string join_parts(std::initializer_list<TextPart> parts);

/// Joins anything that can be streamed into one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
  return join_parts({TextPart(parts)...});
}

/// One line about a failure, which names the thing (node, file, option) and both sides of a mismatch.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Numbers that a network computed are NaN or infinite: whoever computes the same again meets them again.
class NonFiniteValue : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void throw_error(std::initializer_list<TextPart> parts);

/// Throws Error with the joined parts as its text.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw_error({TextPart(parts)...});
}

/// "batches", "classes", "axes" of "batch", "class", "axis".
std::string plural(std::string_view thing);

/// "1 step", "2 steps". A count may be a text: "0.5".
template <class Count>
std::string counted(const Count& count, std::string_view thing) {
  const std::string text = concat(count);
  return concat(text, " ", text == "1" ? std::string(thing) : plural(thing));
}

/// A number with as few digits as tell it from all others of its type: 1.0000001, where a stream says 1.
template <class Real>
std::string exact(Real value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace miniqat

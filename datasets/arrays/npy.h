#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::datasets {

/// An array as NumPy's .npy format has it (NEP 1, versions 1 to 3), in C order and little-endian or of single bytes.
struct NumpyArray {
  /// 'u' or 'i' (unsigned or signed integers), 'f' (floats), 'b' (bool), 'U' (texts).
  char kind = 'u';
  /// Bytes of one element.
  int item = 1;
  std::vector<std::int64_t> shape;
  /// The elements.
  std::string bytes;

  std::int64_t elements() const;
  /// Element i of integers and bools. Throws Error that names `source` for floats, for texts and for numbers above
  /// 2^63 - 1.
  std::int64_t integer(std::int64_t i, const std::string& source) const;
  /// Element i of texts, as UTF-8. Throws Error that names `source` for numbers and for what no character is.
  std::string text(std::int64_t i, const std::string& source) const;
};

/// "[2, 28, 28]"
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Element i of floats, of `source`. Throws Error for other widths than 32 and 64 bits.
double real_at(const NumpyArray& array, std::int64_t i, const std::string& source);

/// Called for each number of a loop over millions: now and then somebody may want it to end.
void pause_at(std::int64_t i);

/// `bytes` is a whole .npy file; `path` stands in errors. Throws Error in one line: a wrong magic or version, a header
/// that is cut short or none, objects, big-endian or Fortran order, sizes that are not the file's.
NumpyArray parse_npy(std::string bytes, const std::string& path);

/// Throws what parse_npy() would throw for a file of `size` bytes that begins with `head`: all of it, or its header at
/// least.
void check_npy(std::string_view head, std::uint64_t size, const std::string& path);

/// The array `name` of a .npz file, a ZIP of .npy files. Throws Error; an array whose size is not that of its header is
/// not unpacked.
NumpyArray read_npz(const std::filesystem::path& path, const std::string& name);

/// The names of its arrays, without ".npy".
std::vector<std::string> npz_names(const std::filesystem::path& path);

}  // namespace miniqat::datasets

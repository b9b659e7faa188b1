#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <utility>

#include "core/text/error.h"
#include "datasets/pictures/formats.h"
#include "datasets/pictures/orientation.h"
#include "datasets/pictures/picture.h"

namespace miniqat::datasets {
namespace {

/// What libpng's callbacks work on. Errors come back by longjmp, which runs no destructors: nothing in the functions
/// that it leaves may have one, so the texts live here.
struct Source {
  const char* data = nullptr;
  std::size_t left = 0;
  char message[200] = {};
};

void read_bytes(png_structp png, png_bytep target, std::size_t count) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (count > source.left) png_error(png, "it is cut short");
  std::memcpy(target, source.data, count);
  source.data += count;
  source.left -= count;
}

void keep_error(png_structp png, png_const_charp text) {
  auto& source = *static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source.message, text, sizeof source.message - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

/// Whose header comes first in the file.
void require_readable_png(std::string_view bytes, const std::filesystem::path& path) {
  constexpr std::size_t kSizePlace = 16;
  if (bytes.size() < kSizePlace + 8 || bytes.substr(kSizePlace - 4, 4) != "IHDR") return;
  const auto number = [&](std::size_t place) {
    return std::int64_t{png_get_uint_32(reinterpret_cast<png_const_bytep>(bytes.data()) + place)};
  };
  require_readable_size(number(kSizePlace + 4), number(kSizePlace), path);
}

/// A decoder that has read the header of a file.
class PngReader {
 public:
  PngReader(std::string_view bytes, const std::filesystem::path& path) : path_(path) {
    require_readable_png(bytes, path);
    source_.data = bytes.data();
    source_.left = bytes.size();
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, keep_error, ignore_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      fail(path, ": no memory for a PNG decoder");
    }
    if (!read_info()) refuse();
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  PictureHeader header() const {
    const bool grey = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0;
    return {.height = png_get_image_height(png_, info_),
            .width = png_get_image_width(png_, info_),
            .grey = grey,
            .bytes_a_pixel = grey ? 2 : 4};
  }

  /// 8 bits, grey or RGB, and alpha if the file has some kind of it.
  Picture decode() {
    if (!expand()) refuse();
    const PictureHeader head = header();
    Picture picture{
        .height = head.height, .width = head.width, .channels = png_get_channels(png_, info_), .pixels = {}};
    picture.pixels.resize(picture.shape().elements());
    std::vector<png_bytep> rows;
    for (std::int64_t y = 0; y < head.height; ++y)
      rows.push_back(picture.pixels.data() + y * head.width * picture.channels);
    if (!read_rows(rows.data())) refuse();
    return picture;
  }

 private:
  // Each of these is left by longjmp at an error.
  bool read_info() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_user_limits(png_, kLongestSide, kLongestSide);
    // Texts and profiles, of which a small file can hold gigabytes, are left out.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, 1 << 23);
    png_set_read_fn(png_, &source_, read_bytes);
    png_read_info(png_, info_);
    return true;
  }
  bool expand() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  [[noreturn]] void refuse() {
    const std::string why = source_.message;
    png_destroy_read_struct(&png_, &info_, nullptr);
    fail(path_, " is a damaged PNG: ", why);
  }

  const std::filesystem::path& path_;
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

PictureHeader png_header(std::string_view bytes, const std::filesystem::path& path) {
  PictureHeader header = PngReader(bytes, path).header();
  const int orientation = noted_orientation(bytes);
  if (swaps_sides(orientation)) std::swap(header.height, header.width);
  if (is_turned(orientation)) header.bytes_a_pixel *= 2;
  return header;
}

Picture decode_png(std::string_view bytes, const std::filesystem::path& path) {
  Picture picture = PngReader(bytes, path).decode();
  put_on_black(picture);
  return upright(std::move(picture), noted_orientation(bytes));
}

}  // namespace miniqat::datasets

#include "datasets/pictures/formats.h"

#include <string>
#include <vector>

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::datasets {
namespace {

struct Format {
  const char* name;
  bool (*is)(std::string_view bytes);
  PictureHeader (*header)(std::string_view bytes, const std::filesystem::path& path);
  Picture (*decode)(std::string_view bytes, const std::filesystem::path& path);
};

constexpr Format kFormats[] = {{"JPEG", is_jpeg, jpeg_header, decode_jpeg},
                               {"PNG", is_png, png_header, decode_png},
                               {"BMP", is_bmp, bmp_header, decode_bmp},
                               {"WebP", is_webp, webp_header, decode_webp}};

/// Pictures of other programs, by bytes at a place of the file.
struct UnreadFormat {
  const char* name;
  std::size_t place;
  std::string_view bytes;
};
constexpr UnreadFormat kUnreadFormats[] = {{"a GIF", 0, "GIF8"},         {"a TIFF", 0, {"II*\0", 4}},
                                           {"a TIFF", 0, {"MM\0*", 4}},  {"an AVIF", 4, "ftypavif"},
                                           {"a HEIC", 4, "ftyphei"},     {"a HEIC", 4, "ftypmif1"},
                                           {"a JPEG 2000", 4, "jP  \r"}, {"a JPEG XL", 4, {"JXL \r", 5}}};

std::string names_of_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return joined(names);
}

const Format& format_of(std::string_view bytes, const std::filesystem::path& path) {
  for (const Format& format : kFormats)
    if (format.is(bytes)) return format;
  if (bytes.empty()) fail(path, " is empty; a picture was expected");
  for (const UnreadFormat& format : kUnreadFormats)
    if (bytes.size() >= format.place && bytes.substr(format.place).starts_with(format.bytes))
      fail(path, " is ", format.name, " picture, which cannot be read; convert it to PNG");
  fail(path, " is no picture that can be read: ", names_of_formats(), " can");
}

PictureHeader checked_header(const Format& format, std::string_view bytes, const std::filesystem::path& path) {
  const PictureHeader header = format.header(bytes, path);
  if (header.height < 1 || header.width < 1)
    fail(path, " is a damaged ", format.name, ": it has ", header.width, " x ", header.height, " pixels");
  require_readable_size(header.height, header.width, path);
  return header;
}

}  // namespace

PictureHeader picture_header(std::string_view bytes, const std::filesystem::path& path) {
  return checked_header(format_of(bytes, path), bytes, path);
}

Picture decode_picture(std::string_view bytes, Colour colour, const std::filesystem::path& path) {
  const Format& format = format_of(bytes, path);
  checked_header(format, bytes, path);
  Picture picture = format.decode(bytes, path);
  set_colour(picture, colour);
  return picture;
}

}  // namespace miniqat::datasets

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>

#include "core/text/error.h"
#include "datasets/pictures/formats.h"
#include "datasets/pictures/picture.h"

namespace miniqat::datasets {
namespace {

constexpr std::size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;

/// Values of biCompression: no masks, those of the colours, and one for alpha as well.
constexpr std::size_t kPlain = 0, kMasks = 3, kAlphaMasks = 6;

/// The bits of one colour in a pixel of 16 or 32 bits.
struct ColourMask {
  std::uint32_t bits = 0;

  /// 0..255, whatever the mask's width; 0 without a mask.
  std::uint8_t byte_of(std::uint32_t pixel) const {
    if (bits == 0) return 0;
    const std::uint64_t value = (pixel & bits) >> std::countr_zero(bits), most = bits >> std::countr_zero(bits);
    return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
  }
};

using Rgb = std::array<std::uint8_t, 3>;

/// A file whose header was read and makes sense; its rows may still be missing.
class BmpReader {
 public:
  BmpReader(std::string_view bytes, const std::filesystem::path& path) : bytes_(bytes), path_(path) {
    const std::size_t header = number(kFileHeader, 4);
    if (header == kCoreHeader)
      read_core_header();
    else if (header >= kInfoHeader && header <= 256 && header != 64)
      read_info_header();
    else
      fail(path_, " is a BMP with a header of ", header, " bytes, which is not one of Windows; convert it to PNG");
    constexpr std::array<int, 6> kWidths = {1, 4, 8, 16, 24, 32};
    if (std::ranges::find(kWidths, bits_) == kWidths.end()) damaged(concat("it has ", bits_, " bits a pixel"));
    std::size_t end = kFileHeader + header;
    if (bits_ > 8)
      end = read_masks(header, end);
    else
      end = read_palette(header, end);
    first_row_ = number(10, 4);
    if (first_row_ < end) damaged("its pixels begin inside of its header");
  }

  PictureHeader header() const {
    return {
        .height = height_, .width = width_, .grey = bits_ <= 8 && std::ranges::all_of(palette_, [](const Rgb& colour) {
                                                      return colour[0] == colour[1] && colour[1] == colour[2];
                                                    })};
  }

  Picture decode() const {
    const bool has_alpha = masks_[3].bits != 0;
    Picture picture{.height = height_,
                    .width = width_,
                    .channels = header().grey ? 1
                                : has_alpha   ? 4
                                              : 3,
                    .pixels = {}};
    // Rows are filled up to whole words of 32 bits.
    const auto stride = static_cast<std::size_t>((width_ * bits_ + 31) / 32 * 4);
    const auto rows = static_cast<std::size_t>(height_);
    // The last row in the file may lack what fills it up.
    const std::size_t needed = stride * (rows - 1) + static_cast<std::size_t>((width_ * bits_ + 7) / 8);
    if (first_row_ > bytes_.size() || needed > bytes_.size() - first_row_) damaged("it is cut short");
    picture.pixels.resize(picture.shape().elements());
    auto* to = picture.pixels.data();
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::int64_t row = top_down_ ? y : height_ - 1 - y;
      const std::string_view from = bytes_.substr(first_row_ + static_cast<std::size_t>(row) * stride);
      to = bits_ <= 8 ? put_palette_row(from, picture.channels, to) : put_colour_row(from, has_alpha, to);
    }
    if (has_alpha) settle_alpha(picture);
    return picture;
  }

 private:
  void read_core_header() {
    width_ = number(kFileHeader + 4, 2);
    height_ = number(kFileHeader + 6, 2);
    bits_ = static_cast<int>(number(kFileHeader + 10, 2));
  }

  void read_info_header() {
    width_ = static_cast<std::int32_t>(number(kFileHeader + 4, 4));
    height_ = static_cast<std::int32_t>(number(kFileHeader + 8, 4));
    top_down_ = height_ < 0;
    height_ = std::abs(height_);
    bits_ = static_cast<int>(number(kFileHeader + 14, 2));
    kind_ = number(kFileHeader + 16, 4);
    constexpr std::array<const char*, 6> kInside = {"", "run lengths", "run lengths", "", "a JPEG", "a PNG"};
    if (kind_ == kPlain) return;
    if (kind_ == kMasks || kind_ == kAlphaMasks) {
      if (bits_ != 16 && bits_ != 32) damaged(concat("it has masks for ", bits_, " bits a pixel"));
      return;
    }
    if (kind_ >= kInside.size()) damaged(concat("it has the compression ", kind_));
    fail(path_, " is a compressed BMP, with ", kInside[kind_], " inside; convert it to PNG");
  }

  /// Returns where they end.
  std::size_t read_masks(std::size_t header, std::size_t end) {
    constexpr std::size_t kMasksPlace = kFileHeader + kInfoHeader;
    if (bits_ == 16) masks_ = {{{0x7c00}, {0x03e0}, {0x001f}, {0}}};
    if (bits_ >= 24) masks_ = {{{0xff0000}, {0x00ff00}, {0x0000ff}, {0}}};
    if (kind_ == kPlain) return end;
    const bool has_alpha = kind_ == kAlphaMasks || header >= kInfoHeader + 16;
    for (std::size_t i = 0; i < 4; ++i)
      masks_[i].bits = i < 3 || has_alpha ? static_cast<std::uint32_t>(number(kMasksPlace + 4 * i, 4)) : 0;
    for (const ColourMask& mask : masks_)
      if (const std::uint32_t run = mask.bits >> (mask.bits == 0 ? 0 : std::countr_zero(mask.bits));
          (run & (run + 1)) != 0)
        damaged("the bits of a mask are not beside each other");
    // Short headers have them behind the header.
    return std::max(end, kMasksPlace + (has_alpha ? 16 : 12));
  }

  /// Returns where it ends.
  std::size_t read_palette(std::size_t header, std::size_t end) {
    const std::size_t entry = header == kCoreHeader ? 3 : 4, most = std::size_t{1} << bits_;
    std::size_t count = header == kCoreHeader ? 0 : number(kFileHeader + 32, 4);
    if (count == 0) count = most;
    if (count > most) damaged(concat("its palette has ", count, " colours"));
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = end + entry * i;
      palette_.push_back({byte(place + 2), byte(place + 1), byte(place)});
    }
    return end + entry * count;
  }

  std::uint8_t* put_palette_row(std::string_view row, int channels, std::uint8_t* to) const {
    for (std::int64_t x = 0; x < width_; ++x) {
      const auto place = static_cast<std::size_t>(x * bits_);
      const unsigned index =
          static_cast<unsigned char>(row[place / 8]) >> (8 - static_cast<unsigned>(bits_) - place % 8) &
          ((1U << bits_) - 1);
      if (index >= palette_.size()) damaged("a pixel has a colour that its palette has not");
      to = std::copy_n(palette_[index].begin(), channels, to);
    }
    return to;
  }

  std::uint8_t* put_colour_row(std::string_view row, bool has_alpha, std::uint8_t* to) const {
    const auto size = static_cast<std::size_t>(bits_ / 8);
    for (std::int64_t x = 0; x < width_; ++x) {
      std::uint32_t pixel = 0;
      for (std::size_t i = size; i-- > 0;)
        pixel = pixel << 8 | static_cast<unsigned char>(row[static_cast<std::size_t>(x) * size + i]);
      for (int c = 0; c < (has_alpha ? 4 : 3); ++c) *to++ = masks_[static_cast<std::size_t>(c)].byte_of(pixel);
    }
    return to;
  }

  /// Programs that know nothing of alpha write 0 for it.
  static void settle_alpha(Picture& picture) {
    bool seen = false;
    for (std::size_t i = 3; i < picture.pixels.size(); i += 4) seen = seen || picture.pixels[i] != 0;
    if (!seen)
      for (std::size_t i = 3; i < picture.pixels.size(); i += 4) picture.pixels[i] = 255;
    put_on_black(picture);
  }

  std::uint8_t byte(std::size_t place) const {
    if (place >= bytes_.size()) damaged("it is cut short");
    return static_cast<std::uint8_t>(bytes_[place]);
  }
  /// Little-endian.
  std::size_t number(std::size_t place, std::size_t size) const {
    std::size_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | byte(place + i);
    return value;
  }

  [[noreturn]] void damaged(const std::string& why) const { fail(path_, " is a damaged BMP: ", why); }

  std::string_view bytes_;
  const std::filesystem::path& path_;
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
  bool top_down_ = false;
  int bits_ = 0;
  std::size_t kind_ = kPlain;
  std::size_t first_row_ = 0;
  std::vector<Rgb> palette_;
  /// Red, green, blue, alpha.
  std::array<ColourMask, 4> masks_ = {};
};

}  // namespace

bool is_bmp(std::string_view bytes) { return bytes.starts_with("BM"); }

PictureHeader bmp_header(std::string_view bytes, const std::filesystem::path& path) {
  return BmpReader(bytes, path).header();
}

Picture decode_bmp(std::string_view bytes, const std::filesystem::path& path) {
  return BmpReader(bytes, path).decode();
}

}  // namespace miniqat::datasets

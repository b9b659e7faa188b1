#include "datasets/arrays/npy.h"

#include <zip.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "core/platform/interruption.h"
#include "core/tensors/shape.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/text/utf8.h"
#include "datasets/data_dir.h"

namespace miniqat::datasets {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// The header: a Python dict of three keys, as NumPy itself writes it.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  /// The text behind `'key':`, without spaces before it.
  std::string_view value(std::string_view key) const {
    for (const char mark : {'\'', '"'}) {
      const std::string quoted = concat(mark, key, mark);
      const std::size_t place = text_.find(quoted);
      if (place == std::string_view::npos) continue;
      std::string_view rest = after_spaces(text_.substr(place + quoted.size()));
      if (rest.starts_with(':')) return after_spaces(rest.substr(1));
    }
    fail(path_, " is damaged: its NumPy header has no ", quote(key));
  }

  std::string text(std::string_view key) const {
    const std::string_view found = value(key);
    const std::size_t end = found.empty() ? std::string_view::npos : found.find(found[0], 1);
    if (end == std::string_view::npos || (found[0] != '\'' && found[0] != '"')) damaged(key);
    return std::string(found.substr(1, end - 1));
  }

  std::vector<std::int64_t> shape() const {
    std::string_view rest = value("shape");
    if (!rest.starts_with('(')) damaged("shape");
    std::vector<std::int64_t> extents;
    for (rest = after_spaces(rest.substr(1)); !rest.starts_with(')'); rest = after_spaces(rest)) {
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
      if (error != std::errc() || extent < 0) damaged("shape");
      extents.push_back(extent);
      rest = after_spaces(rest.substr(end - rest.data()));
      if (rest.starts_with(','))
        rest.remove_prefix(1);
      else if (!rest.starts_with(')'))
        damaged("shape");
    }
    return extents;
  }

 private:
  static std::string_view after_spaces(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    return first == std::string_view::npos ? std::string_view() : text.substr(first);
  }
  [[noreturn]] void damaged(std::string_view key) const {
    fail(path_, " is damaged: ", quote(key), " in its NumPy header cannot be read");
  }

  std::string_view text_;
  const std::string& path_;
};

/// Where the elements begin, and the header before them.
struct NpyParts {
  std::size_t elements = 0;
  std::string_view header;
};

NpyParts npy_parts(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with(kMagic)) fail(path, " is not a NumPy array: it does not begin with \\x93NUMPY");
  // Version, then the header's length in 2 bytes, or in 4 since version 2.
  const std::size_t versions = kMagic.size() + 2;
  const int version = bytes.size() > kMagic.size() ? static_cast<std::uint8_t>(bytes[kMagic.size()]) : 0;
  const std::size_t wide = version == 1 ? 2 : 4;
  if (version < 1 || version > 3 || bytes.size() < versions + wide)
    fail(path, " is cut short, or of a version of NumPy's format that is not known");
  std::size_t length = 0;
  for (std::size_t i = wide; i-- > 0;) length = length << 8 | static_cast<std::uint8_t>(bytes[versions + i]);
  const std::size_t begin = versions + wide;
  if (length > bytes.size() - begin) fail(path, " is cut short: its NumPy header alone has ", counted(length, "byte"));
  return {.elements = begin + length, .header = bytes.substr(begin, length)};
}

/// "<U7": 7 characters of 4 bytes.
bool read_text_type(NumpyArray& array, std::string_view type) {
  constexpr int kMost = 1000;
  if (!type.starts_with("<U")) return false;
  int characters = 0;
  const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), characters);
  if (error != std::errc() || end != type.data() + type.size() || characters < 1 || characters > kMost) return false;
  array.kind = 'U';
  array.item = 4 * characters;
  return true;
}

void read_type(NumpyArray& array, const std::string& type, const std::string& path) {
  if (read_text_type(array, type)) return;
  // (strchr() would find the zero at its end, too.)
  const auto is_one_of = [&](std::size_t i, std::string_view letters) { return letters.find(type[i]) != letters.npos; };
  const bool known = type.size() == 3 && is_one_of(0, "<|") && is_one_of(1, "uifb") && is_one_of(2, "1248");
  if (!known || ((type[0] == '|' || type[1] == 'b') && type[2] != '1') || (type[1] == 'f' && type[2] == '1'))
    fail(path, " holds elements of type ", quote(type), "; integers, floats and bools in little-endian can be read");
  array.kind = type[1];
  array.item = type[2] - '0';
}

/// What a header says.
struct NpyHead {
  /// Without its elements.
  NumpyArray array;
  /// Where the elements begin, and how many bytes they have.
  std::size_t begin = 0;
  std::uint64_t wanted = 0;
};

NpyHead read_head(std::string_view bytes, const std::string& path) {
  const NpyParts parts = npy_parts(bytes, path);
  const Header header(parts.header, path);
  NpyHead head{.array = {}, .begin = parts.elements};
  read_type(head.array, header.text("descr"), path);
  if (!header.value("fortran_order").starts_with("False"))
    fail(path, " is in Fortran order; save it with numpy.ascontiguousarray()");
  head.array.shape = header.shape();
  std::int64_t wanted = head.array.item;
  for (const std::int64_t extent : head.array.shape) {
    if (extent != 0 && wanted > Shape::kMaxElements * 8 / extent)
      fail(path, ": an array of shape ", "(", joined(head.array.shape), ")", " is absurd");
    wanted *= extent;
  }
  head.wanted = static_cast<std::uint64_t>(wanted);
  return head;
}

void require_size(const NpyHead& head, std::uint64_t size, const std::string& path) {
  const std::uint64_t held = size - head.begin;
  if (held != head.wanted)
    fail(path, " has ", counted(held, "byte"), " of elements; its shape ", "(", joined(head.array.shape), ")",
         " needs ", head.wanted);
}

/// The most bytes of one array, so that a small file cannot ask for any amount of memory.
constexpr zip_uint64_t kMostArrayBytes = zip_uint64_t{1} << 32;
constexpr std::string_view kEnding = ".npy";

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;
using Entry = std::unique_ptr<zip_file_t, int (*)(zip_file_t*)>;

Archive open_zip(const std::filesystem::path& path) {
  require_data_file(path);
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code), zip_discard);
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail("cannot read ", path, ": ", text);
  }
  return archive;
}

}  // namespace

std::int64_t NumpyArray::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::int64_t NumpyArray::integer(std::int64_t i, const std::string& source) const {
  if (kind == 'f' || kind == 'U') fail(source, " holds ", kind == 'f' ? "floats" : "texts", ", no integers");
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + i * item, item);
  const int unused = 64 - 8 * item;
  if (kind == 'i') return static_cast<std::int64_t>(value << unused) >> unused;
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail(source, " holds ", value, " at element ", i, "; integers must be below 2^63");
  return static_cast<std::int64_t>(value);
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return concat("[", joined(shape), "]"); }

double real_at(const NumpyArray& array, std::int64_t i, const std::string& source) {
  const char* place = array.bytes.data() + i * array.item;
  float narrow = 0;
  double wide = 0;
  switch (array.item) {
    case 4:
      std::memcpy(&narrow, place, sizeof narrow);
      return narrow;
    case 8:
      std::memcpy(&wide, place, sizeof wide);
      return wide;
    default:
      fail(source, " holds floats of ", 8 * array.item, " bits; 32 and 64 can be read");
  }
}

void pause_at(std::int64_t i) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  if (i % kPiece == 0) interruption_point();
}

void check_npy(std::string_view head, std::uint64_t size, const std::string& path) {
  require_size(read_head(head, path), size, path);
}

std::string NumpyArray::text(std::int64_t i, const std::string& source) const {
  if (kind != 'U') fail(source, " holds numbers, no texts");
  std::string text;
  for (int place = 0; place < item; place += 4) {
    std::uint32_t code = 0;
    std::memcpy(&code, bytes.data() + i * item + place, sizeof code);
    if (code == 0) break;
    if (code > 0x10ffff || utf8::in(code, 0xd800, 0xdfff)) fail(source, ": text ", i, " is not Unicode");
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const std::uint32_t mark = more == 0 ? 0 : 0xff00U >> (more + 1) & 0xffU;
    text += static_cast<char>(mark | code >> 6 * more);
    for (int k = more; k-- > 0;) text += static_cast<char>(0x80U | (code >> 6 * k & 0x3fU));
  }
  return text;
}

NumpyArray parse_npy(std::string bytes, const std::string& path) {
  NpyHead head = read_head(bytes, path);
  require_size(head, bytes.size(), path);
  bytes.erase(0, head.begin);
  head.array.bytes = std::move(bytes);
  return head.array;
}

std::vector<std::string> npz_names(const std::filesystem::path& path) {
  const Archive archive = open_zip(path);
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive.get(), i, 0);
    if (name == nullptr || !std::string_view(name).ends_with(kEnding)) continue;
    names.push_back(std::string(name).substr(0, std::string_view(name).size() - kEnding.size()));
  }
  return names;
}

NumpyArray read_npz(const std::filesystem::path& path, const std::string& name) {
  const Archive archive = open_zip(path);
  const std::string member = concat(name, kEnding), place = concat(path, " (", printable(member), ")");
  zip_stat_t about;
  if (zip_stat(archive.get(), member.c_str(), 0, &about) != 0 || (about.valid & ZIP_STAT_SIZE) == 0)
    fail(path, " has no array ", quote(name));
  if ((about.valid & ZIP_STAT_COMP_METHOD) == 0 ||
      (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE))
    fail(place, " is compressed in a way that NumPy does not use; save it with numpy.savez_compressed()");
  if (about.size > kMostArrayBytes)
    fail(place, " has ", about.size, " bytes, more than the limit of ", kMostArrayBytes);
  const Entry entry(zip_fopen(archive.get(), member.c_str(), 0), zip_fclose);
  if (entry == nullptr) fail("cannot read ", place, ": ", zip_strerror(archive.get()));
  // Grows with what is really there.
  std::string bytes, block(std::size_t{1} << 20, '\0');
  for (;;) {
    interruption_point();
    const zip_int64_t got = zip_fread(entry.get(), block.data(), block.size());
    if (got < 0) fail("cannot read ", place, ": ", zip_file_strerror(entry.get()));
    if (got == 0) break;
    const std::size_t before = bytes.size();
    bytes.append(block, 0, got);
    // Longer than the header of any array that pictures may be.
    constexpr std::size_t kHead = std::size_t{1} << 16;
    if (before < kHead && (bytes.size() >= kHead || bytes.size() == about.size)) check_npy(bytes, about.size, place);
    if (bytes.size() > about.size) fail(place, " is longer than its archive says");
  }
  return parse_npy(std::move(bytes), place);
}

}  // namespace miniqat::datasets

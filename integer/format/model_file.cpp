#include "integer/format/model_file.h"

#include <zlib.h>

#include <bit>
#include <cstring>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "integer/format/model_json.h"

namespace miniqat::integer {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are in the file");

constexpr std::string_view kMagic = "miniqat\n";
constexpr std::uint32_t kVersion = 2;
/// Magic, version, bytes of the header, bytes of the blob.
constexpr std::size_t kPrefixBytes = 8 + 4 + 4 + 8;
constexpr std::size_t kChecksumBytes = 4;
/// A thousand operations take less than 1 MB; parsed, a text takes many times its size.
constexpr std::uint32_t kMaxHeaderBytes = 1 << 26;

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <class T>
void append(std::string& bytes, const T& number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Takes a number off the front.
template <class T>
T take(std::string_view& bytes) {
  T number;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

std::string unsigned_type(int bits) { return concat("uint", bits); }

/// Puts lists one behind another into a blob.
class BlobWriter final : public ListWriter {
 public:
  Json unsigned_list(std::span<const std::uint8_t> values, int bits) override {
    return append(pack(values, bits), unsigned_type(bits), values.size());
  }
  Json int32_list(std::span<const std::int32_t> values) override { return append(values, "int32", values.size()); }
  Json float32_list(std::span<const float> values) override { return append(values, "float32", values.size()); }

  const std::string& blob() const { return blob_; }

 private:
  Json append(const auto& values, const std::string& type, std::size_t count) {
    const std::size_t offset = blob_.size();
    const std::span bytes = std::as_bytes(std::span(values));
    blob_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {{"type", type}, {"offset", offset}, {"count", count}};
  }

  std::string blob_;
};

/// Takes them out again, and sees that they cover all of it in their order.
class BlobReader final : public ListReader {
 public:
  explicit BlobReader(std::string_view blob) : blob_(blob) {}

  std::vector<std::uint8_t> unsigned_list(const Json& list, int bits) override {
    const auto [bytes, count] = take(list, unsigned_type(bits), bits);
    const auto used = static_cast<int>(count * bits % 8);
    if (used != 0 && static_cast<unsigned char>(bytes.back()) >> used != 0)
      fail("the bits behind the last number are not 0");
    return unpack({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, count, bits);
  }
  std::vector<std::int32_t> int32_list(const Json& list) override { return numbers<std::int32_t>(list, "int32"); }
  std::vector<float> float32_list(const Json& list) override { return numbers<float>(list, "float32"); }

  void require_end() const {
    if (position_ != blob_.size()) fail("the lists end at byte ", position_, " of the blob, which has ", blob_.size());
  }

 private:
  struct Place {
    std::string_view bytes;
    std::int64_t count;
  };

  Place take(const Json& list, const std::string& type, int bits) {
    JsonFields fields(list);
    if (const std::string given = fields.text("type"); given != type)
      fail("must be of type ", type, ", is ", shown(Json(given)));
    const auto offset = static_cast<std::size_t>(fields.integer("offset", 0, INT64_MAX));
    if (offset != position_) fail("begins at byte ", offset, " of the blob, not at ", position_, ", the next one");
    const std::size_t left = blob_.size() - position_;
    const std::int64_t count = fields.integer("count", 0, INT64_MAX);
    if (static_cast<std::size_t>(count) > left * 8 / bits)
      fail(count, " numbers of ", bits, " bits exceed the ", left, " bytes left in the blob");
    fields.done();
    const auto size = static_cast<std::size_t>(packed_size(count, bits));
    position_ += size;
    return {.bytes = blob_.substr(offset, size), .count = count};
  }

  template <class T>
  std::vector<T> numbers(const Json& list, const std::string& type) {
    const auto [bytes, count] = take(list, type, 8 * sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::string_view blob_;
  std::size_t position_ = 0;
};

Json parse_header(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Error& error) {
    fail("its header: ", error.what());
  }
}

Model parse(std::string_view file) {
  const std::string_view magic = file.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size())) fail("is not a model.miniqat file: it does not begin with \"miniqat\"");
  if (file.size() < kPrefixBytes + kChecksumBytes)
    fail("is cut short: it has ", counted(file.size(), "byte"), ", the least is ", kPrefixBytes + kChecksumBytes);
  std::string_view rest = file.substr(kMagic.size());
  const auto version = take<std::uint32_t>(rest);
  if (version != kVersion) fail("has version ", version, "; this program reads version ", kVersion);
  const auto header_bytes = take<std::uint32_t>(rest);
  const auto blob_bytes = take<std::uint64_t>(rest);
  if (header_bytes > kMaxHeaderBytes)
    fail("its header of ", header_bytes, " bytes exceeds the limit of ", kMaxHeaderBytes);
  const std::size_t room = rest.size() - kChecksumBytes;
  if (header_bytes > room || blob_bytes > room - header_bytes)
    fail("is cut short: a header of ", header_bytes, " bytes, a blob of ", blob_bytes, " and the checksum, but only ",
         rest.size(), " bytes follow");
  if (header_bytes + blob_bytes != room)
    fail("has ", counted(room - header_bytes - blob_bytes, "byte"), " behind its end");
  std::string_view end = file.substr(file.size() - kChecksumBytes);
  if (take<std::uint32_t>(end) != checksum_of(file.substr(0, file.size() - kChecksumBytes)))
    fail("is damaged: its bytes do not have the checksum that it holds");

  const Json header = parse_header(rest.substr(0, header_bytes));
  BlobReader blob(rest.substr(header_bytes, blob_bytes));
  Model model = model_from_json(header, blob);
  blob.require_end();
  model.check();
  return model;
}

std::string dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    fail("the model's name, or that of a class, is not valid UTF-8");
  }
}

}  // namespace

std::string to_bytes(const Model& model) {
  model.check();
  BlobWriter blob;
  const std::string header = dump(model_to_json(model, blob));
  if (header.size() > kMaxHeaderBytes)
    fail("integer model: its description would take ", header.size(), " bytes, more than ", kMaxHeaderBytes);
  std::string bytes(kMagic);
  append(bytes, kVersion);
  append(bytes, static_cast<std::uint32_t>(header.size()));
  append(bytes, std::uint64_t{blob.blob().size()});
  bytes += header;
  bytes += blob.blob();
  append(bytes, checksum_of(bytes));
  return bytes;
}

Model from_bytes(std::string_view bytes, const std::string& source) {
  try {
    return parse(bytes);
  } catch (const Error& error) {
    fail(source, ": ", error.what());
  }
}

Model read_model(const std::filesystem::path& path) { return from_bytes(read_large_file(path), path.string()); }

}  // namespace miniqat::integer

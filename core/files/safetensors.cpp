#include "core/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/files/files.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

using Header = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "elements are copied as they are in the file");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
/// Bytes of a tensor that take a moment to copy.
constexpr std::size_t kLarge = std::size_t{1} << 24;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::pair<std::string_view, DType>, 6> kDTypes = {{{"F32", DType::kFloat32},
                                                                        {"F64", DType::kFloat64},
                                                                        {"I64", DType::kInt64},
                                                                        {"I32", DType::kInt32},
                                                                        {"I8", DType::kInt8},
                                                                        {"U8", DType::kUInt8}}};

/// Where a tensor's elements lie, relative to the first byte after the header.
struct Entry {
  std::string name;
  TensorSpec spec;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Header parse_header(std::string_view text) {
  try {
    return Header(parse_json(text));
  } catch (const Error& error) {
    fail("the JSON header is wrong: ", error.what());
  }
}

std::map<std::string, std::string> parse_metadata(const Header& json) {
  std::map<std::string, std::string> metadata;
  if (!json.is_object()) fail("__metadata__ must be an object of strings");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) fail("__metadata__ ", quote(key), " must be a string");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

DType parse_dtype(const Header& json) {
  for (const auto& [name, dtype] : kDTypes)
    if (json == name) return dtype;
  fail("dtype must be one of F32 F64 I64 I32 I8 U8, is ", shown(json));
}

/// Whole numbers from 0 to 2^63-1.
std::vector<std::int64_t> parse_numbers(const Header& json, std::string_view what) {
  std::vector<std::int64_t> numbers;
  if (!json.is_array()) fail(what, " must be a list of whole numbers");
  for (const Header& number : json) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX)
      fail(what, " must hold whole numbers from 0 to 2^63-1, holds ", shown(number));
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

/// Checks everything about a tensor that can be checked without the others.
Entry parse_entry(const std::string& name, const Header& json, std::uint64_t data_bytes) {
  if (!json.is_object()) fail("must be an object with dtype, shape and data_offsets");
  for (const auto& [key, value] : json.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets") fail("has the unknown key ", quote(key));
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!json.contains(key)) fail("lacks ", key);

  const Shape shape(std::span<const std::int64_t>(parse_numbers(json["shape"], "shape")));
  const std::vector<std::int64_t> offsets = parse_numbers(json["data_offsets"], "data_offsets");
  if (offsets.size() != 2) fail("data_offsets must be two numbers, are ", offsets.size());
  const auto begin = static_cast<std::uint64_t>(offsets[0]);
  const auto end = static_cast<std::uint64_t>(offsets[1]);
  if (begin > end) fail("data_offsets end before they begin: ", begin, " to ", end);
  if (end > data_bytes)
    fail("data_offsets ", begin, " to ", end, " leave the file, which has ", counted(data_bytes, "byte"), " of data");
  Entry entry = {name, {shape, parse_dtype(json["dtype"])}, begin, end};
  if (end - begin != entry.spec.bytes())
    fail("data_offsets span ", counted(end - begin, "byte"), ", but ", name_of(entry.spec.dtype), " ", shape, " takes ",
         entry.spec.bytes());
  return entry;
}

/// Throws unless the entries, put in the order of their data, cover all of it exactly once.
void require_exact_cover(std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t covered = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin < covered) fail("tensors ", quote(previous->name), " and ", quote(entry.name), " overlap");
    if (entry.begin > covered)
      fail("bytes ", covered, " to ", entry.begin, " before tensor ", quote(entry.name), " belong to no tensor");
    covered = entry.end;
    previous = &entry;
  }
  if (covered != data_bytes)
    fail("the tensors end at byte ", covered, " of the data, the file has ", data_bytes, " bytes of it");
}

Safetensors parse(std::string_view file) {
  if (file.size() < kLengthBytes)
    fail("is cut short: ", counted(file.size(), "byte"), ", the header length alone takes 8");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  file.remove_prefix(kLengthBytes);
  if (header_bytes > kMaxHeaderBytes)
    fail("the header length ", header_bytes, " exceeds the limit of ", kMaxHeaderBytes, ": not a .safetensors file?");
  if (header_bytes > file.size())
    fail("is cut short: the header takes ", header_bytes, " bytes, only ", file.size(), " follow");
  const Header header = parse_header(file.substr(0, header_bytes));
  const std::string_view data = file.substr(header_bytes);
  if (!header.is_object()) fail("the header must be a JSON object");

  Safetensors content;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      content.metadata = parse_metadata(json);
      continue;
    }
    try {
      entries.push_back(parse_entry(name, json, data.size()));
    } catch (const Error& error) {
      fail("tensor ", quote(name), ": ", error.what());
    }
  }
  require_exact_cover(entries, data.size());
  for (const Entry& entry : entries) {
    if (entry.spec.bytes() >= kLarge) interruption_point();
    Tensor tensor(entry.spec);
    if (entry.end > entry.begin) std::memcpy(tensor.raw(), data.data() + entry.begin, entry.end - entry.begin);
    content.tensors.emplace(entry.name, tensor);
  }
  return content;
}

std::string_view dtype_name(DType dtype) {
  return std::ranges::find(kDTypes, dtype, &std::pair<std::string_view, DType>::second)->first;
}

std::string serialise(const Safetensors& content) {
  Header header = Header::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    if (name == kMetadata) fail("a tensor must not be called ", kMetadata);
    if (!tensor.defined()) fail("tensor ", quote(name), " holds nothing");
    const std::uint64_t end = offset + tensor.bytes();
    header[name] = {
        {"dtype", dtype_name(tensor.dtype())}, {"shape", tensor.shape().to_vector()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Header::type_error&) {
    fail("a name or metadata text is not valid UTF-8");
  }
  // Padded so that the data begins at a multiple of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = text.size();
  if (header_bytes > kMaxHeaderBytes) fail("the header would take ", header_bytes, " bytes, more than readers accept");

  std::string file(kLengthBytes, '\0');
  std::memcpy(file.data(), &header_bytes, kLengthBytes);
  file.reserve(kLengthBytes + header_bytes + offset);
  file += text;
  for (const auto& [name, tensor] : content.tensors)
    if (tensor.bytes() > 0) file.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  return file;
}

template <class T>
void require_finite(const Tensor& tensor, const std::string& name, const std::string& source) {
  const std::span<const T> values = tensor.values<T>();
  const auto bad = std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
  if (bad != values.end())
    fail(source, ": tensor ", quote(name), " ", tensor.shape(), " holds ", *bad, " at element ", bad - values.begin());
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
  const std::string file = read_large_file(path);
  try {
    return parse(file);
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  std::string file;
  try {
    file = serialise(content);
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
  write_file_atomically(path, file);
}

void require_finite(const NamedTensors& tensors, const std::string& source) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype() == DType::kFloat32) require_finite<float>(tensor, name, source);
    if (tensor.dtype() == DType::kFloat64) require_finite<double>(tensor, name, source);
  }
}

}  // namespace miniqat

#include "datasets/idx.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "datasets/data_dir.h"
#include "datasets/gzip.h"

namespace miniqat::datasets {

namespace {

constexpr std::uint32_t kImageMagic = 2051;
constexpr std::uint32_t kLabelMagic = 2049;

struct IdxFile {
  /// Header and elements.
  std::string bytes{};
  std::size_t header_bytes = 0;
  std::vector<std::int64_t> extents{};

  const std::uint8_t* elements() const { return reinterpret_cast<const std::uint8_t*>(bytes.data()) + header_bytes; }
};

std::uint32_t big_endian(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[offset + i]);
  return value;
}

std::string joined(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += concat(text.empty() ? "" : "x", extent);
  return text;
}

std::string_view kind(std::uint32_t magic) { return magic == kImageMagic ? "image" : "label"; }

void check_magic(const std::filesystem::path& path, std::string_view head, std::uint32_t magic,
                 std::size_t header_bytes) {
  if (head.empty()) fail(path, " is empty; an IDX ", kind(magic), " file was expected");
  const std::uint32_t found = head.size() < 4 ? magic : big_endian(head, 0);
  if (found != magic) {
    const bool swapped = found == kImageMagic || found == kLabelMagic;
    fail(path, " has the magic number ", found, swapped ? concat(" of IDX ", kind(found), "s") : "", "; IDX ",
         kind(magic), "s have ", magic);
  }
  if (head.size() < header_bytes)
    fail(path, " is cut short: ", head.size(), " bytes, an IDX ", kind(magic), " header alone has ", header_bytes);
}

/// How many elements the header announces; throws when that is none or more than any tensor may have.
std::size_t announced_elements(const std::filesystem::path& path, const std::vector<std::int64_t>& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) fail(path, " holds nothing: its header announces ", joined(extents), " elements");
    if (extent > Shape::kMaxElements / elements)
      fail(path, " has an absurd header: ", joined(extents), " elements, at most ", Shape::kMaxElements,
           " are possible");
    elements *= extent;
  }
  return static_cast<std::size_t>(elements);
}

IdxFile read_idx(const std::filesystem::path& path, std::uint32_t magic, std::size_t rank) {
  std::string stored = read_file(path);
  const bool compressed = is_gzip(stored);
  IdxFile file{.header_bytes = 4 + 4 * rank};

  const std::string head = compressed ? gunzip(stored, file.header_bytes, path) : stored.substr(0, file.header_bytes);
  check_magic(path, head, magic, file.header_bytes);
  for (std::size_t axis = 0; axis < rank; ++axis) file.extents.push_back(big_endian(head, 4 + 4 * axis));
  const std::size_t size = file.header_bytes + announced_elements(path, file.extents);

  // One byte more than announced is enough to see that there is more, and lets zlib reach its checksum.
  file.bytes = compressed ? gunzip(stored, size + 1, path) : std::move(stored);
  if (file.bytes.size() < size)
    fail(path, " is cut short: its header announces ", joined(file.extents), " elements (", size,
         " bytes with the header), it has ", file.bytes.size(), " bytes");
  if (file.bytes.size() > size)
    fail(path, " has surplus bytes: its header announces ", joined(file.extents), " elements (", size,
         " bytes with the header), it has ", compressed ? "more" : std::to_string(file.bytes.size()));
  return file;
}

/// "train-images", 3: the names under which such files are handed around, raw ones first.
std::vector<std::string> file_names(const std::string& stem, int rank) {
  std::vector<std::string> names;
  for (const char* ending : {"", ".gz"})
    for (const char* separator : {"-", "."}) names.push_back(concat(stem, separator, "idx", rank, "-ubyte", ending));
  return names;
}

Dataset read_split(const std::string& name, const std::filesystem::path& images, const std::filesystem::path& labels) {
  Dataset dataset{.name = name};
  dataset.images = read_idx_images(images);
  dataset.labels = read_idx_labels(labels, dataset.classes);
  if (dataset.labels.elements() != dataset.size())
    fail(images, " has ", dataset.size(), " images, but ", labels, " has ", dataset.labels.elements(), " labels");
  return dataset;
}

}  // namespace

Tensor read_idx_images(const std::filesystem::path& path) {
  const IdxFile file = read_idx(path, kImageMagic, 3);
  const Tensor images(Shape{file.extents[0], file.extents[1], file.extents[2], 1}, DType::kUInt8);
  std::memcpy(images.raw(), file.elements(), images.bytes());
  return images;
}

Tensor read_idx_labels(const std::filesystem::path& path, int classes) {
  const IdxFile file = read_idx(path, kLabelMagic, 1);
  const Tensor labels(Shape{file.extents[0]}, DType::kInt32);
  const std::span<std::int32_t> values = labels.values<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = file.elements()[i];
    if (values[i] >= classes)
      fail(path, " gives example ", i, " the label ", values[i], "; there are 0 to ", classes - 1);
  }
  return labels;
}

Splits load_idx(const std::string& name, const std::filesystem::path& data_dir) {
  const std::filesystem::path directory = resolve_data_dir(
      name, data_dir,
      "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, raw or .gz");
  const auto find = [&](const std::string& stem, int rank) {
    return find_data_file(name, directory, file_names(stem, rank));
  };
  const std::filesystem::path train_images = find("train-images", 3), train_labels = find("train-labels", 1);
  const std::filesystem::path test_images = find("t10k-images", 3), test_labels = find("t10k-labels", 1);
  Splits splits{read_split(name, train_images, train_labels), read_split(name, test_images, test_labels)};
  if (!(splits.train.example_shape() == splits.test.example_shape()))
    fail(train_images, " has images of ", splits.train.example_shape(), ", but ", test_images, " of ",
         splits.test.example_shape());
  return splits;
}

}  // namespace miniqat::datasets

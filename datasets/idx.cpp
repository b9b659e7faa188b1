#include "datasets/idx.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "datasets/data_dir.h"
#include "datasets/gzip.h"

namespace miniqat::datasets {

namespace {

constexpr std::uint32_t kImageMagic = 2051;
constexpr std::uint32_t kLabelMagic = 2049;

std::uint32_t big_endian(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[offset + i]);
  return value;
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
    fail(path, " is cut short: ", counted(head.size(), "byte"), ", an IDX ", kind(magic), " header alone has ",
         header_bytes);
}

/// The number of elements in the header; throws if it is 0 or more than any tensor may have.
std::size_t announced_elements(const std::filesystem::path& path, const std::vector<std::int64_t>& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) fail(path, " holds nothing: its header announces ", joined(extents, "x"), " elements");
    if (extent > Shape::kMaxElements / elements)
      fail(path, " has an absurd header: ", joined(extents, "x"), " elements, at most ", Shape::kMaxElements,
           " are possible");
    elements *= extent;
  }
  return static_cast<std::size_t>(elements);
}

/// A file whose header has been read and found possible; its elements have not been expanded yet.
class IdxFile {
 public:
  IdxFile(std::filesystem::path path, std::uint32_t magic, std::size_t rank)
      : path_(std::move(path)), stored_(read_file(path_)), compressed_(is_gzip(stored_)), header_bytes_(4 + 4 * rank) {
    const std::string head = compressed_ ? gunzip(stored_, header_bytes_, path_) : stored_.substr(0, header_bytes_);
    check_magic(path_, head, magic, header_bytes_);
    for (std::size_t axis = 0; axis < rank; ++axis) extents_.push_back(big_endian(head, 4 + 4 * axis));
    size_ = header_bytes_ + announced_elements(path_, extents_);
  }

  const std::filesystem::path& path() const { return path_; }
  std::int64_t count() const { return extents_[0]; }
  /// [h, w, 1] of a file of images.
  Shape image_shape() const { return {extents_[1], extents_[2], 1}; }

  /// The elements; the file forgets them.
  std::string take() {
    // One byte more than announced is enough to see that there is more, and lets zlib reach its checksum.
    std::string bytes = compressed_ ? gunzip(stored_, size_ + 1, path_) : std::move(stored_);
    stored_ = {};
    if (bytes.size() < size_)
      fail(path_, " is cut short: its header announces ", joined(extents_, "x"), " elements (", size_,
           " bytes with the header), it has ", bytes.size(), " bytes");
    if (bytes.size() > size_)
      fail(path_, " has surplus bytes: its header announces ", joined(extents_, "x"), " elements (", size_,
           " bytes with the header), it has ", compressed_ ? "more" : std::to_string(bytes.size()));
    return bytes.erase(0, header_bytes_);
  }

 private:
  std::filesystem::path path_;
  std::string stored_;
  bool compressed_;
  std::size_t header_bytes_;
  std::vector<std::int64_t> extents_;
  /// Bytes of the header and the elements.
  std::size_t size_ = 0;
};

Tensor take_images(IdxFile file) {
  const std::string elements = file.take();
  const Shape image = file.image_shape();
  Tensor images(Shape{file.count(), image[0], image[1], 1}, DType::kUInt8);
  std::memcpy(images.raw(), elements.data(), images.bytes());
  return images;
}

Tensor take_labels(IdxFile file, int classes) {
  const std::string elements = file.take();
  Tensor labels(Shape{file.count()}, DType::kInt32);
  const std::span<std::int32_t> values = labels.values<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(elements[i]);
    if (values[i] >= classes)
      fail(file.path(), " gives example ", i, " the label ", values[i], "; there are 0 to ", classes - 1);
  }
  return labels;
}

IdxFile open_images(const std::filesystem::path& path) { return {path, kImageMagic, 3}; }
IdxFile open_labels(const std::filesystem::path& path) { return {path, kLabelMagic, 1}; }

/// "train-images", 3: the names under which such files are handed around, raw ones first.
std::vector<std::string> file_names(const std::string& stem, int rank) {
  std::vector<std::string> names;
  for (const char* ending : {"", ".gz"})
    for (const char* separator : {"-", "."}) names.push_back(concat(stem, separator, "idx", rank, "-ubyte", ending));
  return names;
}

struct SplitFiles {
  IdxFile images;
  IdxFile labels;
};

/// Compares the counts before anything is expanded.
SplitFiles open_split(const std::filesystem::path& images, const std::filesystem::path& labels) {
  SplitFiles split{open_images(images), open_labels(labels)};
  if (split.labels.count() != split.images.count())
    fail(images, " has ", counted(split.images.count(), "image"), ", but ", labels, " has ",
         counted(split.labels.count(), "label"));
  return split;
}

Dataset take_split(const std::string& name, SplitFiles files) {
  Dataset dataset{.name = name};
  dataset.images = take_images(std::move(files.images));
  dataset.labels = take_labels(std::move(files.labels), dataset.classes);
  return dataset;
}

/// The families come in files of the same names and sizes. Their first labels tell them apart.
struct KnownLabels {
  std::string_view name;
  std::array<std::int32_t, 10> train;
  std::array<std::int32_t, 10> test;

  bool are_those_of(const Splits& splits) const {
    const auto begins = [](const Dataset& split, std::int64_t size, std::span<const std::int32_t> labels) {
      return split.size() == size && std::ranges::equal(split.labels.values<std::int32_t>().first(10), labels);
    };
    return begins(splits.train, 60000, train) && begins(splits.test, 10000, test);
  }
};

constexpr std::array<KnownLabels, 2> kKnownLabels = {
    {{"mnist", {5, 0, 4, 1, 9, 2, 1, 3, 1, 4}, {7, 2, 1, 0, 4, 1, 4, 9, 5, 9}},
     {"fashion-mnist", {9, 0, 0, 3, 0, 2, 7, 2, 5, 5}, {9, 2, 1, 1, 6, 1, 4, 6, 5, 7}}}};

void refuse_the_other_family(const std::string& name, const std::filesystem::path& directory, const Splits& splits) {
  for (const KnownLabels& known : kKnownLabels)
    if (known.name != name && known.are_those_of(splits))
      fail("data set ", name, ": ", directory, " holds ", known.name, "; give that name or another directory");
}

}  // namespace

Tensor read_idx_images(const std::filesystem::path& path) { return take_images(open_images(path)); }

Tensor read_idx_labels(const std::filesystem::path& path, int classes) {
  return take_labels(open_labels(path), classes);
}

IdxPair read_idx_pair(const std::filesystem::path& images, const std::filesystem::path& labels, int classes) {
  SplitFiles files = open_split(images, labels);
  return {.images = take_images(std::move(files.images)), .labels = take_labels(std::move(files.labels), classes)};
}

IdxKind idx_kind(const std::filesystem::path& path) {
  constexpr std::size_t kHead = 4096;
  try {
    std::string head = read_part(path, 0, kHead);
    // zlib still gives what it has read of gzip data that are cut off.
    if (is_gzip(head)) head = gunzip(head, sizeof(std::uint32_t), path);
    if (head.size() < sizeof(std::uint32_t)) return IdxKind::kNone;
    const std::uint32_t magic = big_endian(head, 0);
    return magic == kImageMagic ? IdxKind::kImages : magic == kLabelMagic ? IdxKind::kLabels : IdxKind::kNone;
  } catch (const Error&) {
    return IdxKind::kNone;
  }
}

Splits load_idx(const std::string& name, const std::filesystem::path& data_dir,
                const std::function<void(const Shape& example)>& accept) {
  const std::filesystem::path directory = resolve_data_dir(
      name, data_dir,
      "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, raw or .gz");
  const auto find = [&](const std::string& stem, int rank) {
    return find_data_file(name, directory, file_names(stem, rank));
  };
  const std::filesystem::path train_images = find("train-images", 3), train_labels = find("train-labels", 1);
  const std::filesystem::path test_images = find("t10k-images", 3), test_labels = find("t10k-labels", 1);
  SplitFiles train = open_split(train_images, train_labels), test = open_split(test_images, test_labels);
  if (train.images.image_shape() != test.images.image_shape())
    fail(train_images, " has images of ", train.images.image_shape(), ", but ", test_images, " of ",
         test.images.image_shape());
  if (accept) accept(train.images.image_shape());
  Splits splits{take_split(name, std::move(train)), take_split(name, std::move(test))};
  refuse_the_other_family(name, directory, splits);
  return splits;
}

}  // namespace miniqat::datasets

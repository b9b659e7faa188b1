#include "datasets/cifar10.h"

#include <vector>

#include "core/files/files.h"
#include "core/text/error.h"
#include "datasets/data_dir.h"

namespace miniqat::datasets {

namespace {

constexpr const char* kName = "cifar10";
constexpr int kClasses = 10;
constexpr std::int64_t kSide = 32, kChannels = 3, kPlane = kSide * kSide, kImageBytes = kChannels * kPlane;
constexpr std::int64_t kRecordBytes = 1 + kImageBytes;
/// The most bytes of a file, so that no memory is taken for what read_file() refuses.
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 31;

std::int64_t record_count(const std::filesystem::path& path, std::uintmax_t bytes) {
  if (bytes == 0) fail(path, " is empty; CIFAR-10 records of ", kRecordBytes, " bytes were expected");
  if (bytes > kMaxBytes) fail(path, " has ", bytes, " bytes, more than the limit of ", kMaxBytes);
  if (bytes % kRecordBytes != 0)
    fail(path, " has ", counted(bytes, "byte"), ", not a multiple of a CIFAR-10 record's ", kRecordBytes);
  return static_cast<std::int64_t>(bytes / kRecordBytes);
}

std::uintmax_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) fail("cannot read ", path, ": ", error.message());
  return bytes;
}

/// Planes [c, h, w] to pixels [h, w, c].
void interleave(const std::uint8_t* planes, std::uint8_t* pixels) {
  for (std::int64_t i = 0; i < kPlane; ++i)
    for (std::int64_t c = 0; c < kChannels; ++c) pixels[i * kChannels + c] = planes[c * kPlane + i];
}

Dataset read_split(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  for (const std::filesystem::path& path : paths) total += counts.emplace_back(record_count(path, size_of(path)));

  Dataset dataset{.name = kName, .classes = kClasses, .scale = kCifar10Scale, .zero_point = kCifar10ZeroPoint};
  dataset.images = Tensor(Shape{total, kSide, kSide, kChannels}, DType::kUInt8);
  dataset.labels = Tensor(Shape{total}, DType::kInt32);
  std::uint8_t* pixels = dataset.images.data<std::uint8_t>();
  std::int32_t* label = dataset.labels.data<std::int32_t>();
  for (std::size_t k = 0; k < paths.size(); ++k) {
    const std::string bytes = read_file(paths[k]);
    if (record_count(paths[k], bytes.size()) != counts[k]) fail(paths[k], " changed while it was read");
    const auto* record = reinterpret_cast<const std::uint8_t*>(bytes.data());
    for (std::int64_t i = 0; i < counts[k]; ++i, record += kRecordBytes, pixels += kImageBytes) {
      if (record[0] >= kClasses)
        fail(paths[k], " gives record ", i, " the label ", int{record[0]}, "; there are 0 to ", kClasses - 1);
      *label++ = record[0];
      interleave(record + 1, pixels);
    }
  }
  return dataset;
}

}  // namespace

Splits load_cifar10(const std::filesystem::path& data_dir) {
  const std::filesystem::path directory =
      resolve_data_dir(kName, data_dir, "data_batch_1.bin to data_batch_5.bin and test_batch.bin");
  const auto find = [&](const std::string& file) {
    return find_data_file(kName, directory, {file, "cifar-10-batches-bin/" + file});
  };
  std::vector<std::filesystem::path> train;
  for (int i = 1; i <= 5; ++i) train.push_back(find(concat("data_batch_", i, ".bin")));
  const std::filesystem::path test = find("test_batch.bin");
  return {read_split(train), read_split({test})};
}

}  // namespace miniqat::datasets

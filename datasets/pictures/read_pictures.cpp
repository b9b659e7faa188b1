#include "datasets/pictures/read_pictures.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "core/files.h"
#include "core/parallel.h"
#include "datasets/decode_progress.h"
#include "datasets/pictures/resize.h"

namespace miniqat::datasets {
namespace {

/// How many files are taken between two words of progress, of which each may end the loading: those of about a tenth of
/// a second, whatever their size.
class BlockSize {
 public:
  std::int64_t files() const { return files_; }
  void adapt(double seconds) {
    if (seconds < 0.05) files_ = std::min(2 * files_, kMost);
    if (seconds > 0.1) files_ = std::max(files_ / 2, fewest_);
  }

 private:
  static constexpr std::int64_t kMost = 4096;
  const std::int64_t fewest_ = thread_count();
  std::int64_t files_ = fewest_;
};

PictureHeader header_of(const PictureFile& file) {
  constexpr std::size_t kUsualHead = 1 << 14;
  try {
    return picture_header(read_part(file.path, 0, kUsualHead), file.path);
  } catch (const Error&) {
    // Texts and profiles may come before the size.
    return picture_header(read_file(file.path), file.path);
  }
}

[[noreturn]] void refuse_sizes(const PictureFile& one, const Shape& size, const PictureFile& other, const Shape& its) {
  fail(one.path, " has ", size[1], " x ", size[0], " pixels, but ", other.path, " has ", its[1], " x ", its[0],
       "; --image-size HxW brings all pictures to one size");
}

struct FileRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

FileRange all_files(const ClassFolders& folders) { return {0, static_cast<std::int64_t>(folders.files.size())}; }

/// Calls body(i) for each file of the range, on all threads, and tells of the progress; before the files are `decoded`,
/// that none is done.
template <class Body>
void for_files(const FileRange& files, bool decoded, const Body& body) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t all = files.end - files.begin;
  BlockSize block;
  for (std::int64_t first = 0, count = 0; first < all; first += count) {
    const Clock::time_point began = Clock::now();
    count = std::min(block.files(), all - first);
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(files.begin + first + i);
    });
    block.adapt(std::chrono::duration<double>(Clock::now() - began).count());
    decoding_went_on(decoded ? first + count : 0, all);
  }
}

/// Into `images` [n, h, w, c], n the number of all files.
void decode(const ClassFolders& folders, const FileRange& files, const PictureOptions& options, Tensor& images) {
  const std::int64_t height = images.shape()[1], width = images.shape()[2], channels = images.shape()[3];
  const Colour colour = channels == 1 ? Colour::kGrey : Colour::kRgb;
  for_files(files, true, [&](std::int64_t i) {
    const PictureFile& file = folders.files[static_cast<std::size_t>(i)];
    const Picture decoded = decode_picture(read_file(file.path), colour, file.path);
    if (!options.has_size() && (decoded.height != height || decoded.width != width))
      fail(file.path, " has ", decoded.width, " x ", decoded.height, " pixels, the other pictures ", width, " x ",
           height, "; --image-size HxW brings all pictures to one size");
    const Picture fitted = fit_picture(decoded, height, width);
    std::ranges::copy(fitted.pixels, images.data<std::uint8_t>() + i * height * width * channels);
  });
}

Tensor room_for(const ClassFolders& folders, const Shape& shape) {
  return Tensor(Shape{all_files(folders).end, shape[0], shape[1], shape[2]}, DType::kUInt8);
}

}  // namespace

Shape shape_of_pictures(const ClassFolders& folders, const PictureOptions& options) {
  if (options.has_size() && options.colour != Colour::kAuto)
    return {options.height, options.width, options.colour == Colour::kGrey ? 1 : 3};
  std::vector<PictureHeader> headers(folders.files.size());
  for_files(all_files(folders), false, [&](std::int64_t i) { headers[i] = header_of(folders.files[i]); });
  const bool grey = options.colour == Colour::kGrey ||
                    (options.colour == Colour::kAuto && std::ranges::all_of(headers, &PictureHeader::grey));
  if (options.has_size()) return {options.height, options.width, grey ? 1 : 3};
  const PictureHeader& first = headers.front();
  for (std::size_t i = 1; i < headers.size(); ++i)
    if (headers[i].height != first.height || headers[i].width != first.width)
      refuse_sizes(folders.files[0], {first.height, first.width}, folders.files[i],
                   {headers[i].height, headers[i].width});
  return {first.height, first.width, grey ? 1 : 3};
}

Tensor read_pictures(const ClassFolders& folders, const Shape& shape, const PictureOptions& options) {
  Tensor images = room_for(folders, shape);
  decode(folders, all_files(folders), options, images);
  return images;
}

Tensor read_pictures(const ClassFolders& folders, const Shape& shape, const PictureOptions& options,
                     SharedDecoding& with) {
  Tensor images = room_for(folders, shape);
  const std::int64_t count = images.shape()[0];
  decode(folders, {first_of_part(with, with.part(), count), first_of_part(with, with.part() + 1, count)}, options,
         images);
  put_together(with, images);
  return images;
}

Tensor labels_of(const ClassFolders& folders) {
  Tensor labels(Shape{static_cast<std::int64_t>(folders.files.size())}, DType::kInt32);
  std::ranges::transform(folders.files, labels.data<std::int32_t>(), &PictureFile::label);
  return labels;
}

}  // namespace miniqat::datasets

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

/// Calls body(i) for each file, on all threads, and tells of the progress; before the files are `decoded`, that none
/// is done.
template <class Body>
void for_files(const ClassFolders& folders, bool decoded, const Body& body) {
  using Clock = std::chrono::steady_clock;
  const auto all = static_cast<std::int64_t>(folders.files.size());
  BlockSize block;
  for (std::int64_t first = 0, count = 0; first < all; first += count) {
    const Clock::time_point began = Clock::now();
    count = std::min(block.files(), all - first);
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(first + i);
    });
    block.adapt(std::chrono::duration<double>(Clock::now() - began).count());
    decoding_went_on(decoded ? first + count : 0, all);
  }
}

}  // namespace

Shape shape_of_pictures(const ClassFolders& folders, const PictureOptions& options) {
  if (options.has_size() && options.colour != Colour::kAuto)
    return {options.height, options.width, options.colour == Colour::kGrey ? 1 : 3};
  std::vector<PictureHeader> headers(folders.files.size());
  for_files(folders, false, [&](std::int64_t i) { headers[i] = header_of(folders.files[i]); });
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
  const auto count = static_cast<std::int64_t>(folders.files.size());
  Tensor images(Shape{count, shape[0], shape[1], shape[2]}, DType::kUInt8);
  const Colour colour = shape[2] == 1 ? Colour::kGrey : Colour::kRgb;
  for_files(folders, true, [&](std::int64_t i) {
    const PictureFile& file = folders.files[i];
    const Picture decoded = decode_picture(read_file(file.path), colour, file.path);
    if (!options.has_size() && (decoded.height != shape[0] || decoded.width != shape[1]))
      fail(file.path, " has ", decoded.width, " x ", decoded.height, " pixels, the other pictures ", shape[1], " x ",
           shape[0], "; --image-size HxW brings all pictures to one size");
    const Picture fitted = fit_picture(decoded, shape[0], shape[1]);
    std::ranges::copy(fitted.pixels, images.data<std::uint8_t>() + i * shape.elements());
  });
  return images;
}

Tensor labels_of(const ClassFolders& folders) {
  Tensor labels(Shape{static_cast<std::int64_t>(folders.files.size())}, DType::kInt32);
  std::ranges::transform(folders.files, labels.data<std::int32_t>(), &PictureFile::label);
  return labels;
}

}  // namespace miniqat::datasets

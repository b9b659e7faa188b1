#include "datasets/pictures/read_pictures.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "core/files/files.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/decoding.h"
#include "datasets/pictures/formats.h"
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

PictureHeader header_of(const PictureFile& file, const std::string& name) {
  constexpr std::size_t kUsualHead = 1 << 14;
  try {
    return picture_header(read_part(file.path, 0, kUsualHead), name);
  } catch (const Error&) {
    // Texts and profiles may come before the size.
    return picture_header(read_file(file.path), name);
  }
}

std::int64_t size_of(const PictureFile& file) {
  std::error_code failure;
  const std::uintmax_t size = std::filesystem::file_size(file.path, failure);
  return failure ? 0 : static_cast<std::int64_t>(size);
}

/// Calls take(picture) with a picture that becomes [.., width, channels], decoded when the budget has room for it.
template <class Take>
void decode_in_budget(const PictureFile& file, const std::string& name, std::int64_t width, int channels,
                      const Take& take) {
  constexpr std::int64_t kSmallFile = 1 << 16;
  const Colour colour = channels == 1 ? Colour::kGrey : Colour::kRgb;
  const std::int64_t size = size_of(file);
  if (size <= kSmallFile) {
    const std::string bytes = read_file(file.path);
    const DecodingBudget::Share share(decoding_budget(), picture_header(bytes, name).decoding_bytes(width, channels));
    return take(decode_picture(bytes, colour, name));
  }
  const auto header = [&] {
    // Its head may be the whole file.
    const DecodingBudget::Share share(decoding_budget(), size);
    return header_of(file, name);
  };
  const DecodingBudget::Share share(decoding_budget(), size + header().decoding_bytes(width, channels));
  take(decode_picture(read_file(file.path), colour, name));
}

/// Keeps the errors of files that are read on several threads.
class BrokenList {
 public:
  explicit BrokenList(BrokenFiles& broken) : broken_(broken) {}

  /// Calls read(file, name) for a file that is not in the list. What it throws takes the file there.
  template <class Read>
  void attempt(const ClassFolders& folders, std::int64_t i, const Read& read) {
    if (has(i)) return;
    const PictureFile& file = folders.files[static_cast<std::size_t>(i)];
    const std::string name = folders.name_of(file);
    try {
      if (!file.trouble.empty()) fail(quote(name), " ", file.trouble);
      read(file, name);
    } catch (const Error& error) {
      const std::lock_guard<std::mutex> one_at_a_time(mutex_);
      broken_.emplace(i, error.what());
    }
  }

 private:
  bool has(std::int64_t i) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    return broken_.contains(i);
  }

  BrokenFiles& broken_;
  std::mutex mutex_;
};

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

/// Decodes a picture into its place of `images` [n, h, w, c].
void decode(const ClassFolders& folders, std::int64_t i, const PictureOptions& options, Tensor& images,
            BrokenList& broken) {
  const std::int64_t height = images.shape()[1], width = images.shape()[2], channels = images.shape()[3];
  interruption_point();
  broken.attempt(folders, i, [&](const PictureFile& file, const std::string& name) {
    decode_in_budget(file, name, width, static_cast<int>(channels), [&](const Picture& decoded) {
      if (!options.has_size() && (decoded.height != height || decoded.width != width))
        fail(quote(name), " has ", decoded.width, " x ", decoded.height, " pixels, the other pictures ", width, " x ",
             height, "; --image-size HxW brings all pictures to one size");
      const Picture fitted = fit_picture(decoded, height, width);
      std::ranges::copy(fitted.pixels, images.data<std::uint8_t>() + i * height * width * channels);
    });
  });
}

void decode(const ClassFolders& folders, const FileRange& files, const PictureOptions& options, Tensor& images,
            BrokenFiles& broken) {
  BrokenList list(broken);
  for_files(files, true, [&](std::int64_t i) { decode(folders, i, options, images, list); });
}

/// The broken files of all processes, each of which knows those of its own part.
void share_broken(const ClassFolders& folders, const PictureOptions& options, Tensor& images, BrokenFiles& broken,
                  SharedDecoding& with) {
  Tensor is_broken(Shape{all_files(folders).end}, DType::kUInt8);
  for (const auto& [i, why] : broken) is_broken.data<std::uint8_t>()[i] = 1;
  put_together(with, is_broken);
  // The words for the others' come from their files.
  std::vector<std::int64_t> news;
  for (std::int64_t i = 0; i < is_broken.elements(); ++i)
    if (is_broken.data<std::uint8_t>()[i] != 0 && !broken.contains(i)) news.push_back(i);
  broken.merge(read_again(folders, news, options, images));
}

}  // namespace

std::optional<Shape> shape_of_pictures(const ClassFolders& folders, const PictureOptions& options,
                                       BrokenFiles& broken) {
  if (options.has_size() && options.colour != Colour::kAuto)
    return Shape{options.height, options.width, options.colour == Colour::kGrey ? 1 : 3};
  std::vector<PictureHeader> headers(folders.files.size());
  BrokenList list(broken);
  for_files(all_files(folders), false, [&](std::int64_t i) {
    list.attempt(folders, i,
                 [&](const PictureFile& file, const std::string& name) { headers[i] = header_of(file, name); });
  });
  std::optional<std::size_t> first;
  bool grey = options.colour != Colour::kRgb;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (broken.contains(static_cast<std::int64_t>(i))) continue;
    const PictureHeader& header = headers[i];
    if (!first) first = i;
    grey = grey && (header.grey || options.colour == Colour::kGrey);
    if (!options.has_size() && (header.height != headers[*first].height || header.width != headers[*first].width))
      refuse_sizes(folders.files[*first], {headers[*first].height, headers[*first].width}, folders.files[i],
                   {header.height, header.width});
  }
  if (!first) return {};
  if (options.has_size()) return Shape{options.height, options.width, grey ? 1 : 3};
  return Shape{headers[*first].height, headers[*first].width, grey ? 1 : 3};
}

Tensor read_pictures(const ClassFolders& folders, const Shape& shape, const PictureOptions& options,
                     BrokenFiles& broken, SharedDecoding& with) {
  const std::int64_t count = all_files(folders).end;
  Tensor images(Shape{count, shape[0], shape[1], shape[2]}, DType::kUInt8);
  decode(folders, {first_of_part(with, with.part(), count), first_of_part(with, with.part() + 1, count)}, options,
         images, broken);
  put_together(with, images);
  share_broken(folders, options, images, broken, with);
  return images;
}

BrokenFiles read_again(const ClassFolders& folders, const std::vector<std::int64_t>& files,
                       const PictureOptions& options, Tensor& images) {
  BrokenFiles broken;
  BrokenList list(broken);
  parallel_for(std::ssize(files), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) decode(folders, files[k], options, images, list);
  });
  return broken;
}

Tensor labels_of(const ClassFolders& folders) {
  Tensor labels(Shape{static_cast<std::int64_t>(folders.files.size())}, DType::kInt32);
  std::ranges::transform(folders.files, labels.data<std::int32_t>(), &PictureFile::label);
  return labels;
}

}  // namespace miniqat::datasets

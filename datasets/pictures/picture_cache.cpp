#include "datasets/pictures/picture_cache.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/files/files.h"
#include "core/files/safetensors.h"
#include "core/text/classic.h"
#include "core/text/error.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

/// In the first line of a manifest: a change of decoding or resizing makes old caches worthless.
constexpr int kVersion = 3;
constexpr const char* kImages = "images";
constexpr const char* kManifest = "manifest";
constexpr const char* kChecksum = "checksum";
/// Places of broken files, int64; left out where there are none.
constexpr const char* kBroken = "broken";

/// The value of an environment variable, or "".
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path cache_folder() {
  if (const std::string own = environment("MINIQAT_CACHE_DIR"); !own.empty()) return own;
  if (const std::string all = environment("XDG_CACHE_HOME"); !all.empty()) return fs::path(all) / "miniqat";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache" / "miniqat";
  return {};
}

/// FNV-1a, for names of files; what they hold is compared as a whole.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

Tensor bytes_of(const std::string& text) {
  Tensor bytes(Shape{static_cast<std::int64_t>(text.size())}, DType::kUInt8);
  std::memcpy(bytes.raw(), text.data(), text.size());
  return bytes;
}

bool holds(const Tensor& bytes, const std::string& text) {
  return bytes.bytes() == text.size() && std::memcmp(bytes.raw(), text.data(), text.size()) == 0;
}

std::int64_t checksum_of(const Tensor& images) {
  return static_cast<std::int64_t>(crc32_z(0, images.data<std::uint8_t>(), images.bytes()));
}

std::string manifest_of(const ClassFolders& folders, const PictureOptions& options) {
  std::string text = concat("miniqat pictures ", kVersion, ", ", options.height, " x ", options.width, ", colour ",
                            static_cast<int>(options.colour), "\n");
  for (const PictureFile& file : folders.files) {
    if (!file.trouble.empty()) {
      text += concat(file.path.lexically_relative(folders.folder).string(), '\0', file.trouble, '\n');
      continue;
    }
    std::error_code failure;
    const std::uintmax_t bytes = fs::file_size(file.path, failure);
    const fs::file_time_type time = fs::last_write_time(file.path, failure);
    if (failure) fail("cannot read ", file.path, ": ", failure.message());
    text += concat(file.path.lexically_relative(folders.folder).string(), '\0', bytes, ' ',
                   time.time_since_epoch().count(), '\n');
  }
  return text;
}

}  // namespace

PictureCache::PictureCache(const ClassFolders& folders, const PictureOptions& options)
    : count_(static_cast<std::int64_t>(folders.files.size())) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return;
  manifest_ = manifest_of(folders, options);
  std::error_code failure;
  const fs::path absolute = fs::weakly_canonical(folders.folder, failure);
  char name[32];
  classic_snprintf(name, sizeof name, "%016llx.safetensors",
                   static_cast<unsigned long long>(hash_of(absolute.string())));  // NOLINT(google-runtime-int)
  file_ = folder / concat("pictures-", absolute.filename().string(), "-", name);
}

std::optional<PictureCache::Kept> PictureCache::kept() const {
  std::error_code failure;
  if (file_.empty() || !fs::exists(file_, failure)) return {};
  try {
    const Safetensors kept = read_safetensors(file_);
    const Tensor &images = kept.tensors.at(kImages), &checksum = kept.tensors.at(kChecksum);
    if (!holds(kept.tensors.at(kManifest), manifest_)) return {};
    if (images.dtype() != DType::kUInt8 || images.shape().rank() != 4 || images.shape()[0] != count_) return {};
    if (checksum.dtype() != DType::kInt64 || checksum.elements() != 1 ||
        *checksum.data<std::int64_t>() != checksum_of(images))
      return {};
    const auto broken = kept.tensors.find(kBroken);
    if (broken == kept.tensors.end()) return Kept{.images = images};
    if (broken->second.dtype() != DType::kInt64 || broken->second.shape().rank() != 1) return {};
    const auto places = broken->second.values<std::int64_t>();
    if (std::ranges::any_of(places, [&](std::int64_t place) { return place < 0 || place >= count_; })) return {};
    return Kept{.images = images, .broken = {places.begin(), places.end()}};
  } catch (const Error&) {
    return {};
  } catch (const std::out_of_range&) {
    return {};
  }
}

void PictureCache::keep(const Kept& pictures) const {
  if (file_.empty()) return;
  try {
    std::error_code failure;
    fs::create_directories(file_.parent_path(), failure);
    // Whoever writes the same file now keeps his pictures without it.
    remove_dead_temporaries(file_);
    NamedTensors tensors = {{kImages, pictures.images},
                            {kManifest, bytes_of(manifest_)},
                            {kChecksum, Tensor::scalar(checksum_of(pictures.images))}};
    if (!pictures.broken.empty())
      tensors.emplace(kBroken, Tensor::from<std::int64_t>({std::ssize(pictures.broken)}, pictures.broken));
    write_safetensors(file_, {.tensors = std::move(tensors), .metadata = {}});
  } catch (const Error&) {
    // A full disk, or no right to write.
  } catch (const std::bad_alloc&) {
    // The file is put together in memory.
  }
}

}  // namespace miniqat::datasets

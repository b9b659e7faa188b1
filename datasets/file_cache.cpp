#include "datasets/file_cache.h"

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/error.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest";
constexpr const char* kChecksum = "checksum";

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

/// The CRC-32 of all bytes, in the order of names.
std::int64_t checksum_of(const NamedTensors& tensors) {
  uLong checksum = 0;
  for (const auto& [name, tensor] : tensors)
    checksum = crc32_z(checksum, static_cast<const Bytef*>(tensor.raw()), tensor.bytes());
  return static_cast<std::int64_t>(checksum);
}

}  // namespace

FileCache::FileCache(const std::string& kind, const fs::path& folder, const std::string& about)
    : folder_(folder), manifest_(about + "\n") {
  const fs::path place = cache_folder();
  if (place.empty()) return;
  std::error_code failure;
  const fs::path absolute = fs::weakly_canonical(folder, failure);
  file_ = place / concat(kind, "-", absolute.filename().string(), "-",
                         formatted("%016llx.safetensors",
                                   static_cast<unsigned long long>(  // NOLINT(google-runtime-int)
                                       hash_of(absolute.string()))));
}

void FileCache::depend_on(const fs::path& file) {
  if (file_.empty()) return;
  std::error_code failure;
  const std::uintmax_t bytes = fs::file_size(file, failure);
  const fs::file_time_type time = failure ? fs::file_time_type() : fs::last_write_time(file, failure);
  manifest_ += concat(file.lexically_relative(folder_).string(), '\0',
                      failure ? failure.message() : concat(bytes, ' ', time.time_since_epoch().count()), '\n');
}

NamedTensors FileCache::kept() const {
  std::error_code failure;
  if (file_.empty() || !fs::exists(file_, failure)) return {};
  try {
    NamedTensors kept = read_safetensors(file_).tensors;
    const Tensor manifest = kept.at(kManifest), checksum = kept.at(kChecksum);
    if (!holds(manifest, manifest_) || checksum.spec() != TensorSpec{Shape{}, DType::kInt64}) return {};
    kept.erase(kManifest);
    kept.erase(kChecksum);
    if (*checksum.data<std::int64_t>() != checksum_of(kept)) return {};
    return kept;
  } catch (const Error&) {
    return {};
  } catch (const std::out_of_range&) {
    return {};
  }
}

void FileCache::keep(const std::function<NamedTensors()>& made) const {
  if (file_.empty()) return;
  try {
    NamedTensors tensors = made();
    std::error_code failure;
    fs::create_directories(file_.parent_path(), failure);
    // Whoever writes the same file now keeps his tensors without it.
    remove_dead_temporaries(file_);
    const std::int64_t checksum = checksum_of(tensors);
    tensors.emplace(kManifest, bytes_of(manifest_));
    tensors.emplace(kChecksum, Tensor::scalar(checksum));
    write_safetensors(file_, {.tensors = std::move(tensors), .metadata = {}});
  } catch (const Error&) {
    // A full disk, no right to write, or no memory for the tensors.
  } catch (const std::bad_alloc&) {
    // The file is put together in memory.
  }
}

}  // namespace miniqat::datasets

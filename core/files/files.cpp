#include "core/files/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/platform/interruption.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }
  /// False when the system reports a late write error.
  bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

/// The file, without a wait for somebody who writes into a pipe: no signal would end it.
int open_to_read(const fs::path& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

/// Until a pipe or a device has something, or its end has come.
void wait_to_read(const Descriptor& file) {
  constexpr int kNapMilliseconds = 50;
  pollfd polled = {file.number(), POLLIN, 0};
  for (int ready = 0; ready == 0 || (ready < 0 && errno == EINTR);) {
    interruption_point();
    ready = ::poll(&polled, 1, kNapMilliseconds);
  }
}

[[noreturn]] void fail_with_errno(std::string_view what, const fs::path& path) {
  const int code = errno;
  fail("cannot ", what, " ", path.string(), ": ", std::strerror(code));
}

/// Removes the file when the scope is left, unless it was released.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  const fs::path& path() const { return path_; }
  void release() { path_.clear(); }

 private:
  fs::path path_;
};

constexpr std::string_view kTemporary = ".tmp";

/// ".NAME.", with which the names of the temporary files of NAME begin; the process's id and a number follow.
std::string temporary_stem(const fs::path& target) { return concat(".", target.filename().string(), "."); }

/// A name beside `target` that no other living process uses, nor this one a second time.
fs::path temporary_name(const fs::path& target) {
  static std::atomic<unsigned> counter = 0;
  return target.parent_path() / concat(temporary_stem(target), ::getpid(), ".", counter++, kTemporary);
}

/// Whether `name` is what temporary_name() makes of `stem`, in some process.
bool is_temporary_name(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem) || !name.ends_with(kTemporary) || name.size() < stem.size() + kTemporary.size())
    return false;
  const std::string_view numbers = name.substr(stem.size(), name.size() - stem.size() - kTemporary.size());
  return !numbers.empty() && numbers.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Makes a temporary file beside `target` and sets its name; invalid, with errno, where that is impossible. A process
/// that was killed may have had the same id (a container begins to count anew) and left a file: another name will do.
int make_temporary(const fs::path& target, fs::path& name) {
  constexpr int kMostLeftovers = 10'000;
  for (int attempt = 0;; ++attempt) {
    name = temporary_name(target);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST || attempt == kMostLeftovers) return file;
  }
}

void write_all(const Descriptor& file, std::string_view bytes, const fs::path& target) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("write", target);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The file that `path` means: through a symbolic link its target, so that the link survives the rename. Refuses
/// devices, pipes and directories, which a rename would replace or trip over.
fs::path writable_target(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return path;
  if (fs::is_directory(status)) fail("cannot write ", path.string(), ": it is a directory");
  if (!fs::is_regular_file(status)) fail("cannot write ", path.string(), ": it is not a regular file");
  const fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

/// Makes the rename itself durable. Some file systems cannot sync a directory, and by now the file is complete: no
/// error.
void sync_directory(const fs::path& target) {
  const fs::path directory = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const Descriptor file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.valid()) ::fsync(file.number());
}

/// A file that is complete beside its place, and gone again unless commit() puts it there.
class PendingFile {
 public:
  explicit PendingFile(const FileContent& content) : path_(content.path), target_(writable_target(content.path)) {
    Descriptor file(make_temporary(target_, temporary_path_));
    if (!file.valid()) fail_with_errno("write", path_);
    temporary_.emplace(temporary_path_);
    keep_mode(file);
    write_all(file, content.bytes, path_);
    if (::fsync(file.number()) != 0 || !file.close()) fail_with_errno("write", path_);
  }

  void commit() {
    if (::rename(temporary_path_.c_str(), target_.c_str()) != 0) fail_with_errno("write", path_);
    temporary_->release();
    sync_directory(target_);
  }

 private:
  /// A private file stays private. No error: some file systems have no permissions.
  void keep_mode(const Descriptor& file) const {
    constexpr mode_t kPermissions = 0777;
    struct stat old = {};
    if (::stat(target_.c_str(), &old) == 0) ::fchmod(file.number(), old.st_mode & kPermissions);
  }

  fs::path path_;
  fs::path target_;
  fs::path temporary_path_;
  std::optional<TemporaryFile> temporary_;
};

}  // namespace

namespace {

/// `between_pieces` is called in the middle of large files.
std::string read_to_end(const fs::path& path, std::uintmax_t limit, void (*between_pieces)()) {
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  const Descriptor file(open_to_read(path));
  struct stat status = {};
  if (!file.valid() || ::fstat(file.number(), &status) != 0) fail_with_errno("read", path);
  if (S_ISDIR(status.st_mode)) fail("cannot read ", path.string(), ": it is a directory");
  const auto size = static_cast<std::uintmax_t>(status.st_size);
  if (size > limit) fail("cannot read ", path.string(), ": its ", size, " bytes exceed the limit of ", limit);

  // Read to the end instead of `size` bytes: pipes have no size, and a file may grow meanwhile.
  std::string bytes;
  bytes.reserve(size);
  std::vector<char> chunk(std::size_t{1} << 16);
  while (true) {
    if (!S_ISREG(status.st_mode)) wait_to_read(file);
    const ssize_t count = ::read(file.number(), chunk.data(), chunk.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) fail_with_errno("read", path);
    if (count == 0) return bytes;
    if (static_cast<std::uintmax_t>(count) > limit - bytes.size())
      fail("cannot read ", path.string(), ": it exceeds the limit of ", limit, " bytes");
    const std::size_t before = bytes.size();
    bytes.append(chunk.data(), static_cast<std::size_t>(count));
    if (between_pieces != nullptr && before / kPiece != bytes.size() / kPiece) between_pieces();
  }
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string read_file(const fs::path& path, std::uintmax_t limit) { return read_to_end(path, limit, nullptr); }

std::string read_large_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored)
             ? read_to_end(path, std::numeric_limits<std::uintmax_t>::max(), interruption_point)
             : read_file(path);
}

std::string read_part(const fs::path& path, std::uintmax_t offset, std::size_t bytes) {
  const Descriptor file(open_to_read(path));
  if (!file.valid()) fail_with_errno("read", path);
  std::string part(bytes, '\0');
  std::size_t size = 0;
  while (size < bytes) {
    const ssize_t count = ::pread(file.number(), part.data() + size, bytes - size, static_cast<off_t>(offset + size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno("read", path);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  part.resize(size);
  return part;
}

void require_writable(const fs::path& path) { PendingFile({.path = path, .bytes = {}}); }

void require_no_link(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(path, failure);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  if (!fs::is_symlink(status)) fail("cannot write ", path.string(), ": it is not a regular file");
  fail("cannot write ", path.string(), ": it is a link to ", fs::read_symlink(path, failure).string(),
       ", which would be overwritten; remove the link, or put a copy of the file in its place");
}

void append_to_file(const fs::path& path, std::string_view bytes) {
  require_no_link(path);
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666));
  struct stat before = {};
  if (!file.valid() || ::fstat(file.number(), &before) != 0) fail_with_errno("write", path);
  if (before.st_nlink > 1)
    return write_file_atomically(path, read_file(path, std::numeric_limits<std::uintmax_t>::max()).append(bytes));
  try {
    write_all(file, bytes, path);
  } catch (const Error&) {
    // Where even this fails, half a line stays.
    [[maybe_unused]] const int result = ::ftruncate(file.number(), before.st_size);
    throw;
  }
  if (!file.close()) fail_with_errno("write", path);
}

void cut_file(const fs::path& path, std::uintmax_t bytes) {
  require_no_link(path);
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat before = {};
  if (!file.valid() || ::fstat(file.number(), &before) != 0) fail_with_errno("write", path);
  if (before.st_nlink > 1) return write_file_atomically(path, read_part(path, 0, bytes));
  if (::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0 || ::fsync(file.number()) != 0 || !file.close())
    fail_with_errno("write", path);
}

void sync_file(const fs::path& path) {
  const Descriptor file(open_to_read(path));
  if (!file.valid()) {
    if (errno != ENOENT) fail_with_errno("write", path);
    return;
  }
  if (::fsync(file.number()) != 0) fail_with_errno("write", path);
}

bool is_temporary_of(const fs::path& path, const fs::path& other) {
  return is_temporary_name(other.filename().string(), temporary_stem(path));
}

void remove_dead_temporaries(const fs::path& path) {
  const std::string stem = temporary_stem(path);
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    if (is_temporary_name(entry->path().filename().string(), stem)) ::unlink(entry->path().c_str());
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  write_files_atomically({{.path = path, .bytes = bytes}});
}

void write_files_atomically(const std::vector<FileContent>& files) {
  std::vector<std::unique_ptr<PendingFile>> pending;
  pending.reserve(files.size());
  for (const FileContent& file : files) pending.push_back(std::make_unique<PendingFile>(file));
  for (const auto& file : pending) file->commit();
}

}  // namespace miniqat

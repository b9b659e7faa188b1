#include "training/run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/text/error.h"
#include "core/text/json.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "an unknown host";
  return name.data();
}

/// The directories that are missing on the way to `path`, made, outermost first.
std::vector<fs::path> make_directories(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code failure;
  for (fs::path place = path; !place.empty() && !fs::exists(fs::symlink_status(place, failure));
       place = place.parent_path())
    missing.push_back(place);
  std::ranges::reverse(missing);
  std::vector<fs::path> made;
  failure.clear();
  for (const fs::path& place : missing) {
    if (fs::create_directory(place, failure)) made.push_back(place);
    if (!failure) continue;
    for (auto one = made.rbegin(); one != made.rend(); ++one) ::rmdir(one->c_str());
    fail("cannot make the run directory ", path.string(), ": ", failure.message());
  }
  return made;
}

/// The beginning of every lock of ours; write_owner() writes it.
constexpr std::string_view kHead = R"({"process":)";

/// The file's text; nothing for a pipe or a device.
std::string text_of(int descriptor) {
  std::array<char, 1024> text{};
  const ssize_t length = ::pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// Ours is also what a process left that died while it wrote, or before.
bool is_ours(int descriptor, std::string_view text) {
  struct stat status = {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
         (text.starts_with(kHead) || kHead.starts_with(text));
}

/// " by process 4711 on box", as far as the file says so.
std::string owner_text(std::string_view text) {
  const auto owner = nlohmann::json::parse(text, nullptr, false);
  const bool known = owner.is_object() && owner.contains("process") && owner["process"].is_number_integer() &&
                     owner.contains("host") && owner["host"].is_string();
  if (!known) return "by another process";
  return concat("by process ", owner["process"].get<std::int64_t>(), " on ", owner["host"].get<std::string>());
}

bool has_other_names(int descriptor) {
  struct stat status = {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink > 1;
}

/// Some network file systems know no locks: there, runs are on their own.
bool knows_no_locks(int code) { return code == ENOLCK || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL; }

}  // namespace

RunLock::RunLock(const fs::path& directory, Directory wanted) : directory_(directory), file_(directory / ".lock") {
  // The owner before may take file and directory away at any moment.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (wanted == Directory::kMake)
      for (fs::path& made : make_directories(directory)) made_.push_back(std::move(made));
    std::error_code failure;
    if (fs::exists(directory, failure) && !fs::is_directory(directory, failure))
      fail("the run directory ", directory.string(), " is a file");
    if (take()) return;
  }
  fail("cannot lock the run directory ", directory.string(), ": another process keeps creating and deleting ",
       file_.string(), "; try again");
}

/// False when the file has gone meanwhile.
bool RunLock::take() {
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool made = descriptor_ >= 0;
  if (!made && errno == EEXIST) {
    // The target of a link must not be overwritten; nobody writes into a pipe that we hold open.
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor_ < 0 && errno == ENOENT) return false;
  }
  if (descriptor_ < 0) give_up(errno);
  lock();
  const std::string former = made ? "" : text_of(descriptor_);
  if (!made && !is_ours(descriptor_, former)) {
    ::close(std::exchange(descriptor_, -1));
    fail(file_.string(), " was not written by miniqat, which would overwrite it: move it, or give another directory");
  }
  if (!is_in_place()) {
    ::close(std::exchange(descriptor_, -1));
    return false;
  }
  left_behind_ = left_behind_ || (exclusive_ && !former.empty());
  // A directory that was copied by hard links: the text is another's as well.
  if (!made && has_other_names(descriptor_)) {
    ::unlink(file_.c_str());
    ::close(std::exchange(descriptor_, -1));
    return false;
  }
  try {
    write_owner();
  } catch (const std::system_error& error) {
    ::unlink(file_.c_str());
    give_up(error.code().value());
  }
  return true;
}

void RunLock::lock() {
  int result;
  do result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  exclusive_ = result == 0;
  if (exclusive_ || knows_no_locks(errno)) return;
  if (errno != EWOULDBLOCK) give_up(errno);
  const std::string owner = owner_text(text_of(descriptor_));
  ::close(std::exchange(descriptor_, -1));
  fail("the run directory ", directory_.string(), " is in use ", owner);
}

void RunLock::give_up(int code) {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  for (auto one = made_.rbegin(); one != made_.rend(); ++one) ::rmdir(one->c_str());
  fail("cannot write ", file_.string(), ": ", std::strerror(code));
}

/// Whether the file that we have open still is the one in the directory.
bool RunLock::is_in_place() const {
  struct stat open = {}, named = {};
  return ::fstat(descriptor_, &open) == 0 && ::stat(file_.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

/// Throws std::system_error.
void RunLock::write_owner() const {
  const std::string host = nlohmann::json(host_name()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string text = concat(kHead, ::getpid(), ",\"host\":", host, "}\n");
  if (::ftruncate(descriptor_, 0) != 0) throw std::system_error(errno, std::generic_category());
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw std::system_error(errno, std::generic_category());
    done += static_cast<std::size_t>(written);
  }
}

RunLock::~RunLock() {
  if (is_in_place()) ::unlink(file_.c_str());
  ::close(descriptor_);
  for (auto one = made_.rbegin(); one != made_.rend(); ++one) ::rmdir(one->c_str());
}

}  // namespace miniqat::training

// For LD_PRELOAD: a file system that fails, or a process that dies, at the n-th call. Counted are the calls on paths
// that hold the text $MINIQAT_FAULT_PLACE, and on files opened by them. $MINIQAT_FAULT says what happens:
//   kill:N      the process dies (SIGKILL) right before its N-th call
//   full:N      the N-th write stops half way, and none after it finds any space
//   short:N     from the N-th on, a write takes 7 bytes at most
//   EIO:N       the N-th call fails
//   count:1     nothing; "CALLS calls" is the last line of stderr
//   ENOLCK:1    the file system knows no locks
//   EROFS:N     from the N-th on, every call that would change something fails; so with EACCES

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Call { kReading, kChanging, kWriting };

constexpr std::size_t kMostFiles = 1024;
std::array<bool, kMostFiles> counted_files{};
int calls = 0;
int writes = 0;

struct Fault {
  char what[16] = "";
  int number = 0;
  const char* place = nullptr;
};

const Fault& fault() {
  static const Fault once = [] {
    Fault read;
    const char* text = std::getenv("MINIQAT_FAULT");
    read.place = std::getenv("MINIQAT_FAULT_PLACE");
    if (text == nullptr || read.place == nullptr || std::sscanf(text, "%15[^:]:%d", read.what, &read.number) != 2)
      read.number = 0;
    return read;
  }();
  return once;
}

bool is(const char* what) { return fault().number > 0 && std::strcmp(fault().what, what) == 0; }
bool counts(const char* path) { return fault().number > 0 && std::strstr(path, fault().place) != nullptr; }
bool counts(int file) { return file >= 0 && file < static_cast<int>(kMostFiles) && counted_files[file]; }

/// Whether the call, which is counted by this, must fail, with errno set.
bool fails(Call call) {
  ++calls;
  if (call == Call::kWriting) ++writes;
  if (is("kill") && calls == fault().number) raise(SIGKILL);
  if (is("EIO") && calls == fault().number) {
    errno = EIO;
    return true;
  }
  const bool later = calls >= fault().number && call != Call::kReading;
  if (is("EROFS") && later) errno = EROFS;
  if (is("EACCES") && later) errno = EACCES;
  if ((is("EROFS") || is("EACCES")) && later) return true;
  if (is("full") && call == Call::kWriting && writes > fault().number) {
    errno = ENOSPC;
    return true;
  }
  return false;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

[[gnu::destructor]] void tell() {
  if (is("count")) std::fprintf(stderr, "%d calls\n", calls);
}

int remember(int file, bool counted) {
  if (file >= 0 && file < static_cast<int>(kMostFiles)) counted_files[file] = counted;
  return file;
}

int open_counted(const char* path, int flags, mode_t mode) {
  const bool counted = counts(path);
  if (counted && fails((flags & (O_CREAT | O_WRONLY | O_RDWR)) != 0 ? Call::kChanging : Call::kReading)) return -1;
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  return remember(real(path, flags, mode), counted);
}

mode_t mode_of(int flags, va_list list) { return (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0; }

/// A call on a path, or an open file, that takes nothing else.
template <class Where, class... More>
int pass(const char* name, Where where, More... more) {
  if (counts(where) && fails(Call::kChanging)) return -1;
  return next<int (*)(Where, More...)>(name)(where, more...);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_counted(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_counted(path, flags, mode);
}

ssize_t write(int file, const void* bytes, std::size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  if (!counts(file)) return real(file, bytes, size);
  if (fails(Call::kWriting)) return -1;
  if (is("short") && writes >= fault().number) size = std::min<std::size_t>(size, 7);
  if (is("full") && writes == fault().number) size = std::max<std::size_t>(size / 2, 1);
  return real(file, bytes, size);
}

int close(int file) {
  static const auto real = next<int (*)(int)>("close");
  const bool failing = counts(file) && fails(Call::kReading);
  remember(file, false);
  const int code = errno;
  const int result = real(file);
  if (failing) errno = code;
  return failing ? -1 : result;
}

int rename(const char* from, const char* to) noexcept { return pass("rename", from, to); }
int unlink(const char* path) noexcept { return pass("unlink", path); }
int remove(const char* path) noexcept { return pass("remove", path); }
int mkdir(const char* path, mode_t mode) noexcept { return pass("mkdir", path, mode); }
int rmdir(const char* path) noexcept { return pass("rmdir", path); }
int ftruncate(int file, off_t size) noexcept { return pass("ftruncate", file, size); }
int ftruncate64(int file, off_t size) noexcept { return pass("ftruncate64", file, size); }
int fsync(int file) { return pass("fsync", file); }
int fdatasync(int file) { return pass("fdatasync", file); }
int flock(int file, int operation) noexcept {
  if (!is("ENOLCK") || !counts(file)) return pass("flock", file, operation);
  errno = ENOLCK;
  return -1;
}

}  // extern "C"

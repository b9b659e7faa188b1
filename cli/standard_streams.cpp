#include "cli/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/text/error.h"

namespace miniqat::cli {
namespace {

bool reader_has_gone() {
  pollfd polled = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR) != 0;
}

}  // namespace

void keep_standard_streams() {
  // open() takes the lowest number that is free: the closed one.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

std::string failure_of_stdout() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  int reason = flushed ? 0 : errno;
  if (!failed_before && flushed) return {};
  if (reader_has_gone()) return {};
  // The stream does not remember why; the file still knows, if it is that of a device that is full or closed.
  if (reason == 0 && write(STDOUT_FILENO, "", 0) < 0) reason = errno;
  return concat("cannot write to standard output", reason == 0 ? "" : concat(": ", std::strerror(reason)));
}

}  // namespace miniqat::cli

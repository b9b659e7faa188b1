#include "core/team/spin_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace miniqat {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* longest) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, longest, nullptr, 0);
}

}  // namespace

void pause_briefly() {
#if defined(__SSE__)
  _mm_pause();
#endif
}

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) { futex(word, FUTEX_WAIT, value, nullptr); }

bool sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::milliseconds longest) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec time = {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(longest - seconds).count()};
  return futex(word, FUTEX_WAIT, value, &time) == 0 || errno != ETIMEDOUT;
}

void wake_one(std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, 1, nullptr); }
void wake_all(std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace miniqat

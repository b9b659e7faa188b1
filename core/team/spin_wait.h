#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace miniqat {

/// A thread that sleeps takes some microseconds to wake; one that spins takes the core from a program that could use
/// it, and gets it back later for that.
inline constexpr std::chrono::microseconds kSpin(50);

/// Tells the processor that a thread spins.
void pause_briefly();

/// Whether ready() became true within kSpin.
template <class Ready>
bool spin_until(const Ready& ready) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooksATime = 16;
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksATime; ++i) {
      if (ready()) return true;
      pause_briefly();
    }
  } while (Clock::now() < end);
  return false;
}

/// Sleeps until somebody wakes sleepers at this word, or a signal comes; not at all if the word has another value.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value);
/// Sleeps like that for `longest` at most. False if that time has passed.
bool sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::milliseconds longest);
void wake_one(std::atomic<std::uint32_t>& word);
void wake_all(std::atomic<std::uint32_t>& word);

}  // namespace miniqat

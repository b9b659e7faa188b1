// Folders of large pictures: the memory that decoding takes on many threads, and Ctrl-C.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/datasets/dataset_files.h"
#include "tests/temp_dir.h"

namespace miniqat::testing::decoding_test {
namespace {

namespace fs = std::filesystem;

TEST(DecodingMemoryTest, StaysBelowAGigabyteHoweverManyThreads) {
  // One picture by so many names: 36 MB each when it is decoded, and 108 more when it gets its colours.
  constexpr int kNames = 16;
  const TempDir place;
  datasets::Picture picture{.height = 6000, .width = 6000, .channels = 1, .pixels = {}};
  picture.pixels.resize(std::size_t{6000} * 6000);
  // Pixels that differ would take minutes.
  for (std::size_t i = 0; i < picture.pixels.size(); i += 100'000) picture.pixels[i] = 255;
  place.write("picture", png_bytes(picture));
  for (const char* kind : {"a", "b"}) {
    fs::create_directories(place.path() / "pictures" / kind);
    for (int i = 0; i < kNames / 2; ++i)
      fs::create_hard_link(place.path() / "picture", place.path() / "pictures" / kind / (std::to_string(i) + ".png"));
  }
  const EnvironmentVariable cache("MINIQAT_CACHE_DIR", (place.path() / "cache").c_str());
  // (A note says that the pictures have few levels.)
  const Outcome outcome = started(
      "train --float --model lenet5 --dataset pictures/ --image-size 28 --colour rgb --steps 1 --batch-size 4 "
      "--threads "
      "64 --out run",
      place.path());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LT(json_of(place.path() / "run/summary.json")["peak_memory_mb"].get<double>(), 1024);
}

/// One picture by so many names takes many seconds to decode.
constexpr int kNames = 400;

void make_folder(const TempDir& place) {
  place.write("picture", jpeg_bytes(make_picture(2000, 2000, 1)));
  for (const std::string part : {"train", "test"})
    for (const std::string kind : {"a", "b"}) {
      const fs::path folder = place.path() / "pictures" / part / kind;
      fs::create_directories(folder);
      for (int i = 0; i < kNames; ++i)
        fs::create_symlink(place.path() / "picture", folder / (std::to_string(i) + ".jpg"));
    }
}

TEST(DecodingStopTest, EndsAtOnceAndKeepsNothing) {
  using Clock = std::chrono::steady_clock;
  const TempDir place;
  make_folder(place);
  setenv("MINIQAT_CACHE_DIR", (place.path() / "cache").c_str(), 1);
  Program program("train --dataset pictures --image-size 8 --threads 1 --out run", place.path());
  // From then on the program hears signals.
  while (!fs::exists(place.path() / "run")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  program.send(SIGINT);
  const Clock::time_point sent = Clock::now();
  const Outcome outcome = program.wait();
  unsetenv("MINIQAT_CACHE_DIR");
  EXPECT_LT(Clock::now() - sent, std::chrono::seconds(2));
  EXPECT_EQ(outcome.status, 128 + SIGINT) << outcome.err;
  expect_text(outcome.err, {"stopped at ", " of 800 pictures, none of which is kept\n"});
  EXPECT_FALSE(fs::exists(place.path() / "cache"));
  EXPECT_FALSE(fs::exists(place.path() / "run"));
}

}  // namespace
}  // namespace miniqat::testing::decoding_test

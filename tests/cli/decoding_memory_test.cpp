// Large pictures decoded on many threads.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/variable.h"
#include "tests/datasets/dataset_files.h"

namespace miniqat::testing::decoding_memory_test {
namespace {

namespace fs = std::filesystem;

/// One picture by so many names: 36 MB each when it is decoded.
constexpr int kNames = 40;

TEST(DecodingMemoryTest, StaysBelowAGigabyteHoweverManyThreads) {
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
  const Variable cache("MINIQAT_CACHE_DIR", (place.path() / "cache").c_str());
  // (A note says that the pictures have few levels.)
  const Outcome outcome = miniqat(
      "train --float --model lenet5 --dataset pictures/ --image-size 28 --steps 1 --batch-size 4 --threads 64 --out "
      "run",
      place.path());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LT(json_of(place.path() / "run/summary.json")["peak_memory_mb"].get<double>(), 1024);
}

}  // namespace
}  // namespace miniqat::testing::decoding_memory_test

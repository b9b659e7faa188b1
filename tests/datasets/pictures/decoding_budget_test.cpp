#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/interruption.h"
#include "datasets/decoding.h"
#include "datasets/pictures/formats.h"
#include "tests/datasets/dataset_files.h"

namespace miniqat::datasets::decoding_budget_test {
namespace {

TEST(DecodingBudgetTest, ManyThreadsHoldNoMoreThanItAltogether) {
  constexpr std::int64_t kBytes = 1000;
  DecodingBudget budget(kBytes);
  std::atomic<std::int64_t> held = 0, most = 0, alone = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 32; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        // Some are larger than the whole.
        const std::int64_t bytes = (thread + i) % 50 == 0 ? 3 * kBytes : 1 + 37 * ((thread * 200 + i) % 11);
        const DecodingBudget::Share share(budget, bytes);
        const std::int64_t now = held += bytes;
        if (bytes > kBytes) alone += now == bytes ? 1 : -1'000'000;
        for (std::int64_t before = most; bytes <= kBytes && now > before && !most.compare_exchange_weak(before, now);) {
        }
        held -= bytes;
      }
    });
  threads.clear();
  EXPECT_LE(most, kBytes);
  EXPECT_GT(alone, 0);
  EXPECT_EQ(held, 0);
}

TEST(DecodingBudgetTest, ASignalEndsTheWait) {
  DecodingBudget budget(10);
  const DecodingBudget::Share first(budget, 10);
  const InterruptionScope interrupted([] { throw Interruption(); });
  EXPECT_THROW(DecodingBudget::Share(budget, 1), Interruption);
}

/// What a decoder of the picture takes.
std::int64_t bytes_of(const std::string& file, int channels = 3) {
  return picture_header(file, "a picture").decoding_bytes(0, channels);
}

TEST(DecodingBudgetTest, APictureCountsAsWhatItsDecoderHolds) {
  constexpr std::int64_t kPixels = 40 * 30;
  const Picture colour = testing::make_picture(40, 30, 3), grey = testing::make_picture(40, 30, 1);
  EXPECT_EQ(bytes_of(testing::jpeg_bytes(colour)), 3 * kPixels);
  EXPECT_EQ(bytes_of(testing::jpeg_bytes(grey), 1), kPixels);
  EXPECT_EQ(bytes_of(testing::jpeg_bytes(grey)), 4 * kPixels);
  EXPECT_EQ(bytes_of(testing::png_bytes(testing::make_picture(40, 30, 4))), 4 * kPixels);
  EXPECT_EQ(bytes_of(testing::turned_webp_bytes(colour, 6)), 8 * kPixels);
  EXPECT_EQ(picture_header(testing::jpeg_bytes(colour), "a").decoding_bytes(7, 3), 3 * kPixels + 40 * 7 * 3 * 4);
  // One that comes in several scans: progressive, or with a first scan of one component.
  std::string progressive = testing::jpeg_bytes(colour);
  progressive[progressive.find("\xff\xc0") + 1] = '\xc2';
  EXPECT_EQ(bytes_of(progressive), 9 * kPixels);
  std::string parted = testing::jpeg_bytes(colour);
  const std::size_t scan = parted.find("\xff\xda");
  parted[scan + 3] = 8;
  parted[scan + 4] = 1;
  parted.erase(scan + 7, 4);
  EXPECT_EQ(bytes_of(parted), 9 * kPixels);
}

}  // namespace
}  // namespace miniqat::datasets::decoding_budget_test

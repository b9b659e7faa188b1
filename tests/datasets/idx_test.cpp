#include "datasets/idx.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/text/error.h"
#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/mnist.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::idx_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::TempDir;

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string header(const std::vector<std::uint32_t>& words) {
  std::string bytes;
  for (const std::uint32_t word : words) bytes += big_endian(word);
  return bytes;
}

/// n images of h x w whose bytes count up.
std::string images(std::uint32_t n, std::uint32_t h = 3, std::uint32_t w = 2) {
  std::string bytes = header({2051, n, h, w});
  for (std::uint32_t i = 0; i < n * h * w; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::string labels(std::uint32_t n) {
  std::string bytes = header({2049, n});
  for (std::uint32_t i = 0; i < n; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

std::string gzip(const std::string& bytes) { return testing::gzip_bytes(bytes, 9); }

/// What reading `bytes` as an image file throws; that must name the file.
std::string images_error(const std::string& bytes) {
  const TempDir dir;
  const auto path = dir.write("pictures", bytes);
  const std::string error = error_of([&] { read_idx_images(path); });
  EXPECT_TRUE(mentions(error, {path.string()}));
  return error;
}

std::string labels_error(const std::string& bytes) {
  const TempDir dir;
  const auto path = dir.write("answers", bytes);
  const std::string error = error_of([&] { read_idx_labels(path, 10); });
  EXPECT_TRUE(mentions(error, {path.string()}));
  return error;
}

void write_data_set(const TempDir& dir, const std::string& folder = "") {
  dir.write(folder + "train-images-idx3-ubyte", images(20));
  dir.write(folder + "train-labels-idx1-ubyte", labels(20));
  dir.write(folder + "t10k-images-idx3-ubyte", images(10));
  dir.write(folder + "t10k-labels-idx1-ubyte", labels(10));
}

TEST(Idx, ReadsRawAndGzippedWhateverTheName) {
  const TempDir dir;
  for (const bool compressed : {false, true}) {
    const auto picture_path = dir.write("a.gz", compressed ? gzip(images(4)) : images(4));
    const auto answer_path = dir.write("b", compressed ? gzip(labels(12)) : labels(12));
    const Tensor pictures = read_idx_images(picture_path);
    ASSERT_EQ(pictures.shape(), (Shape{4, 3, 2, 1}));
    for (int i = 0; i < 24; ++i) EXPECT_EQ(pictures.data<std::uint8_t>()[i], i);
    const Tensor answers = read_idx_labels(answer_path, 10);
    ASSERT_EQ(answers.shape(), (Shape{12}));
    for (int i = 0; i < 12; ++i) EXPECT_EQ(answers.data<std::int32_t>()[i], i % 10);
  }
}

TEST(Idx, ReadsGzipOfSeveralMembers) {
  const TempDir dir;
  const std::string bytes = images(4);
  const auto path = dir.write("a", gzip(bytes.substr(0, 10)) + gzip(bytes.substr(10)));
  EXPECT_EQ(read_idx_images(path).data<std::uint8_t>()[23], 23);
}

TEST(Idx, RefusesMalformedImages) {
  EXPECT_TRUE(mentions(images_error(""), {"is empty"}));
  EXPECT_TRUE(mentions(images_error(images(4).substr(0, 3)), {"cut short: 3 bytes"}));
  EXPECT_TRUE(mentions(images_error(images(4).substr(0, 15)), {"cut short: 15 bytes"}));
  EXPECT_TRUE(mentions(images_error(images(4).substr(0, 16)), {"4x3x2", "it has 16 bytes"}));
  EXPECT_TRUE(mentions(images_error(images(4).substr(0, 39)), {"40 bytes", "it has 39 bytes"}));
  EXPECT_TRUE(mentions(images_error(images(4) + "x"), {"surplus", "it has 41"}));
  EXPECT_TRUE(mentions(images_error(labels(40)), {"2049 of IDX labels", "have 2051"}));
  EXPECT_TRUE(mentions(images_error("PNG, honestly, it is one"), {"magic number"}));
  EXPECT_TRUE(mentions(images_error(header({2051, 4, 0, 28})), {"4x0x28"}));
}

TEST(Idx, RefusesMalformedLabels) {
  EXPECT_TRUE(mentions(labels_error(""), {"is empty"}));
  EXPECT_TRUE(mentions(labels_error(images(4)), {"2051 of IDX images"}));
  EXPECT_TRUE(mentions(labels_error(labels(9).substr(0, 12)), {"cut short"}));
  EXPECT_TRUE(mentions(labels_error(labels(9) + '\1'), {"surplus"}));
  EXPECT_TRUE(mentions(labels_error(header({2049, 0})), {"holds nothing"}));
  EXPECT_TRUE(mentions(labels_error(header({2049, 3}) + "\1\2\12"), {"example 2", "label 10"}));
}

TEST(Idx, RefusesMalformedGzip) {
  const std::string good = gzip(images(40, 28, 28));
  EXPECT_TRUE(mentions(images_error(gzip("")), {"is empty"}));
  EXPECT_TRUE(mentions(images_error(gzip(images(4).substr(0, 39))), {"cut short", "39 bytes"}));
  EXPECT_TRUE(mentions(images_error(gzip(images(4) + "x")), {"surplus"}));
  for (const std::size_t length : {std::size_t{2}, std::size_t{12}, good.size() / 2, good.size() - 1})
    EXPECT_TRUE(mentions(images_error(good.substr(0, length)), {"cut short"})) << length;
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  EXPECT_TRUE(mentions(images_error(wrong_checksum), {"corrupt"}));
  std::string wrong_header = good;
  wrong_header[2] = 99;
  EXPECT_TRUE(mentions(images_error(wrong_header), {"corrupt"}));
  EXPECT_TRUE(mentions(images_error(good + "rubbish"), {"corrupt"}));
}

TEST(Idx, BelievesNoHeaderThatClaimsTooMuch) {
  const std::uint32_t huge = 0xffffffff;
  for (const auto& words : {std::vector<std::uint32_t>{2051, huge, huge, huge}, {2051, huge, 28, 28}}) {
    EXPECT_TRUE(mentions(images_error(header(words) + "few"), {"absurd"}));
    EXPECT_TRUE(mentions(images_error(gzip(header(words) + "few")), {"absurd"}));
  }
  // Two gigabytes are possible, but not in these files.
  const std::vector<std::uint32_t> large = {2051, 1u << 31, 1, 1};
  EXPECT_TRUE(mentions(images_error(header(large) + "few"), {"it has 19 bytes"}));
  EXPECT_TRUE(mentions(images_error(gzip(header(large) + "few")), {"it has 19 bytes"}));
}

TEST(Idx, LoadsBothSplits) {
  const TempDir dir;
  write_data_set(dir);
  const Splits splits = load("fashion-mnist", dir.path());
  EXPECT_EQ(splits.train.name, "fashion-mnist");
  EXPECT_EQ(splits.train.size(), 20);
  EXPECT_EQ(splits.test.size(), 10);
  EXPECT_EQ(splits.test.scale, 1.0f / 255);
  EXPECT_EQ(splits.test.zero_point, 0);
  EXPECT_NO_THROW(splits.train.check());
}

TEST(Idx, PrefersRawFilesAndKnowsTheDottedName) {
  const TempDir dir;
  write_data_set(dir);
  std::filesystem::rename(dir.path() / "train-images-idx3-ubyte", dir.path() / "train-images.idx3-ubyte");
  dir.write("train-images-idx3-ubyte.gz", gzip(images(19)));
  EXPECT_EQ(load_idx("mnist", dir.path()).train.size(), 20);
  std::filesystem::remove(dir.path() / "train-images.idx3-ubyte");
  dir.write("train-labels-idx1-ubyte", labels(19));
  EXPECT_EQ(load_idx("mnist", dir.path()).train.size(), 19);
}

TEST(Idx, RefusesSplitsThatDoNotFit) {
  const TempDir dir;
  write_data_set(dir);
  dir.write("t10k-labels-idx1-ubyte", labels(11));
  EXPECT_TRUE(
      mentions(error_of([&] { load_idx("mnist", dir.path()); }), {"t10k-images-idx3-ubyte", "10 images", "11 labels"}));
  write_data_set(dir);
  dir.write("t10k-images-idx3-ubyte", images(10, 2, 3));
  EXPECT_TRUE(mentions(error_of([&] { load_idx("mnist", dir.path()); }), {"[3,2,1]", "[2,3,1]"}));
}

/// Two megabytes of zeros that would expand to two gigabytes, beside ten labels.
TEST(Idx, ComparesCountsBeforeItExpandsAnything) {
  const TempDir dir;
  write_data_set(dir);
  // Cut off, so that expanding it would be refused for that.
  const std::string bomb = gzip(header({2051, 1u << 30, 2, 1}) + std::string(1 << 20, '\0'));
  dir.write("t10k-images-idx3-ubyte", bomb.substr(0, bomb.size() / 2));
  EXPECT_TRUE(
      mentions(error_of([&] { load_idx("mnist", dir.path()); }), {"t10k-images", "1073741824 images", "10 labels"}));
  dir.write("t10k-labels-idx1-ubyte", gzip(header({2049, 1u << 30}) + "cut short").substr(0, 30));
  EXPECT_TRUE(mentions(error_of([&] { load_idx("mnist", dir.path()); }), {"[3,2,1]", "[2,1,1]"}));
}

// A user's own pair, too.
TEST(Idx, APairsCountsAreComparedBeforeItIsExpanded) {
  const TempDir dir;
  const std::string bomb = gzip(header({2051, 1u << 30, 2, 1}) + std::string(1 << 20, '\0'));
  const auto pictures = dir.write("train-images.gz", bomb.substr(0, bomb.size() / 2));
  const auto answers = dir.write("train-labels", labels(10));
  const std::string error = error_of([&] { read_idx_pair(pictures, answers, 10); });
  EXPECT_TRUE(mentions(error, {"train-images.gz\" has 1073741824 images", "train-labels\" has 10 labels"}));
}

// A small .gz can hold gigabytes of pictures that nobody wants.
TEST(Idx, PicturesCanBeRefusedBeforeTheyAreExpanded) {
  const TempDir dir;
  write_data_set(dir);
  Shape seen;
  load("mnist", dir.path(), {.accept = [&](const Shape& example) { seen = example; }});
  EXPECT_EQ(seen, (Shape{3, 2, 1}));
  // Cut off, so that expanding them would be refused for that.
  const std::string large = gzip(header({2051, 10, 8192, 8192}) + std::string(1000, '\0'));
  for (const char* stem : {"train", "t10k"}) {
    std::filesystem::remove(dir.path() / concat(stem, "-images-idx3-ubyte"));
    dir.write(concat(stem, "-images-idx3-ubyte.gz"), large);
    dir.write(concat(stem, "-labels-idx1-ubyte"), labels(10));
  }
  EXPECT_TRUE(mentions(error_of([&] { load("mnist", dir.path()); }), {"cut short"}));
  const auto refuse = [](const Shape& example) { fail("refused: ", example); };
  EXPECT_EQ(error_of([&] { load("mnist", dir.path(), {.accept = refuse}); }), "refused: [8192,8192,1]");
}

/// Files of one pixel a picture whose labels begin as the real ones do.
void write_family(const TempDir& dir, const std::string& train, const std::string& test) {
  const auto write_split = [&](const std::string& stem, std::uint32_t n, const std::string& first) {
    std::string answers = labels(n);
    for (std::size_t i = 0; i < first.size(); ++i) answers[8 + i] = static_cast<char>(first[i] - '0');
    dir.write(stem + "-images-idx3-ubyte", images(n, 1, 1));
    dir.write(stem + "-labels-idx1-ubyte", answers);
  };
  write_split("train", 60000, train);
  write_split("t10k", 10000, test);
}

TEST(Idx, TellsMnistFromFashionMnist) {
  const TempDir dir;
  const auto refusal = [&](const std::string& name) { return error_of([&] { load(name, dir.path()); }); };
  write_family(dir, "9003027255", "9211614657");
  EXPECT_TRUE(mentions(refusal("mnist"), {"data set mnist", "holds fashion-mnist"}));
  EXPECT_EQ(refusal("fashion-mnist"), "");
  write_family(dir, "5041921314", "7210414959");
  EXPECT_TRUE(mentions(refusal("fashion-mnist"), {"data set fashion-mnist", "holds mnist"}));
  EXPECT_EQ(refusal("mnist"), "");
  // Neither: another set of the family's format.
  write_family(dir, "5041921315", "7210414959");
  EXPECT_EQ(refusal("fashion-mnist"), "");
  EXPECT_EQ(refusal("mnist"), "");
}

TEST(Idx, SaysWhichFileIsMissingAndWhere) {
  const TempDir dir;
  write_data_set(dir);
  std::filesystem::remove(dir.path() / "t10k-labels-idx1-ubyte");
  EXPECT_TRUE(mentions(error_of([&] { load_idx("mnist", dir.path()); }),
                       {"data set mnist", dir.path().string(), "t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte.gz",
                        "--data-dir", "MINIQAT_DATA_DIR"}));
}

TEST(Idx, ReadsTheRealMnist) {
  const std::filesystem::path mnist = testing::mnist_folder();
  if (mnist.empty()) GTEST_SKIP() << testing::kNoMnist;
  const Splits splits = load("mnist", mnist);
  EXPECT_EQ(splits.train.images.shape(), (Shape{60000, 28, 28, 1}));
  EXPECT_EQ(splits.test.images.shape(), (Shape{10000, 28, 28, 1}));
  EXPECT_EQ(splits.train.labels.shape(), (Shape{60000}));
  EXPECT_EQ(splits.train.labels.data<std::int32_t>()[0], 5);
  EXPECT_EQ(splits.test.labels.data<std::int32_t>()[0], 7);
  EXPECT_TRUE(mentions(error_of([&] { load("fashion-mnist", mnist); }), {"holds mnist"}));
}

}  // namespace
}  // namespace miniqat::datasets::idx_test


#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "datasets/decoding.h"
#include "datasets/known_datasets.h"
#include "datasets/pictures/read_pictures.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"
#include "tests/thread_counts.h"

namespace miniqat::datasets::user_files_test {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::mentions;

/// Every set has the same pictures of 3 x 2 pixels, 12 of them with labels 0, 1, 2, 0, ..., and two test pictures.
class UserFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("MINIQAT_CACHE_DIR", (folder_.path() / "cache").c_str(), 1); }
  void TearDown() override { unsetenv("MINIQAT_CACHE_DIR"); }

  static constexpr int kTrain = 12, kTest = 2;
  static Picture picture(int i) { return testing::make_picture(3, 2, 1, i); }
  static int label(int i) { return i % 3; }

  fs::path put(const std::string& name, const std::string& bytes) const {
    fs::create_directories((folder_.path() / name).parent_path());
    return folder_.write(name, bytes);
  }
  fs::path under(const std::string& name) const { return folder_.path() / name; }

  static Dataset split(int first, int count) {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    for (int i = 0; i < count; ++i) {
      const Picture one = picture(first + i);
      pixels.insert(pixels.end(), one.pixels.begin(), one.pixels.end());
      labels.push_back(label(i));
    }
    return {.name = "small",
            .images = Tensor::from<std::uint8_t>({count, 3, 2, 1}, pixels),
            .labels = Tensor::from<std::int32_t>({count}, labels)};
  }
  static Splits small() { return {.train = split(0, kTrain), .test = split(100, kTest)}; }

  fs::path class_folders() const {
    testing::write_class_folders(under("png"), small());
    return under("png");
  }
  fs::path npy_folder() const {
    testing::write_npy_folder(under("npy"), small());
    return under("npy");
  }
  fs::path npz_file() const {
    testing::write_npz_file(under("all.npz"), small());
    return under("all.npz");
  }
  fs::path csv_folder() const {
    testing::write_csv_folder(under("csv"), small());
    return under("csv");
  }
  fs::path idx_folder() const {
    testing::write_idx_folder(under("idx"), small());
    return under("idx");
  }

  static LoadOptions sized() {
    LoadOptions options;
    options.pictures.height = 3;
    options.pictures.width = 2;
    return options;
  }

  void expect_pictures(const Splits& splits) const {
    ASSERT_EQ(splits.train.images.shape(), (Shape{kTrain, 3, 2, 1}));
    ASSERT_EQ(splits.test.images.shape(), (Shape{kTest, 3, 2, 1}));
    EXPECT_EQ(splits.train.classes, 3);
    for (int i = 0; i < kTrain; ++i) {
      EXPECT_EQ(splits.train.labels.data<std::int32_t>()[i], label(i)) << i;
      const auto* pixels = splits.train.images.data<std::uint8_t>() + i * 6;
      EXPECT_EQ(std::vector<std::uint8_t>(pixels, pixels + 6), picture(i).pixels) << i;
    }
    const auto* pixels = splits.test.images.data<std::uint8_t>() + 6;
    EXPECT_EQ(std::vector<std::uint8_t>(pixels, pixels + 6), picture(101).pixels);
  }

  testing::TempDir folder_;
};

TEST_F(UserFilesTest, EveryFormatGivesTheSamePictures) {
  for (const fs::path& path : {class_folders(), npy_folder(), npz_file(), csv_folder(), idx_folder()}) {
    SCOPED_TRACE(path);
    expect_pictures(load(path.string(), {}, sized()));
  }
}

TEST_F(UserFilesTest, FoldersNameTheClasses) {
  EXPECT_EQ(load(class_folders().string()).train.class_names, (std::vector<std::string>{"0", "1", "2"}));
  put("named/train/dog/a.png", testing::png_bytes(picture(1)));
  put("named/train/Cat/a.PNG", testing::png_bytes(picture(2)));
  put("named/val/dog/x.png", testing::png_bytes(picture(3)));
  const Splits splits = load(under("named").string());
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"Cat", "dog"}));
  EXPECT_EQ(splits.test.labels.data<std::int32_t>()[0], 1);
  put("named/val/bird/x.png", testing::png_bytes(picture(3)));
  EXPECT_TRUE(mentions(error_of([&] { load(under("named").string()); }),
                       {"\"bird\", which train/ has not; its classes are Cat, dog"}));
}

TEST_F(UserFilesTest, PartsMayHaveCapitals) {
  put("capitals/Train/a/1.png", testing::png_bytes(picture(1)));
  put("capitals/Train/b/1.png", testing::png_bytes(picture(2)));
  put("capitals/TEST/b/1.png", testing::png_bytes(picture(3)));
  const Splits splits = load(under("capitals").string());
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(splits.test.size(), 1);
  EXPECT_EQ(splits.test.labels.data<std::int32_t>()[0], 1);
}

TEST_F(UserFilesTest, PartsNeedOneForTrainingAndNothingBesideThem) {
  const auto error = [&](const std::string& name) { return error_of([&] { load(under(name).string()); }); };
  for (const char* part : {"test", "val"})
    for (const char* name : {"a", "b"}) put(concat("no/", part, "/", name, "/1.png"), testing::png_bytes(picture(1)));
  EXPECT_TRUE(mentions(error("no"), {"has val/ and test/ but no train/"}));
  fs::remove_all(under("no/val"));
  EXPECT_TRUE(mentions(error("no"), {"has test/ but no train/"}));
  LoadOptions options;
  options.train_optional = true;
  options.least_classes = 2;
  options.class_names = {"a", "b"};
  const Splits splits = load(under("no").string(), {}, options);
  EXPECT_EQ(splits.test.size(), 2);
  EXPECT_FALSE(splits.train.images.defined());

  fs::rename(under("no/test"), under("no/train"));
  put("no/yak/1.png", testing::png_bytes(picture(1)));
  EXPECT_TRUE(mentions(error("no"), {"yak beside train/"}));
  put("vehicles/train/1.png", testing::png_bytes(picture(1)));
  put("vehicles/car/1.png", testing::png_bytes(picture(1)));
  EXPECT_TRUE(mentions(error("vehicles"), {"vehicles/train", "taken for the training part", "holds no folders"}));
}

TEST_F(UserFilesTest, ANetworkMayTakeAllForTestPictures) {
  LoadOptions options;
  options.whole_as_test = true;
  for (const char* name : {"0", "1", "2"}) put(concat("flat/", name, "/1.png"), testing::png_bytes(picture(1)));
  std::string text;
  for (int i = 0; i < 5; ++i) text += concat(i % 2, ",1,2,3,4\n");
  put("flat.csv", text);
  EXPECT_EQ(load(under("flat").string(), {}, options).test.size(), 3);
  EXPECT_EQ(load(under("flat.csv").string(), {}, options).test.size(), 5);
  EXPECT_EQ(load(class_folders().string(), {}, options).test.size(), kTest);
  EXPECT_TRUE(mentions(error_of([&] { load(under("flat.csv").string()); }),
                       {"each class has fewer than 6 pictures", "test/ folder"}));
}

TEST_F(UserFilesTest, ClassesWithoutNamesAreNumbers) {
  put("digits/train/3/a.png", testing::png_bytes(picture(1)));
  put("digits/train/7/a.png", testing::png_bytes(picture(1)));
  put("digits/test/7/a.png", testing::png_bytes(picture(2)));
  LoadOptions options;
  options.least_classes = 10;
  const Splits splits = load(under("digits").string(), {}, options);
  EXPECT_EQ(splits.train.labels.data<std::int32_t>()[0], 3);
  EXPECT_EQ(splits.test.labels.data<std::int32_t>()[0], 7);
  EXPECT_EQ(splits.test.classes, 10);
  options.least_classes = 7;
  EXPECT_TRUE(mentions(error_of([&] { load(under("digits").string(), {}, options); }),
                       {"\"7\", which the network does not know", "0, 1, 2, 3, 4, 5, 6"}));
}

TEST_F(UserFilesTest, IdxFilesAreToldApartByWholeWords) {
  idx_folder();
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(under("idx")))
    names.push_back(entry.path().filename().string());
  for (const std::string& name : names)
    if (name.starts_with("train")) fs::rename(under("idx/" + name), under("idx/latest" + name.substr(5)));
  expect_pictures(load(under("idx").string()));
}

TEST_F(UserFilesTest, WithoutTestPicturesOneInSixOfEachClassBecomesOne) {
  for (int i = 0; i < 26; ++i)
    put(concat("flat/", i % 2 == 0 ? "even" : "odd", "/", 10 + i, ".png"), testing::png_bytes(picture(i)));
  const Splits splits = load(under("flat").string());
  EXPECT_EQ(splits.train.size(), 22);
  ASSERT_EQ(splits.test.size(), 4);
  int odd = 0;
  for (const std::int32_t found : splits.test.labels.values<std::int32_t>()) odd += found;
  EXPECT_EQ(odd, 2);
}

TEST_F(UserFilesTest, DecodedPicturesAreKept) {
  const fs::path path = class_folders();
  load(path.string());
  // Damaged behind the cache's back: size and time stay.
  const fs::path victim = path / "train/0/00000.png";
  const fs::file_time_type time = fs::last_write_time(victim);
  std::string bytes = read_file(victim);
  bytes[40] ^= 1;
  std::ofstream(victim, std::ios::binary) << bytes;
  fs::last_write_time(victim, time);
  expect_pictures(load(path.string()));
  // A file with another time is read again, and so is all for another size.
  EXPECT_TRUE(mentions(error_of([&] {
                         load(path.string(), {}, [] {
                           LoadOptions o;
                           o.pictures.height = o.pictures.width = 4;
                           return o;
                         }());
                       }),
                       {"00000.png", "damaged"}));
  fs::last_write_time(victim, time + std::chrono::seconds(1));
  EXPECT_TRUE(mentions(error_of([&] { load(path.string()); }), {"00000.png", "damaged"}));
}

TEST_F(UserFilesTest, ADamagedCacheIsReplaced) {
  const fs::path path = class_folders();
  load(path.string());
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(under("cache"))) {
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
    ++files;
  }
  EXPECT_EQ(files, 2);
  expect_pictures(load(path.string()));
}

TEST_F(UserFilesTest, AChangedPictureIsDecodedAgain) {
  const fs::path path = class_folders();
  load(path.string());
  const Picture other = testing::make_picture(3, 2, 1, 77);
  put("png/train/0/00000.png", testing::png_bytes(other));
  const Splits splits = load(path.string());
  const auto* pixels = splits.train.images.data<std::uint8_t>();
  EXPECT_EQ(std::vector<std::uint8_t>(pixels, pixels + 6), other.pixels);
}

TEST_F(UserFilesTest, ADamagedByteOfTheCacheIsNoticed) {
  const fs::path path = class_folders();
  load(path.string());
  const Picture first = picture(0);
  int damaged = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(under("cache"))) {
    std::string bytes = read_file(entry.path());
    const std::size_t place = bytes.find(std::string(first.pixels.begin(), first.pixels.end()));
    if (place == std::string::npos) continue;
    bytes[place] ^= 1;
    std::ofstream(entry.path(), std::ios::binary) << bytes;
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  expect_pictures(load(path.string()));
}

TEST_F(UserFilesTest, DecodingTellsOfItsProgress) {
  std::vector<std::pair<std::int64_t, std::int64_t>> heard;
  tell_of_decoding([&](std::int64_t done, std::int64_t all) { heard.emplace_back(done, all); });
  load(class_folders().string());
  const std::size_t decoded = heard.size();
  load(under("png").string());
  tell_of_decoding({});
  const auto heard_of = [&](std::int64_t done, std::int64_t all) {
    return std::ranges::count(heard, std::pair<std::int64_t, std::int64_t>(done, all));
  };
  EXPECT_EQ(heard_of(kTrain, kTrain), 1);
  EXPECT_EQ(heard_of(kTest, kTest), 1);
  EXPECT_GE(heard_of(0, kTrain), 1) << "while the sizes are read";
  EXPECT_EQ(heard.back(), (std::pair<std::int64_t, std::int64_t>(kTest, kTest)));
  EXPECT_EQ(heard.size(), decoded) << "the cache tells nothing";
}

TEST_F(UserFilesTest, AllThreadsDecodeTheSame) {
  for (int i = 0; i < 700; ++i)
    put(concat("many/", i % 3, "/", 1000 + i, ".png"), testing::png_bytes(testing::make_picture(9, 7, 3, i)));
  PictureOptions options;
  options.height = 5;
  options.width = 6;
  const ClassFolders folders = list_class_folders(under("many"));
  // All of them stay: new pictures in the memory of old ones could be right by chance.
  std::vector<Tensor> decoded;
  testing::with_thread_counts([&] {
    BrokenFiles none;
    decoded.push_back(read_pictures(folders, {5, 6, 3}, options, none));
    EXPECT_TRUE(std::ranges::equal(decoded.front().values<std::uint8_t>(), decoded.back().values<std::uint8_t>()))
        << thread_count();
  });
}

TEST_F(UserFilesTest, HiddenFilesAndFoldersAreLeftOut) {
  class_folders();
  for (const char* name : {"png/train/.git/a.png", "png/train/0/.checkpoints/a.png", "png/train/0/._00000.png"})
    put(name, "no picture");
  expect_pictures(load(under("png").string()));
}

TEST_F(UserFilesTest, AKnownNameIsNoFolder) {
  const fs::path before = fs::current_path();
  fs::create_directories(under("mnist"));
  fs::create_directories(under("pets"));
  fs::current_path(folder_.path());
  EXPECT_FALSE(is_path("mnist"));
  EXPECT_TRUE(is_path("pets"));
  fs::current_path(before);
}

TEST_F(UserFilesTest, KnownClassesKeepTheirNumbers) {
  put("few/train/dog/a.png", testing::png_bytes(picture(1)));
  put("few/test/dog/a.png", testing::png_bytes(picture(2)));
  LoadOptions options;
  options.class_names = {"cat", "cow", "dog"};
  options.least_classes = 3;
  const Splits splits = load(under("few").string(), {}, options);
  EXPECT_EQ(splits.train.labels.data<std::int32_t>()[0], 2);
  EXPECT_EQ(splits.train.classes, 3);
  EXPECT_EQ(splits.test.class_names, options.class_names);
  options.class_names = {"cat", "cow"};
  EXPECT_TRUE(mentions(error_of([&] { load(under("few").string(), {}, options); }), {"\"dog\"", "cat, cow"}));
}

TEST_F(UserFilesTest, WhatIsWrongIsNamed) {
  const auto error = [&](const std::string& name) { return error_of([&] { load(under(name).string()); }); };
  EXPECT_TRUE(mentions(error("nothing/here"), {"there is no", "nothing/here"}));
  fs::create_directories(under("empty"));
  EXPECT_TRUE(mentions(error("empty"), {"empty", "x_train.npy", "train.csv"}));
  put("text.txt", "x");
  EXPECT_TRUE(mentions(error("text.txt"), {"text.txt", "is no data set"}));
  put("gap/a/1.png", testing::png_bytes(picture(1)));
  put("gap/b/readme.txt", "");
  EXPECT_TRUE(mentions(error("gap"), {"class \"b\"", "holds no"}));
  put("sizes/a/1.png", testing::png_bytes(picture(1)));
  put("sizes/b/2.png", testing::png_bytes(testing::make_picture(4, 2, 1)));
  EXPECT_TRUE(mentions(error("sizes"), {"2 x 3", "2 x 4", "--image-size"}));
  put("cmyk/a/1.jpg", testing::jpeg_bytes(testing::make_picture(3, 2, 4)));
  put("cmyk/b/2.png", testing::png_bytes(picture(1)));
  EXPECT_TRUE(mentions(error("cmyk"), {"1.jpg", "CMYK"}));
  put("one/a/1.png", testing::png_bytes(picture(1)));
  EXPECT_TRUE(mentions(error("one"), {"one class only"}));
  put("half/train-images", std::string("\0\0\x08\x03\0\0\0\1\0\0\0\1\0\0\0\1x", 17));
  EXPECT_TRUE(mentions(error("half"), {"train-images", "labels is missing"}));
}

TEST_F(UserFilesTest, MalformedTablesAreNamed) {
  const auto error = [&](const std::string& text) {
    put("bad.csv", text);
    return error_of([&] { load(under("bad.csv").string()); });
  };
  EXPECT_TRUE(mentions(error(""), {"bad.csv", "no row"}));
  EXPECT_TRUE(mentions(error("1,2,3,4,5\n1,2,3,4\n"), {"line 2", "3 pixels", "4"}));
  EXPECT_TRUE(mentions(error("1,2,3,4,x\n"), {"line 1", "\"x\""}));
  EXPECT_TRUE(mentions(error("1,2,3,4,256\n"), {"line 1", "256"}));
  EXPECT_TRUE(mentions(error("1,2,3,4,nan\n"), {"line 1", "nan"}));
  EXPECT_TRUE(mentions(error("-1,2,3,4,5\n"), {"line 1", "label -1"}));
  EXPECT_TRUE(mentions(error("1,2,3,4,5,6\n"), {"--image-size"}));
  EXPECT_TRUE(mentions(error("1\n"), {"no pixels"}));
}

TEST_F(UserFilesTest, LabelsMayStandAnywhere) {
  std::string text = "p0,p1,p2,p3,Target\n";
  for (int i = 0; i < 12; ++i) text += concat(i, ",1.0,2,3,", i % 2, "\n");
  put("last.csv", text);
  const Splits splits = load(under("last.csv").string());
  EXPECT_EQ(splits.train.example_shape(), (Shape{2, 2, 1}));
  EXPECT_EQ(splits.train.labels.data<std::int32_t>()[1], 1);
  EXPECT_EQ(splits.train.images.data<std::uint8_t>()[4], 1);
}

TEST_F(UserFilesTest, MeanAndDeviationBecomeTheGrid) {
  LoadOptions options;
  options.pictures.mean = 0.5;
  options.pictures.deviation = 0.25;
  const Splits splits = load(class_folders().string(), {}, options);
  EXPECT_EQ(splits.train.zero_point, 128);
  EXPECT_FLOAT_EQ(splits.train.scale, 1 / (255 * 0.25f));
}

TEST_F(UserFilesTest, PathsAreToldFromNames) {
  EXPECT_FALSE(is_path("mnist"));
  EXPECT_TRUE(is_path("./mnist"));
  EXPECT_TRUE(is_path("pictures.npz"));
  EXPECT_EQ(short_name("/data/my.pets/"), "my");
  EXPECT_EQ(short_name("a/digits.csv.gz"), "digits");
  EXPECT_EQ(short_name("mnist"), "mnist");
}

}  // namespace
}  // namespace miniqat::datasets::user_files_test

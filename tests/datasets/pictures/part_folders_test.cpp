// What a folder of pictures leaves out, and what it does with files that cannot be read.

#include "datasets/pictures/part_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "core/files/files.h"
#include "datasets/decoding.h"
#include "datasets/known_datasets.h"
#include "datasets/pictures/read_pictures.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::part_folders_test {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::make_picture;
using testing::mentions;
using testing::png_bytes;

class PartFoldersTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("MINIQAT_CACHE_DIR", (place_.path() / "cache").c_str(), 1); }
  void TearDown() override { unsetenv("MINIQAT_CACHE_DIR"); }

  fs::path under(const std::string& name) const { return place_.path() / "pets" / name; }
  void put(const std::string& name, const std::string& bytes) const {
    fs::create_directories(under(name).parent_path());
    place_.write(fs::path("pets") / name, bytes);
  }
  static std::string picture(int seed) { return png_bytes(make_picture(4, 3, 1, seed)); }
  static std::string name_of(const char* kind, int i) { return concat(kind, "/", 10 + i, ".png"); }

  /// Two classes of twelve pictures.
  void put_pets() const {
    for (int i = 0; i < 24; ++i) put(name_of(i % 2 == 0 ? "cat" : "dog", i / 2), picture(i));
  }
  void damage(const std::string& name) const {
    const std::string bytes = read_file(under(name));
    put(name, bytes.substr(0, bytes.size() / 2));
  }
  void make_fifo(const std::string& name) const { ASSERT_EQ(mkfifo(under(name).c_str(), 0600), 0); }

  Splits load_pets(bool skip_broken = false) const {
    return load((place_.path() / "pets").string(), {}, {.skip_broken = skip_broken});
  }
  std::string error(bool skip_broken = false) const {
    return error_of([&] { load_pets(skip_broken); });
  }
  std::string notes(bool skip_broken = false) const {
    std::string text;
    for (const std::string& note : load_pets(skip_broken).remarks().notes) text += note + "|";
    return text;
  }

  testing::TempDir place_;
};

void expect_same(const Dataset& a, const Dataset& b) {
  ASSERT_EQ(a.images.shape(), b.images.shape());
  EXPECT_TRUE(std::ranges::equal(a.images.values<std::uint8_t>(), b.images.values<std::uint8_t>()));
  EXPECT_TRUE(std::ranges::equal(a.labels.values<std::int32_t>(), b.labels.values<std::int32_t>()));
  EXPECT_EQ(*a.files, *b.files);
}

TEST_F(PartFoldersTest, FilesOfOtherEndingsAreCounted) {
  put_pets();
  EXPECT_EQ(notes(), "");
  for (const char* name :
       {"cat/a.gif", "cat/b.GIF", "dog/c.gif", "dog/d.tiff", "dog/e.tiff", "dog/more/notes", "cat/x.txt"})
    put(name, "?");
  put("cat/.hidden.gif", "?");
  EXPECT_TRUE(mentions(notes(), {"note: ",
                                 "/pets: left out 3 .gif, 2 .tiff, 1 .txt files and 1 file without an ending; "
                                 "pictures are .jpg, .jpeg, .jpe, .jfif, .png, .bmp, .dib, .webp|"}));
}

TEST_F(PartFoldersTest, ManyEndingsMakeOneLine) {
  put_pets();
  for (char letter = 'a'; letter <= 'l'; ++letter) put(concat("cat/x.", letter), "?");
  EXPECT_TRUE(mentions(notes(), {"1 .a, 1 .b", "1 .h files and 4 with other endings"}));
}

TEST_F(PartFoldersTest, PicturesBesideTheClassesAreCounted) {
  put_pets();
  put("stray.png", picture(1));
  put("labels.csv2", "?");
  EXPECT_TRUE(mentions(notes(), {"left out 1 .png file that lie in no class folder"}));
}

TEST_F(PartFoldersTest, EveryPictureEndingIsRead) {
  const Picture colour = make_picture(8, 8, 3);
  for (const char* kind : {"cat", "dog"})
    for (const auto& [ending, bytes] : {std::pair{"jpg", testing::jpeg_bytes(colour)},
                                        {"jpeg", testing::jpeg_bytes(colour)},
                                        {"jpe", testing::jpeg_bytes(colour)},
                                        {"JFIF", testing::jpeg_bytes(colour)},
                                        {"png", png_bytes(colour)},
                                        {"bmp", testing::bmp_bytes(colour)},
                                        {"dib", testing::bmp_bytes(colour)},
                                        {"webp", testing::webp_bytes(colour)}})
      put(concat(kind, "/a.", ending), bytes);
  const Splits splits = load_pets();
  EXPECT_EQ(splits.train.size() + splits.test.size(), 16);
  EXPECT_EQ(splits.train.images.shape()[3], 3);
  EXPECT_TRUE(splits.remarks().notes.empty());
}

TEST_F(PartFoldersTest, AClassOfOtherFilesSaysWhichItHas) {
  put_pets();
  put("bird/a.gif", "?");
  put("bird/b.gif", "?");
  EXPECT_TRUE(mentions(error(), {"class \"bird\"", "holds no picture (.jpg, ", "only 2 .gif files"}));
}

TEST_F(PartFoldersTest, BrokenFilesAreNamedInOneError) {
  put_pets();
  for (int i = 0; i < 12; ++i) damage(name_of("cat", i));
  put(name_of("dog", 3), "GIF89a");
  const std::string text = error();
  EXPECT_TRUE(mentions(text, {"/pets\": 13 of 24 files cannot be read: \"cat/10.png\" is a damaged PNG: ",
                              "\"dog/13.png\" is a GIF picture", "; and 3 more; ", "--skip-broken"}));
  EXPECT_EQ(text.find("cat/19.png"), std::string::npos) << "the tenth, in the order of numbers: " << text;
}

TEST_F(PartFoldersTest, BrokenFilesOfAllPartsAreCounted) {
  for (const char* part : {"train", "test"})
    for (int i = 0; i < 6; ++i) put(concat(part, "/", name_of(i % 2 == 0 ? "cat" : "dog", i)), picture(i));
  damage("train/cat/10.png");
  damage("test/dog/11.png");
  EXPECT_TRUE(mentions(error(), {"2 of 12 files", "\"train/cat/10.png\"", "\"test/dog/11.png\""}));
  const Splits splits = load_pets(true);
  EXPECT_EQ(splits.train.size(), 5);
  EXPECT_EQ(splits.test.size(), 5);
}

TEST_F(PartFoldersTest, SkippingMovesNoOtherPicture) {
  put_pets();
  const Splits whole = load_pets();
  damage("cat/12.png");
  damage("dog/15.png");
  ASSERT_EQ(whole.test.file_of(0), "cat/15.png");
  for (const char* state : {"decoded", "from the cache"}) {
    SCOPED_TRACE(state);
    const Splits skipped = load_pets(true);
    ASSERT_EQ(skipped.remarks().skipped.size(), 2u);
    EXPECT_EQ(skipped.remarks().skipped[0].file, "cat/12.png");
    EXPECT_TRUE(mentions(skipped.remarks().skipped[0].why, {"\"cat/12.png\" is a damaged PNG: "}));
    EXPECT_TRUE(mentions(skipped.remarks().notes.at(0),
                         {"note: ", "skipped 2 of 24 files", "\"dog/15.png\" is a damaged PNG"}));
    const auto without = [](const Dataset& set, const std::string& file) {
      std::vector<std::int64_t> kept;
      for (std::int64_t i = 0; i < set.size(); ++i)
        if (set.file_of(i) != file) kept.push_back(i);
      return examples_at(set, kept);
    };
    expect_same(skipped.train, without(whole.train, "cat/12.png"));
    expect_same(skipped.test, without(whole.test, "dog/15.png"));
  }
  EXPECT_TRUE(mentions(error(), {"2 of 24 files cannot be read"})) << "the cache hides nothing";
}

TEST_F(PartFoldersTest, ARepairedFileComesBack) {
  put_pets();
  const Splits whole = load_pets();
  const std::string good = read_file(under("cat/12.png"));
  damage("cat/12.png");
  EXPECT_EQ(load_pets(true).train.size(), whole.train.size() - 1);
  put("cat/12.png", good);
  expect_same(load_pets(true).train, whole.train);
  // A right that was missing changes neither size nor time: the cache asks again.
  if (geteuid() == 0) return;
  fs::permissions(under("cat/12.png"), fs::perms::none);
  EXPECT_EQ(load_pets(true).train.size(), whole.train.size() - 1);
  fs::permissions(under("cat/12.png"), fs::perms::owner_all);
  expect_same(load_pets(true).train, whole.train);
}

TEST_F(PartFoldersTest, ABrokenFileDecidesNoColour) {
  put_pets();
  put("cat/00.png", png_bytes(make_picture(4, 3, 3)).substr(0, 60));
  EXPECT_EQ(load_pets(true).train.images.shape()[3], 1);
}

TEST_F(PartFoldersTest, LinksToNothingAreBrokenFiles) {
  put_pets();
  fs::create_symlink("../.git/annex/7f.png", under("cat/99.png"));
  fs::create_symlink("/mnt/disk/more", under("dog/more"));
  fs::create_symlink(under("cat/10.png"), under("dog/70.png"));
  fs::create_symlink("gone.txt", under("dog/read.txt"));
  EXPECT_TRUE(mentions(error(), {"2 of 27 files cannot be read",
                                 "\"cat/99.png\" is a link to \"../.git/annex/7f.png\", which is not there",
                                 "\"dog/more\" is a link to \"/mnt/disk/more\", which is not there"}));
  EXPECT_TRUE(mentions(notes(true), {"left out 1 .txt file", "skipped 2 of 27 files"}));
}

TEST_F(PartFoldersTest, ALinkToAFolderAroundItIsAnError) {
  put_pets();
  for (const char* target : {"..", "."}) {
    fs::create_directory_symlink(target, under("cat/again"));
    EXPECT_TRUE(mentions(error(), {"cat/again\" is a link to ", "a folder around it: remove it"})) << target;
    fs::remove(under("cat/again"));
  }
  place_.write("elsewhere/90.png", picture(90));
  fs::create_directory_symlink(place_.path() / "elsewhere", under("cat/more"));
  const Splits splits = load_pets();
  EXPECT_EQ(splits.train.size() + splits.test.size(), 25);
}

TEST_F(PartFoldersTest, NoFifoIsEverOpened) {
  put_pets();
  make_fifo("cat/30.png");
  make_fifo("cat/31");
  // Who opened it would wait for a writer for ever.
  EXPECT_TRUE(mentions(error(), {"1 of 25 files cannot be read: \"cat/30.png\" is a FIFO, no file"}));
  EXPECT_EQ(load_pets(true).remarks().skipped.size(), 1u);
  fs::create_directories(under("arrays"));
  for (const char* name : {"arrays/x_train.npy", "arrays/y_train.npy"}) make_fifo(name);
  EXPECT_TRUE(mentions(error_of([&] { load(under("arrays").string()); }), {"x_train.npy", "is no file"}));
}

TEST_F(PartFoldersTest, AClassThatLostAllItsFilesIsAnError) {
  put_pets();
  for (const char* name : {"bird/1.png", "bird/2.png"}) {
    fs::create_directories(under("bird"));
    fs::create_symlink("/mnt/disk/gone.png", under(name));
  }
  EXPECT_TRUE(mentions(error(), {"2 of 26 files", "\"bird/1.png\" is a link to"}));
  EXPECT_TRUE(mentions(error(true), {"class \"bird\"", "has 2 pictures of it, and none can be read"}));
}

TEST_F(PartFoldersTest, AClassOrAPartThatIsALinkToNothingIsMissed) {
  put_pets();
  fs::create_symlink("/mnt/disk/bird", under("bird"));
  for (const bool skip_broken : {false, true})
    EXPECT_TRUE(mentions(error(skip_broken), {"pets/bird\" is a link to \"/mnt/disk/bird\", which is not there",
                                              "a class or a part may be missing"}));
  fs::remove(under("bird"));
  EXPECT_EQ(error(), "");
}

TEST_F(PartFoldersTest, WhereNothingCanBeReadAllIsCounted) {
  put_pets();
  for (int i = 0; i < 12; ++i)
    for (const char* kind : {"cat", "dog"}) put(name_of(kind, i), "");
  EXPECT_TRUE(mentions(error(), {"24 of 24 files cannot be read", "\"cat/10.png\" is empty"}));
  EXPECT_TRUE(mentions(error(true), {"24 of 24 files cannot be read"}));
}

/// Processes are threads here: each calls same() and spread() in the same order as the others.
class ThreadDecoding : public SharedDecoding {
 public:
  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    int waiting = 0;
    std::int64_t round = 0;
    std::uint64_t number = 0;
    bool same = true;
    std::span<std::byte> bytes;

    /// `act` runs for each of the two, one at a time; then both go on.
    template <class Act>
    void meet(const Act& act) {
      std::unique_lock<std::mutex> lock(mutex);
      act();
      const std::int64_t mine = round;
      if (++waiting == 2) {
        waiting = 0;
        ++round;
        changed.notify_all();
      }
      changed.wait(lock, [&] { return round != mine; });
    }
  };

  ThreadDecoding(Meeting& meeting, int part) : meeting_(meeting), part_(part) {}
  int parts() const override { return 2; }
  int part() const override { return part_; }
  bool same(std::uint64_t number) override {
    meeting_.meet([&] {
      meeting_.same = meeting_.waiting == 0 || meeting_.number == number;
      meeting_.number = number;
    });
    const bool result = meeting_.same;
    meeting_.meet([] {});
    return result;
  }
  void spread(int part, std::span<std::byte> bytes) override {
    meeting_.meet([&] {
      if (part == part_) meeting_.bytes = bytes;
    });
    if (part != part_ && !bytes.empty()) std::memcpy(bytes.data(), meeting_.bytes.data(), bytes.size());
    meeting_.meet([] {});
  }

 private:
  Meeting& meeting_;
  int part_;
};

/// Nobody answers: what this process did not decode stays zero.
class LonelyDecoding : public SharedDecoding {
 public:
  int parts() const override { return 3; }
  int part() const override { return 1; }
  bool same(std::uint64_t) override { return true; }
  void spread(int, std::span<std::byte>) override {}
};

TEST_F(PartFoldersTest, AProcessDecodesItsPart) {
  put_pets();
  LonelyDecoding with;
  BrokenFiles broken;
  const Tensor images = read_pictures(list_class_folders(place_.path() / "pets"), {4, 3, 1}, {}, broken, with);
  for (std::int64_t i = 0; i < 24; ++i) {
    const auto pixels = images.values<std::uint8_t>().subspan(i * 12, 12);
    const bool decoded = std::ranges::any_of(pixels, [](std::uint8_t pixel) { return pixel != 0; });
    EXPECT_EQ(decoded, i >= 8 && i < 16) << i;
  }
}

TEST_F(PartFoldersTest, ProcessesSkipTheSameFiles) {
  put_pets();
  damage("cat/10.png");
  put("dog/21.png", "?");
  const ClassFolders folders = list_class_folders(place_.path() / "pets");
  PictureOptions options;
  options.height = 4;
  options.width = 3;
  BrokenFiles alone;
  const Tensor expected = read_pictures(folders, {4, 3, 1}, options, alone);
  ASSERT_EQ(alone.size(), 2u);
  ThreadDecoding::Meeting meeting;
  std::vector<BrokenFiles> broken(2);
  std::vector<Tensor> images(2);
  std::vector<std::thread> processes;
  for (int part = 0; part < 2; ++part)
    processes.emplace_back([&, part] {
      ThreadDecoding with(meeting, part);
      images[part] = read_pictures(folders, {4, 3, 1}, options, broken[part], with);
    });
  for (std::thread& process : processes) process.join();
  for (int part = 0; part < 2; ++part) {
    EXPECT_EQ(broken[part], alone);
    EXPECT_TRUE(std::ranges::equal(images[part].values<std::uint8_t>(), expected.values<std::uint8_t>()));
  }
}

}  // namespace
}  // namespace miniqat::datasets::part_folders_test

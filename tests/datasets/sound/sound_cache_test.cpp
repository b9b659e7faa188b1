// What is kept of a folder of sounds from one start to the next.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/files/files.h"
#include "datasets/decoding.h"
#include "datasets/loader.h"
#include "datasets/user_files.h"
#include "tests/cli/program.h"
#include "tests/datasets/sound/recordings.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::sound_cache_test {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::mentions;
using testing::wav;

constexpr std::int64_t kTrain = 60, kTest = 20;

class SoundCacheTest : public ::testing::Test {
 protected:
  SoundCacheTest() {
    testing::write_tones(place_, "sounds");
    options_.sounds = SoundOptions{.rate = 8000, .seconds = 0.3, .bands = 12, .coefficients = 5};
    tell_of_decoding([&](std::int64_t done, std::int64_t all) { decoded_ += done == all ? all : 0; });
  }
  ~SoundCacheTest() override { tell_of_decoding({}); }

  fs::path under(const std::string& name) const { return place_.path() / name; }
  Splits load() const { return load_user_files(under("sounds"), options_); }
  Splits load_without_cache() const {
    const testing::EnvironmentVariable none("MINIQAT_CACHE_DIR", "/dev/null/none");
    return load();
  }
  std::string error() const {
    return error_of([&] { load(); });
  }
  /// The files that are decoded for the same.
  std::int64_t decoded_by_load() {
    decoded_ = 0;
    load();
    return decoded_;
  }

  /// Other bytes, as many and as old.
  static void replace(const fs::path& file, const std::string& bytes) {
    ASSERT_EQ(bytes.size(), fs::file_size(file));
    const fs::file_time_type time = fs::last_write_time(file);
    write_file_atomically(file, bytes);
    fs::last_write_time(file, time);
  }
  std::vector<fs::path> files_in(const std::string& folder) const {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(under(folder)))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }
  /// Who decodes a file notices.
  void spoil_sounds() const {
    for (const fs::path& file : files_in("sounds")) replace(file, std::string(fs::file_size(file), '?'));
  }

  testing::TempDir place_;
  testing::EnvironmentVariable cache_{"MINIQAT_CACHE_DIR", (place_.path() / "cache").c_str()};
  LoadOptions options_;
  std::atomic<std::int64_t> decoded_ = 0;
};

void expect_same(const Dataset& a, const Dataset& b) {
  const auto same = [](const Tensor& x, const Tensor& y) {
    return x.spec() == y.spec() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
  };
  EXPECT_TRUE(same(a.images, b.images));
  EXPECT_TRUE(same(a.labels, b.labels));
  EXPECT_TRUE(same(a.recordings, b.recordings));
  EXPECT_EQ(*a.files, *b.files);
}

void expect_same(const Splits& a, const Splits& b) {
  expect_same(a.train, b.train);
  expect_same(a.test, b.test);
}

TEST_F(SoundCacheTest, ASecondStartDecodesNothingAndHasTheSameBits) {
  // Also of recordings that differ in length.
  place_.write("sounds/train/low/7.wav", wav(testing::Recording(3000, 5), testing::kRecordingRate));
  for (const bool windows : {false, true}) {
    if (windows)
      options_.sounds->features = Features::kLogMel, options_.sounds->frames = 3, options_.sounds->seconds = 0;
    const Splits expected = load_without_cache();
    expect_same(load(), expected);
    EXPECT_EQ(decoded_by_load(), 0) << "and nobody is told";
    const std::vector<fs::path> sounds = files_in("sounds");
    std::vector<std::string> bytes;
    for (const fs::path& file : sounds) bytes.push_back(read_file(file));
    spoil_sounds();
    expect_same(load(), expected);
    for (std::size_t i = 0; i < sounds.size(); ++i) replace(sounds[i], bytes[i]);
  }
  EXPECT_EQ(files_in("cache").size(), 2U) << "one for each part, whatever the settings were";
}

TEST_F(SoundCacheTest, SamplesAreKeptWhereTheyAreVaried) {
  const auto batch = [](const Splits& splits) {
    Loader loader(splits.train, {.batch_size = 16, .augment = {.vary_sounds = true}});
    const Tensor images = loader.next().images;
    return std::vector<float>(images.data<float>(), images.data<float>() + images.elements());
  };
  load();
  options_.variation = {.shift_ms = 5, .gain_db = 3};
  EXPECT_EQ(decoded_by_load(), kTrain) << "features alone do not suffice";
  const std::vector<float> expected = batch(load_without_cache());
  spoil_sounds();
  EXPECT_EQ(batch(load()), expected);
  options_.variation = {};
  EXPECT_EQ(decoded_by_load(), 0) << "but samples do no harm";
}

TEST_F(SoundCacheTest, OtherSettingsDecodeAgain) {
  const SoundOptions before = *options_.sounds;
  using Change = std::function<void(SoundOptions&)>;
  for (const Change& change : std::vector<Change>{
           [](SoundOptions& how) { how.features = Features::kLogMel; }, [](SoundOptions& how) { how.rate = 16000; },
           [](SoundOptions& how) { how.seconds = 0.25; }, [](SoundOptions& how) { how.window_ms = 32; },
           [](SoundOptions& how) { how.stride_ms = 16; }, [](SoundOptions& how) { how.bands = 13; },
           [](SoundOptions& how) { how.low_hz = 20.000000001; }, [](SoundOptions& how) { how.high_hz = 3000; },
           [](SoundOptions& how) { how.coefficients = 6; }, [](SoundOptions& how) { how.frames = 2; }}) {
    options_.sounds = before;
    load();
    change(*options_.sounds);
    expect_same(load(), load_without_cache());
    options_.sounds = before;
    EXPECT_EQ(decoded_by_load(), kTrain + kTest);
  }
}

TEST_F(SoundCacheTest, ChangedFilesDecodeTheirPartAgain) {
  load();
  const fs::path file = under("sounds/train/low/101.wav");
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(decoded_by_load(), kTrain);
  const fs::file_time_type time = fs::last_write_time(file);
  place_.write("sounds/train/low/101.wav", wav(testing::Recording(1000, 9), testing::kRecordingRate));
  fs::last_write_time(file, time);
  EXPECT_EQ(decoded_by_load(), kTrain) << "a size";
  place_.write("sounds/train/low/999.wav", read_file(file));
  EXPECT_EQ(decoded_by_load(), kTrain + 1);
  fs::remove(file);
  EXPECT_EQ(decoded_by_load(), kTrain);
  EXPECT_EQ(decoded_by_load(), 0);
}

TEST_F(SoundCacheTest, ADamagedCacheIsReplaced) {
  const Splits expected = load();
  for (const fs::path& file : files_in("cache")) {
    const std::string whole = read_file(file);
    // Spread over its parts; blanks of its header do not matter.
    for (std::size_t place = 0; place < whole.size(); place += 997) {
      std::string bytes = whole;
      bytes[place] ^= 1;
      place_.write("cache/" + file.filename().string(), bytes);
      expect_same(load(), expected);
    }
    std::string bytes = whole;
    bytes[bytes.size() / 2] ^= 1;
    for (const std::string& damaged : {bytes, whole.substr(0, whole.size() / 2), std::string()}) {
      place_.write("cache/" + file.filename().string(), damaged);
      EXPECT_GE(decoded_by_load(), kTest);
      EXPECT_EQ(read_file(file), whole);
    }
  }
}

TEST_F(SoundCacheTest, BrokenFilesAreBrokenAtEveryStart) {
  const std::string name = "sounds/train/low/101.wav", cut = read_file(under(name)).substr(0, 44 + 2000);
  place_.write(name, cut);
  fs::create_symlink("gone.wav", under("sounds/train/high/9.wav"));
  const std::string refused = error_of([&] { load_without_cache(); });
  EXPECT_TRUE(mentions(refused, {"2 of 81 files cannot be read: \"train/high/9.wav\": "}));
  EXPECT_EQ(error(), refused);
  fs::remove(under("sounds/train/high/9.wav"));
  const std::string is_cut = error_of([&] { load_without_cache(); });
  EXPECT_TRUE(mentions(is_cut, {"1 of 80 files", "101.wav\" is cut short"}));
  EXPECT_EQ(error(), is_cut);
  EXPECT_EQ(error(), is_cut) << "the cache hides nothing";
  options_.skip_broken = true;
  const Splits expected = load_without_cache(), skipped = load();
  expect_same(skipped, expected);
  EXPECT_EQ(skipped.train.size(), kTrain - 1);
  EXPECT_EQ(skipped.remarks().notes, expected.remarks().notes);
  EXPECT_EQ(skipped.remarks().skipped.at(0).why, expected.remarks().skipped.at(0).why);
  EXPECT_EQ(decoded_by_load(), 1);
  // A right that was missing changes neither size nor time: the cache asks again.
  replace(under(name), wav(testing::Recording(1000, 9), testing::kRecordingRate));
  expect_same(load(), load_without_cache());
  EXPECT_EQ(load().train.size(), kTrain);
}

TEST_F(SoundCacheTest, SeveralMayReadAndWriteItAtOnce) {
  const Splits expected = load_without_cache();
  tell_of_decoding({});
  std::vector<Splits> loaded(4);
  std::vector<std::thread> readers;
  for (Splits& splits : loaded) readers.emplace_back([&] { splits = load(); });
  for (std::thread& reader : readers) reader.join();
  for (const Splits& splits : loaded) expect_same(splits, expected);
  spoil_sounds();
  expect_same(load(), expected);
  EXPECT_EQ(files_in("cache").size(), 2U) << "no temporary file is left";
}

}  // namespace
}  // namespace miniqat::datasets::sound_cache_test

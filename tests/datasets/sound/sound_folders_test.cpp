#include "datasets/sound/sound_folders.h"

#include <gtest/gtest.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/files/files.h"
#include "core/text/suggest.h"
#include "datasets/hold_out.h"
#include "datasets/sound/sound.h"
#include "datasets/sound/variation.h"
#include "datasets/user_files.h"
#include "tests/datasets/numbers/described.h"
#include "tests/datasets/sound/wav.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::sound_folders_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::tone;
using testing::wav;

class SoundFoldersTest : public ::testing::Test {
 protected:
  SoundFoldersTest() {
    options_.sounds = SoundOptions{.features = Features::kRaw, .rate = 8000, .seconds = 0.01};
    options_.numbers.standardise = false;
  }
  Splits load() const { return load_user_files(place_.path() / "sounds", options_); }
  void write(const std::string& file, const std::string& bytes) { place_.write("sounds/" + file, bytes); }

  testing::TempDir place_;
  LoadOptions options_;
};

TEST_F(SoundFoldersTest, AFolderIsAClass) {
  for (int i = 0; i < 6; ++i) {
    write(concat("low/", i, ".wav"), tone(static_cast<std::int16_t>(1000 + i)));
    write(concat("high/", i, ".wav"), tone(static_cast<std::int16_t>(9000 + i)));
  }
  write("_background_noise_/rain.wav", tone(1));
  write("low/readme.txt", "no sound");
  const Splits splits = load();
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"high", "low"}));
  EXPECT_EQ(splits.train.size(), 10);
  EXPECT_EQ(splits.test.size(), 2);
  EXPECT_EQ(splits.train.example_shape(), (Shape{80, 1}));
  EXPECT_FLOAT_EQ(splits.train.images.values<float>()[0], 9000.0f / 32768);
  EXPECT_EQ(splits.test.file_of(0), "high/5.wav");
}

TEST_F(SoundFoldersTest, WhatIsLeftOutIsSaid) {
  for (int i = 0; i < 6; ++i)
    for (const char* name : {"low", "high"}) write(concat(name, "/", i, ".wav"), tone(1000));
  write("low/readme.txt", "no sound");
  write("low/0.MP3", "a format that is not read");
  write("high/1.mp3", "another");
  write("testing_list.txt", "");
  write(".hidden.txt", "");
  EXPECT_EQ(load().remarks().notes.size(), 1U);
  EXPECT_TRUE(
      mentions(load().remarks().notes.front(),
               {"note: ", "sounds: left out files that are no sounds: 2 .mp3, 1 .txt; sounds are .wav, .flac"}));
}

TEST_F(SoundFoldersTest, TheFolderOfAClassMayBeALink) {
  for (int i = 0; i < 6; ++i) {
    write(concat("low/", i, ".wav"), tone(1000));
    place_.write(concat("elsewhere/", i, ".wav"), tone(9000));
  }
  std::filesystem::create_directory_symlink("../elsewhere", place_.path() / "sounds/high");
  EXPECT_EQ(load().train.class_names, (std::vector<std::string>{"high", "low"}));
  EXPECT_EQ(load().train.file_of(0), "high/0.wav");
  EXPECT_EQ(load().train.size(), 10);
  // Further below a link may lead in a circle.
  std::filesystem::create_directory_symlink("..", place_.path() / "sounds/low/up");
  EXPECT_EQ(load().train.size(), 10);
  EXPECT_TRUE(mentions(load().remarks().notes.front(), {"left out 1 link to folders below the folder of a class"}));
}

TEST_F(SoundFoldersTest, PartsHaveSoundsAndEachClassLeadsSomewhere) {
  for (const char* file : {"train/low/0.wav", "test/low/notes", "more/0.wav"}) write(file, tone(1000));
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"sounds/test\" was taken for the test part, but holds no sounds"}));
  for (const char* file : {"train/high/0.wav", "test/low/0.wav"}) write(file, tone(1000));
  for (const char* file : {"_background_noise_/0.wav", "rooms/a/0.wav", "caf\xe9/0.wav"}) write(file, tone(1000));
  options_.variation.noise = (place_.path() / "sounds/rooms/a").string();
  EXPECT_TRUE(mentions(joined(load().remarks().notes, "|") + "|", {"sounds: left out 2 folders: caf\\xe9, more|"}));
  std::filesystem::remove_all(place_.path() / "sounds/train/high");
  std::filesystem::create_directory_symlink("../../gone", place_.path() / "sounds/train/high");
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"train/high", "which is not there"}));
}

TEST_F(SoundFoldersTest, ANameMaySayTheClassAndTheGroup) {
  for (const char* speaker : {"ann", "bob", "cyd"})
    for (const char* digit : {"0", "1"}) write(concat(digit, "_", speaker, "_0.wav"), tone(100));
  options_.numbers.target = {"^(\\d)_"};
  options_.numbers.group_by = "_(\\w+)_";
  options_.numbers.test_groups = {"bob"};
  const Splits splits = load();
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(splits.test.size(), 2);
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_NE(splits.test.file_of(i).find("bob"), std::string::npos);
}

/// Columns of tables have commas between them.
TEST_F(SoundFoldersTest, AnExpressionMayHaveCommas) {
  for (const char* name : {"a7_0", "a12_0"})
    for (int i = 0; i < 6; ++i) write(concat(name, i, ".wav"), tone(100));
  options_.numbers.target = {"a(\\d{1", "2})_"};
  EXPECT_EQ(load().train.class_names, (std::vector<std::string>{"7", "12"}));
}

TEST_F(SoundFoldersTest, TheListsOfSpeechCommandsAreTheParts) {
  for (const char* word : {"yes", "no"})
    for (int i = 0; i < 4; ++i) write(concat(word, "/", i, ".wav"), tone(100));
  write("testing_list.txt", "yes/1.wav\nno/1.wav\r\n");
  write("validation_list.txt", "yes/2.wav\n");
  const Splits splits = load();
  EXPECT_EQ(splits.train.size(), 5);
  EXPECT_EQ(splits.test.size(), 2);
  ASSERT_TRUE(splits.validation);
  EXPECT_EQ(splits.validation->file_of(0), "yes/2.wav");
}

TEST_F(SoundFoldersTest, AListMayNameMoreThanThereIs) {
  for (const char* word : {"yes", "no"})
    for (int i = 0; i < 4; ++i) write(concat(word, "/", i, ".wav"), tone(100));
  write("testing_list.txt", "yes/1.wav\nno/1.wav\n");
  EXPECT_TRUE(load().remarks().notes.empty());
  write("testing_list.txt", "yes/1.wav\nno/1.wav\nup/1.wav\nup/0.wav\n");
  write("validation_list.txt", "no/4.wav\nyes/2.wav\n");
  const Splits splits = load();
  EXPECT_EQ(splits.test.size(), 2);
  EXPECT_EQ(splits.validation->size(), 1);
  const std::string notes = joined(splits.remarks().notes, "|");
  EXPECT_TRUE(mentions(notes, {"note: ", "sounds: testing_list.txt lists 4 files, of which 2 are not there, ",
                               "\"up/0.wav\" for instance|note: ",
                               "validation_list.txt lists 2 files, of which 1 is not there: \"no/4.wav\""}));
  // Otherwise one file in six would become the test part.
  write("testing_list.txt", "./yes/1.wav\n./no/1.wav\n");
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"testing_list.txt lists 2 files, of which none is there, ",
                                                   "\"./no/1.wav\" for instance: a line is the path of a sound"}));
}

TEST_F(SoundFoldersTest, ABrokenFileIsNamedOrLeftOut) {
  for (int i = 0; i < 6; ++i)
    for (const char* word : {"yes", "no"}) write(concat(word, "/", i, ".wav"), tone(100));
  write("no/2.wav", "RIFF and nothing else");
  write("yes/3.wav", wav({}, 8000));
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"2 of 12 files", "no/2.wav", "--skip-broken"}));
  options_.skip_broken = true;
  const Splits splits = load();
  EXPECT_EQ(splits.train.size() + splits.test.size(), 10);
  EXPECT_EQ(splits.train.remarks->skipped.size(), 2u);
  EXPECT_TRUE(mentions(splits.train.remarks->notes.at(0), {"note: left out", "2 of 12 files"}));
}

TEST_F(SoundFoldersTest, AFileWithoutAClassBesideOthersIsAnError) {
  write("yes/0.wav", tone(100));
  write("0.wav", tone(100));
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"0.wav", "no folder of a class"}));
}

/// As of pictures and tables: a run keeps the names in JSON, and would not know its own classes again.
TEST_F(SoundFoldersTest, AClassThatJsonCannotHoldIsAnError) {
  write("yes/0.wav", tone(100));
  write("caf\xe9/0.wav", tone(100));
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"caf\\xe9/0.wav", "must be UTF-8"}));
  options_.numbers.target = {"(.*)/"};
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"caf\\xe9/0.wav", "must be UTF-8"}));
}

/// The layout of Speech Commands with nine words to train, three to choose by, three to test, and a noise whose sample
/// i is 2000 + 10 i, so that samples tell where a piece was and how loud it is.
class SilenceTest : public SoundFoldersTest {
 protected:
  SilenceTest() {
    for (const char* word : {"yes", "no", "up"})
      for (int i = 0; i < 5; ++i) write(concat(word, "/", i, ".wav"), tone(100));
    write("testing_list.txt", "yes/1.wav\nno/1.wav\nup/1.wav\n");
    write("validation_list.txt", "yes/2.wav\nno/2.wav\nup/2.wav\n");
    std::vector<std::int16_t> noise;
    for (int i = 0; i < 1000; ++i) noise.push_back(static_cast<std::int16_t>(2000 + 10 * i));
    write("_background_noise_/hum.wav", wav(noise, 8000));
    options_.numbers.target = {"^(yes|no|_silence_)/|$"};
    options_.sounds->silence = 30;
  }

  /// The volumes of a part's silence, which has `count` pieces of the samples from `first` to `end`.
  static std::set<double> volumes(const Dataset& part, std::int64_t count, double first, double end) {
    std::set<double> volumes, places;
    for (std::int64_t i = 0; i < part.size(); ++i) {
      if (part.class_name(part.labels.values<std::int32_t>()[i]) != "_silence_") continue;
      const auto samples = part.images.values<float>().subspan(80 * i, 80);
      const double slope = (double{samples[79]} - double{samples[0]}) / 790, place = samples[0] / slope / 10 - 200;
      volumes.insert(slope * 32768);
      places.insert(place);
      EXPECT_GE(place, first - 0.1);
      EXPECT_LE(place + 80, end + 0.1);
      EXPECT_EQ(part.file_of(i), concat("_silence_/hum.wav@", std::llround(place) / 8, "ms"));
    }
    EXPECT_EQ(std::ssize(volumes), count);
    EXPECT_GT(places.size(), volumes.size() / 2);
    return volumes;
  }
};

TEST_F(SilenceTest, IsPiecesOfTheNoiseThatNoOtherPartHas) {
  const Splits splits = load();
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"_silence_", "no", "other", "yes"}));
  const std::set<double> trained = volumes(splits.train, 30, 0, 800);
  volumes(*splits.validation, 10, 800, 900);
  volumes(splits.test, 10, 900, 1000);
  EXPECT_LT(*trained.begin(), 0.2);
  EXPECT_GT(*trained.rbegin(), 0.8);
  EXPECT_LT(*trained.rbegin(), 1);
  EXPECT_EQ(testing::described(load().test), testing::described(splits.test)) << "the same each time";
  options_.sounds->silence = 0;
  EXPECT_EQ(load().train.size(), 9);
}

/// Training may hear the noise behind words, but nothing of what other parts have.
TEST_F(SilenceTest, OfOtherPartsIsNoNoiseBehindWords) {
  std::vector<std::int16_t> late(1000);
  std::fill(late.begin() + 800, late.end(), 3000);
  place_.write("late/end.wav", wav(late, 8000));
  for (const std::int64_t silence : {0, 30}) {
    options_.sounds->silence = silence;
    const VariedSounds sounds(*options_.sounds, {.noise = place_.path() / "late"}, {VariedSounds::Recording(80, 100)});
    bool is_heard = false;
    std::vector<float> example(80);
    for (std::uint64_t key = 0; key < 100; ++key) {
      sounds.write(0, 0, key, example);
      is_heard = is_heard || std::ranges::any_of(example, [](float sample) { return sample > 101.0f / 32768; });
    }
    EXPECT_EQ(is_heard, silence == 0);
  }
}

/// The archive of Speech Commands' tests has a folder of each class.
TEST_F(SilenceTest, IsAFolderOfTheTestsOfSpeechCommands) {
  const std::vector<std::string> classes = load().train.class_names;
  std::filesystem::remove_all(place_.path() / "sounds");
  for (const char* folder : {"_silence_", "_unknown_", "no", "yes"}) write(concat(folder, "/0.wav"), tone(100));
  options_.class_names = classes;
  options_.train_optional = options_.whole_as_test = true;
  EXPECT_EQ(testing::words_of<std::int32_t>(load().test.labels), "0 2 1 3");
}

TEST_F(SilenceTest, WithoutNoiseOrPartsIsAnError) {
  write("_background_noise_/hum.wav", tone(100, 799));
  EXPECT_TRUE(
      mentions(error_of([&] { load(); }), {"_background_noise_/hum.wav", "is too short for examples of silence"}));
  std::filesystem::remove_all(place_.path() / "sounds/_background_noise_");
  const char* words =
      "for examples of silence there must be sounds in _background_noise_, and parts by testing_list.txt";
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {words}));
  write("_background_noise_/hum.wav", tone(100, 1000));
  EXPECT_EQ(error_of([&] { load(); }), "");
  for (const char* list : {"testing_list.txt", "validation_list.txt"})
    std::filesystem::remove(place_.path() / "sounds" / list);
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {words}));
}

/// Steps of 32 samples each 16, and examples of two of them: 80 samples have 4 steps, which make 3 examples.
SoundOptions two_steps() {
  return {.features = Features::kLogMel,
          .rate = 8000,
          .seconds = 0,
          .window_ms = 4,
          .stride_ms = 2,
          .bands = 3,
          .low_hz = 0,
          .high_hz = 4000,
          .frames = 2};
}

TEST_F(SoundFoldersTest, ARecordingGivesItsWindowsWhichStayTogether) {
  options_.sounds = two_steps();
  for (int i = 0; i < 7; ++i) write(concat("train/normal_id_0", i, ".wav"), tone(100, i == 0 ? 112 : 80));
  write("test/normal_id_9.wav", tone(100));
  write("test/anomaly_id_9.wav", tone(200));
  const Splits splits = load();
  EXPECT_EQ(splits.train.images.shape(), (Shape{5 + 6 * 3, 2, 3})) << "whole recordings of two lengths";
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"normal", "anomaly"}));
  EXPECT_EQ(testing::words_of<std::int32_t>(splits.test.labels), "1 1 1 0 0 0");
  EXPECT_EQ(testing::words_of<std::int32_t>(splits.test.recordings), "0 0 0 1 0 2 1 0 1 1 1 2");
  EXPECT_EQ(splits.test.file_of(3), "test/normal_id_9.wav");
  const auto numbers = splits.train.images.values<float>();
  EXPECT_TRUE(std::ranges::equal(numbers.subspan(3, 3), numbers.subspan(6, 3))) << "step 1 is in windows 0 and 1";
  const Splits held = hold_out(splits, 5);
  EXPECT_EQ(held.train.size() + held.validation->size(), splits.train.size());
  for (std::int64_t i = 0; i < held.train.size(); ++i)
    for (std::int64_t k = 0; k < held.validation->size(); ++k)
      EXPECT_NE(held.train.file_of(i), held.validation->file_of(k));

  options_.sounds->seconds = 0.01;
  EXPECT_EQ(load().train.size(), 7 * 3) << "the middle of a longer one";
  write("train/normal_id_99.wav", tone(100, 40));
  EXPECT_TRUE(mentions(error_of([&] { load(); }), {"normal_id_99.wav", "shorter than an example, 2 steps"}));
}

TEST(Sound, ChannelsBecomeTheirMeanAndTheMiddleIsKept) {
  const testing::TempDir place;
  place.write("two.wav", wav({1000, 3000, 2000, 4000, 0, 0}, 8000, 2));
  const Sound sound = read_sound(place.path() / "two.wav");
  EXPECT_EQ(sound.rate, 8000);
  ASSERT_EQ(sound.samples.size(), 3u);
  EXPECT_FLOAT_EQ(sound.samples[0], 2000.0f / 32768);
  EXPECT_EQ(fitted(sound, 1), (std::vector<float>{sound.samples[1]}));
  EXPECT_EQ(fitted(sound, 5), (std::vector<float>{0, sound.samples[0], sound.samples[1], sound.samples[2], 0}));
}

/// libsndfile reads as much of it as there is.
TEST(Sound, AFileThatIsCutShortIsDamaged) {
  const testing::TempDir place;
  const std::string whole = tone(1000, 2000);
  const auto trouble_of = [&](const std::string& name, const std::string& bytes) {
    const auto path = place.write(name, bytes);
    return error_of([&] { read_sound(path); });
  };
  EXPECT_TRUE(mentions(trouble_of("half.wav", whole.substr(0, 2044)), {"half.wav", "is cut short: 2000 bytes of its"}));
  EXPECT_EQ(trouble_of("whole.wav", whole), "");
  EXPECT_EQ(trouble_of("head.wav", whole.substr(0, whole.size() - 44)), "") << "its writer counted the head";
  for (const char* unknown : {"\xff\xff\xff\xff", "\0\xf0\xff\x7f", "\0\xff\xff\x7f"}) {
    std::string stream = whole;
    stream.replace(40, 4, unknown, 4);
    EXPECT_EQ(trouble_of("stream.wav", stream), "");
  }
  // The samples may lie behind another chunk, of an odd size.
  std::string listed = whole;
  listed.insert(36, std::string("LIST\x03\0\0\0abc\0", 12));
  EXPECT_EQ(trouble_of("listed.wav", listed), "");
  EXPECT_TRUE(mentions(trouble_of("cut.wav", listed.substr(0, 2056)), {"is cut short: 2000 bytes of its"}));
  // AIFF, whose numbers are big-endian: 2000 samples of two bytes, and the half of them.
  const std::string aiff = std::string("FORM\0\0\x0f\xce", 8) + "AIFF" +
                           std::string("COMM\0\0\0\x12\0\x01\0\0\x07\xd0\0\x10\x40\x0b\xfa\0\0\0\0\0\0\0", 26) +
                           std::string("SSND\0\0\x0f\xa8\0\0\0\0\0\0\0\0", 16) + std::string(4000, '\1');
  EXPECT_EQ(trouble_of("whole.aiff", aiff), "");
  EXPECT_TRUE(mentions(trouble_of("half.aiff", aiff.substr(0, 2054)), {"is cut short: 2000 bytes of its"}));
}

/// As libsndfile writes it: 20000 samples of noise, so that there are several frames.
std::string noise_as(int format) {
  const testing::TempDir place;
  const std::filesystem::path path = place.path() / "noise";
  SF_INFO info{.frames = 0, .samplerate = 8000, .channels = 1, .format = format, .sections = 0, .seekable = 0};
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  std::uint32_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const auto sample = static_cast<std::int16_t>(bits >> 18);
    sf_write_short(file, &sample, 1);
  }
  sf_close(file);
  return read_file(path);
}

TEST(Sound, ACompressedFileThatIsCutShortIsDamaged) {
  const testing::TempDir place;
  const auto trouble_of = [&](const std::string& name, const std::string& bytes) {
    const auto path = place.write(name, bytes);
    return error_of([&] { read_sound(path); });
  };
  const std::string flac = noise_as(SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  EXPECT_EQ(trouble_of("whole.flac", flac), "");
  EXPECT_TRUE(mentions(trouble_of("half.flac", flac.substr(0, flac.size() / 2)),
                       {"half.flac\" is cut short: it has 8192 samples of 20000"}));
  EXPECT_TRUE(mentions(trouble_of("end.flac", flac.substr(0, flac.size() - 1)), {"end.flac\" is a damaged sound: "}));
  EXPECT_TRUE(mentions(trouble_of("head.flac", flac.substr(0, 42)), {"head.flac\" has no samples"}));
  // A stream's writer did not know the number of samples: 36 bits from byte 21 on.
  std::string stream = flac;
  stream[21] = static_cast<char>(stream[21] & 0xf0);
  stream.replace(22, 4, 4, '\0');
  EXPECT_EQ(trouble_of("stream.flac", stream), "");
  const std::string ogg = noise_as(SF_FORMAT_OGG | SF_FORMAT_VORBIS);
  EXPECT_EQ(trouble_of("whole.ogg", ogg), "");
  EXPECT_TRUE(mentions(trouble_of("half.ogg", ogg.substr(0, ogg.size() / 2)),
                       {"half.ogg\" is cut short: its last page is missing"}));
}

TEST(Sound, AToneKeepsItsPitchAtAnotherRate) {
  Sound sound{.samples = {}, .rate = 8000};
  for (int i = 0; i < 8000; ++i) sound.samples.push_back(static_cast<float>(std::sin(0.3 * i)));
  const Sound twice = resampled(sound, 16000);
  ASSERT_NEAR(static_cast<double>(twice.samples.size()), 16000, 1);
  for (std::size_t i = 4000; i < 4100; ++i)
    EXPECT_NEAR(twice.samples[i], std::sin(0.15 * static_cast<double>(i)), 2e-3) << i;
  EXPECT_EQ(resampled(sound, 8000).samples, sound.samples);
}

}  // namespace
}  // namespace miniqat::datasets::sound_folders_test

#include "datasets/arrays/npy.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>

#include "core/files/files.h"
#include "datasets/arrays/array_pictures.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::npy_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::npy_bytes;

template <class T>
std::string elements(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

std::string refusal(const std::string& bytes) {
  return error_of([&] { parse_npy(bytes, "a.npy"); });
}

std::vector<std::uint8_t> pixels(const std::string& bytes) {
  const Tensor images = pictures_of(parse_npy(bytes, "a.npy"), "a.npy");
  const auto values = images.values<std::uint8_t>();
  return {values.begin(), values.end()};
}

std::string refused_pixels(const std::string& bytes) {
  return error_of([&] { pixels(bytes); });
}

TEST(NpyTest, NumbersOfAnyWidthAreRead) {
  const NumpyArray narrow = parse_npy(npy_bytes("|i1", "3,", elements<std::int8_t>({-128, -1, 127})), "a");
  EXPECT_EQ(narrow.integer(0, "a"), -128);
  EXPECT_EQ(narrow.integer(1, "a"), -1);
  EXPECT_EQ(narrow.integer(2, "a"), 127);
  const NumpyArray wide = parse_npy(npy_bytes("<u8", "2,", elements<std::uint64_t>({7, ~std::uint64_t{0}})), "a");
  EXPECT_EQ(wide.integer(0, "a"), 7);
  EXPECT_TRUE(mentions(error_of([&] { wide.integer(1, "a"); }),
                       {"a holds 18446744073709551615 at element 1; integers must be below 2^63"}));
  const NumpyArray unsigned_half = parse_npy(npy_bytes("<u2", "1, 1", elements<std::uint16_t>({65535})), "a");
  EXPECT_EQ(unsigned_half.integer(0, "a"), 65535);
  EXPECT_EQ(unsigned_half.shape, (std::vector<std::int64_t>{1, 1}));
}

TEST(NpyTest, WhatIsNoElementOfThatKindIsNamed) {
  const NumpyArray texts = parse_npy(npy_bytes("<U1", "2,", elements<std::uint32_t>({'x', 0xd800})), "a");
  EXPECT_EQ(texts.text(0, "a"), "x");
  EXPECT_TRUE(mentions(error_of([&] { texts.text(1, "a"); }), {"a: text 1 is not Unicode"}));
  EXPECT_TRUE(mentions(error_of([&] { texts.integer(0, "a"); }), {"a holds texts, no integers"}));
  const NumpyArray numbers = parse_npy(npy_bytes("|u1", "1,", "x"), "a");
  EXPECT_TRUE(mentions(error_of([&] { numbers.text(0, "a"); }), {"a holds numbers, no texts"}));
}

TEST(NpyTest, DamagedFilesAreNamed) {
  const std::string whole = npy_bytes("|u1", "2, 3", "abcdef");
  EXPECT_TRUE(mentions(refusal("PK\x03\x04 something else"), {"a.npy", "not a NumPy array"}));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(mentions(refusal(whole.substr(0, length)), {"a.npy"})) << length;
  EXPECT_TRUE(mentions(refusal(whole + "g"), {"has 7 bytes", "(2, 3)", "needs 6"}));
  std::string later = whole;
  later[6] = 9;
  EXPECT_TRUE(mentions(refusal(later), {"version"}));
  EXPECT_TRUE(mentions(refusal(npy_bytes("|u1", "99999999999, 99999999999, 99999999999", "")), {"absurd"}));
  EXPECT_TRUE(mentions(refusal(npy_bytes("|u1", "9999999999999999999999", "")), {"\"shape\""}));
  EXPECT_TRUE(mentions(refusal(npy_bytes("|u1", "-1, 2", "")), {"\"shape\""}));
  EXPECT_TRUE(mentions(refusal(npy_bytes(">i4", "1,", "abcd")), {"\">i4\"", "little-endian"}));
  for (const int place : {0, 1, 2}) {
    std::string type = "<f4";
    type[place] = '\0';
    EXPECT_TRUE(mentions(refusal(npy_bytes(type, "0,", "")), {"elements of type"})) << place;
  }
  EXPECT_TRUE(mentions(refusal(npy_bytes("<b8", "1,", "abcdefgh")), {"\"<b8\""}));
  EXPECT_TRUE(mentions(refusal(npy_bytes("<f1", "1,", "a")), {"\"<f1\""}));
  EXPECT_TRUE(mentions(refusal(npy_bytes("|O", "1,", "abcdefgh")), {"\"|O\""}));
  std::string fortran = whole;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_TRUE(mentions(refusal(fortran), {"Fortran"}));
}

TEST(NpyTest, FloatsAndBoolsBecomeBytes) {
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(pixels(npy_bytes("<f4", "1, 1, 3", elements<float>({0, 0.5f, 1}))), (Bytes{0, 128, 255}));
  EXPECT_EQ(pixels(npy_bytes("<f8", "1, 3, 1", elements<double>({0, 2, 255}))), (Bytes{0, 2, 255}));
  EXPECT_EQ(pixels(npy_bytes("|b1", "1, 1, 2", elements<char>({0, 1}))), (Bytes{0, 255}));
  EXPECT_EQ(pixels(npy_bytes("|b1", "1, 1, 3", elements<char>({2, 0, -1}))), (Bytes{255, 0, 255}));
  EXPECT_EQ(pixels(npy_bytes("<i4", "1, 1, 1, 3", elements<std::int32_t>({1, 2, 3}))), (Bytes{1, 2, 3}));
  EXPECT_TRUE(
      mentions(refused_pixels(npy_bytes("<f4", "1, 1, 2", elements<float>({0.5f, 2}))), {"element 1", "[0, 1]"}));
  EXPECT_TRUE(mentions(refused_pixels(npy_bytes("<f4", "1, 1, 1", elements<float>({NAN}))), {"nan"}));
  EXPECT_TRUE(
      mentions(refused_pixels(npy_bytes("<i4", "1, 1, 1", elements<std::int32_t>({256}))), {"256", "[0, 255]"}));
  EXPECT_TRUE(mentions(refused_pixels(npy_bytes("<f2", "1, 1, 1", "ab")), {"16 bits"}));
}

TEST(NpyTest, OtherShapesAreRefused) {
  EXPECT_TRUE(mentions(refused_pixels(npy_bytes("|u1", "1, 3, 1, 2", "abcdef")),
                       {"[1, 3, 1, 2]", "channels come last here", "transpose(0, 2, 3, 1)"}));
  EXPECT_TRUE(mentions(refused_pixels(npy_bytes("|u1", "2, 2", "abcd")), {"[2, 2]", "[n, h, w]"}));
  EXPECT_TRUE(mentions(refused_pixels(npy_bytes("|u1", "1, 1, 1, 4", "abcd")), {"[1, 1, 1, 4]"}));
  EXPECT_TRUE(mentions(refused_pixels(npy_bytes("|u1", "0, 2, 2", "")), {"no picture"}));
  const auto labels = [](const std::string& bytes) {
    return error_of([&] { labels_of(parse_npy(bytes, "y.npy"), "y.npy"); });
  };
  EXPECT_TRUE(mentions(labels(npy_bytes("<f4", "1,", elements<float>({1}))), {"y.npy", "floats", "integers"}));
  EXPECT_TRUE(mentions(labels(npy_bytes("|u1", "1, 2", "ab")), {"[1, 2]"}));
  EXPECT_TRUE(mentions(labels(npy_bytes("|i1", "1,", "\xff")), {"example 0", "-1"}));
  EXPECT_TRUE(mentions(labels(npy_bytes("<i4", "1,", elements<std::int32_t>({70000}))), {"70000", "65536"}));
}

/// A .npz of one array, compressed as asked.
std::filesystem::path npz_of(const testing::TempDir& place, const std::string& name, const std::string& bytes,
                             int method) {
  const std::filesystem::path path = place.path() / "a.npz";
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  const zip_int64_t index =
      zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
  zip_set_file_compression(archive, index, method, 0);
  EXPECT_EQ(zip_close(archive), 0);
  return path;
}

TEST(NpzTest, ArraysAreFoundByName) {
  const testing::TempDir place;
  const std::string array = npy_bytes("|u1", "4,", "abcd");
  for (const int method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    const auto path = npz_of(place, "images.npy", array, method);
    EXPECT_EQ(npz_names(path), std::vector<std::string>{"images"});
    EXPECT_EQ(read_npz(path, "images").bytes, "abcd");
    EXPECT_TRUE(mentions(error_of([&] { read_npz(path, "labels"); }), {"a.npz", "\"labels\""}));
  }
  const auto path = npz_of(place, "images.npy", array, ZIP_CM_BZIP2);
  EXPECT_TRUE(mentions(error_of([&] { read_npz(path, "images"); }), {"a.npz", "savez_compressed"}));
}

// A small archive can hold gigabytes of zeros behind the header of a small array. It is damaged where they are, so that
// unpacking them would be refused for that.
TEST(NpzTest, ASizeThatIsNotTheHeadersIsRefusedBeforeTheRestIsUnpacked) {
  const testing::TempDir place;
  const std::string zeros(std::size_t{1} << 26, '\0');
  const auto path = npz_of(place, "x.npy", npy_bytes("|u1", "31, 1000", zeros), ZIP_CM_DEFLATE);
  std::string bytes = read_file(path);
  ASSERT_LT(bytes.size(), std::size_t{1} << 17);
  for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 100; ++i) bytes[i] = '\x5a';
  place.write("a.npz", bytes);
  EXPECT_TRUE(mentions(error_of([&] { read_npz(path, "x"); }),
                       {"(x.npy) has 67108864 bytes of elements; its shape (31, 1000) needs 31000"}));
  // One that is as long as its header says is unpacked.
  npz_of(place, "x.npy", npy_bytes("|u1", "67108864,", zeros), ZIP_CM_DEFLATE);
  EXPECT_EQ(read_npz(path, "x").bytes, zeros);
}

TEST(NpzTest, DamagedArchivesAreNamed) {
  const testing::TempDir place;
  const auto path = npz_of(place, "x.npy", npy_bytes("|u1", "200,", std::string(200, 'a')), ZIP_CM_STORE);
  const std::string bytes = read_file(path);
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    const auto cut = place.write("cut.npz", bytes.substr(0, length));
    EXPECT_TRUE(mentions(error_of([&] { read_npz(cut, "x"); }), {"cut.npz"})) << length;
  }
  // One element is another: the archive's checksum tells.
  std::string flipped = bytes;
  flipped[flipped.find("aaaa") + 50] = 'b';
  const auto damaged = place.write("flipped.npz", flipped);
  EXPECT_TRUE(mentions(error_of([&] { read_npz(damaged, "x"); }), {"flipped.npz", "CRC"}));
}

TEST(ArrayNamesTest, SplitsAreKnownByTheirNames) {
  const ArrayNames keras = find_arrays({"x_test", "x_train", "y_test", "y_train"});
  EXPECT_EQ(keras.train->images, "x_train");
  EXPECT_EQ(keras.test->labels, "y_test");
  EXPECT_FALSE(keras.validation);
  const ArrayNames medical = find_arrays({"train_images", "train_labels", "val_images", "val_labels", "test_images"});
  EXPECT_EQ(medical.validation->labels, "val_labels");
  EXPECT_FALSE(medical.test);
  EXPECT_EQ(find_arrays({"data", "target"}).train->labels, "target");
  EXPECT_FALSE(find_arrays({"x", "labels"}).train);
}

}  // namespace
}  // namespace miniqat::datasets::npy_test

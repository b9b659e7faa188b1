#include "core/files/safetensors.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/files/files.h"
#include "core/memory/guarded_memory.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "tests/temp_dir.h"

namespace miniqat::safetensors_test {
namespace {

namespace fs = std::filesystem;

/// The file with this header (as it is, unpadded) and `data`.
std::string file_of(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

/// The header entry of tensor "a".
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

class SafetensorsTest : public ::testing::Test {
 protected:
  Safetensors read(const std::string& bytes) const {
    // Not as files are written that must last: thousands are.
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_safetensors(path_);
  }

  /// The error that reading such a file gives, or "" when it reads.
  std::string error_of(const std::string& bytes) const {
    try {
      read(bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  void expect_error(const std::string& bytes, const std::string& part) const {
    const std::string text = error_of(bytes);
    EXPECT_NE(text.find(part), std::string::npos) << '"' << text << "\" lacks \"" << part << '"';
    EXPECT_NE(text.find(path_.string()), std::string::npos) << '"' << text << "\" lacks the path";
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }

  const testing::TempDir temporary_;
  const fs::path folder_ = temporary_.path();
  const fs::path path_ = folder_ / "file.safetensors";
};

template <class T>
void expect_values(const Safetensors& content, const std::string& name, const Shape& shape,
                   const std::vector<T>& values) {
  ASSERT_TRUE(content.tensors.contains(name)) << name;
  const Tensor& tensor = content.tensors.at(name);
  EXPECT_EQ(tensor.shape(), shape) << name;
  EXPECT_EQ(std::vector<T>(tensor.values<T>().begin(), tensor.values<T>().end()), values) << name;
}

Safetensors one_of_each() {
  Safetensors content;
  content.tensors["f32"] = Tensor::from<float>({2, 2}, std::vector<float>{1.5f, -0.0f, 1e-40f, 3e38f});
  content.tensors["f64"] = Tensor::from<double>({1}, std::vector<double>{0.1});
  content.tensors["i64"] = Tensor::from<std::int64_t>({2}, std::vector<std::int64_t>{INT64_MIN, INT64_MAX});
  content.tensors["i32"] = Tensor::from<std::int32_t>({2}, std::vector<std::int32_t>{INT32_MIN, 7});
  content.tensors["i8"] = Tensor::from<std::int8_t>({3}, std::vector<std::int8_t>{-128, 0, 127});
  content.tensors["u8/odd \"name\"\n"] = Tensor::from<std::uint8_t>({1, 1, 1}, std::vector<std::uint8_t>{255});
  content.tensors["scalar"] = Tensor::scalar(2.0f);
  content.tensors["empty"] = Tensor(Shape{3, 0, 2});
  content.metadata = {{"format", "pt"}, {"note", "Grüße"}};
  return content;
}

TEST_F(SafetensorsTest, RoundTripOfAllDTypes) {
  const Safetensors written = one_of_each();
  write_safetensors(path_, written);
  const Safetensors content = read_safetensors(path_);
  EXPECT_EQ(content.metadata, written.metadata);
  EXPECT_EQ(content.tensors.size(), written.tensors.size());
  expect_values<double>(content, "f64", {1}, {0.1});
  expect_values<std::int64_t>(content, "i64", {2}, {INT64_MIN, INT64_MAX});
  expect_values<std::int32_t>(content, "i32", {2}, {INT32_MIN, 7});
  expect_values<std::int8_t>(content, "i8", {3}, {-128, 0, 127});
  expect_values<std::uint8_t>(content, "u8/odd \"name\"\n", {1, 1, 1}, {255});
  expect_values<float>(content, "scalar", {}, {2.0f});
  expect_values<float>(content, "empty", {3, 0, 2}, {});
  // By bits: -0 and a denormal must survive.
  EXPECT_EQ(std::memcmp(content.tensors.at("f32").raw(), written.tensors.at("f32").raw(), 16), 0);
}

TEST_F(SafetensorsTest, BytesFollowTheFormat) {
  Safetensors content;
  content.tensors["b"] = Tensor::from<float>({1}, std::vector<float>{1.0f});
  content.tensors["a"] = Tensor::from<std::uint8_t>({2}, std::vector<std::uint8_t>{7, 9});
  write_safetensors(path_, content);
  const std::string file = read_file(path_);

  const auto length = static_cast<unsigned char>(file[0]);
  EXPECT_EQ(file.substr(1, 7), std::string(7, '\0'));
  EXPECT_EQ(length % 8, 0);
  std::string header = file.substr(8, length);
  header.erase(header.find_last_not_of(' ') + 1);
  EXPECT_EQ(header, R"({"a":{"data_offsets":[0,2],"dtype":"U8","shape":[2]},)"
                    R"("b":{"data_offsets":[2,6],"dtype":"F32","shape":[1]}})");
  EXPECT_EQ(file.substr(8 + length), std::string("\x07\x09\x00\x00\x80\x3f", 6));
}

TEST_F(SafetensorsTest, SameContentSameBytes) {
  write_safetensors(path_, one_of_each());
  write_safetensors(folder_ / "again", one_of_each());
  EXPECT_EQ(read_file(path_), read_file(folder_ / "again"));
}

TEST_F(SafetensorsTest, ReadsWhatOthersWrite) {
  // Header order differs from data order, keys come in another order, padding is absent, a float is not aligned.
  const std::string header = R"( {"z":{"shape":[1],"dtype":"I8","data_offsets":[0,1]},"__metadata__":{},)"
                             R"("b":{"dtype":"F32","shape":[],"data_offsets":[3,7]},)"
                             R"("a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}} )";
  const Safetensors content = read(file_of(header, std::string("\xff\x01\x02\x00\x00\x80\x3f", 7)));
  EXPECT_EQ(content.tensors.size(), 3u);
  expect_values<std::int8_t>(content, "z", {1}, {-1});
  expect_values<std::uint8_t>(content, "a", {2}, {1, 2});
  expect_values<float>(content, "b", {}, {1.0f});
  EXPECT_TRUE(read(file_of("{}")).tensors.empty());
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  write_safetensors(path_, one_of_each());
  const std::string file = read_file(path_);
  ASSERT_EQ(error_of(file), "");
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_NE(error_of(file.substr(0, size)), "") << size;
}

TEST_F(SafetensorsTest, TruncationSaysSo) {
  const std::string file = file_of(entry("F32", "[2]", "[0,8]"), "12345678");
  expect_error("", "cut short: 0 bytes");
  expect_error(file.substr(0, 7), "cut short: 7 bytes");
  expect_error(file.substr(0, 20), "only 12 follow");
  expect_error(file.substr(0, file.size() - 1), "leave the file, which has 7 bytes");
}

TEST_F(SafetensorsTest, EveryFlippedByteReadsOrFailsCleanly) {
  write_safetensors(path_, one_of_each());
  const std::string file = read_file(path_);
  const std::size_t header_end = 8 + static_cast<unsigned char>(file[0]) + 256u * static_cast<unsigned char>(file[1]);
  int failures = 0;
  for (std::size_t i = 0; i < header_end; ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    failures += error_of(damaged).empty() ? 0 : 1;
  }
  EXPECT_GT(failures, static_cast<int>(header_end) / 2);
}

TEST_F(SafetensorsTest, HeaderLengthIsCheckedBeforeUse) {
  std::string file = file_of("{}");
  for (const std::uint64_t length : {std::uint64_t{100'000'001}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    std::memcpy(file.data(), &length, 8);
    expect_error(file, "exceeds the limit of 100000000");
  }
  const std::uint64_t length = 3;
  std::memcpy(file.data(), &length, 8);
  expect_error(file, "the header takes 3 bytes, only 2 follow");
}

TEST_F(SafetensorsTest, HeaderMustBeAnObjectOfTheRightForm) {
  expect_error(file_of(""), "malformed JSON");
  expect_error(file_of("{\"a\":"), "malformed JSON");
  expect_error(file_of("{} {}"), "malformed JSON");
  expect_error(file_of("\xff\xfe"), "malformed JSON");
  expect_error(file_of("[]"), "must be a JSON object");
  expect_error(file_of("7"), "must be a JSON object");
  expect_error(file_of(R"({"a":1})"), R"(tensor "a": must be an object)");
  expect_error(file_of(R"({"a":{}})"), R"(tensor "a": lacks dtype)");
  expect_error(file_of(R"({"a":{"dtype":"U8","shape":[0]}})"), "lacks data_offsets");
  expect_error(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})"), R"(unknown key "x")");
  expect_error(file_of(R"({"__metadata__":[]})"), "__metadata__ must be an object");
  expect_error(file_of(R"({"__metadata__":{"k":1}})"), R"(__metadata__ "k" must be a string)");
}

TEST_F(SafetensorsTest, DuplicateKeysAreErrorsAtEveryDepth) {
  const std::string good = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_error(file_of("{" + good + "," + good + "}"), R"(key "a" occurs twice)");
  expect_error(file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
               R"("dtype" occurs twice)");
  expect_error(file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), R"("k" occurs twice)");
}

TEST_F(SafetensorsTest, DeepNestingIsRefusedWhereverItStands) {
  const std::string deep(5'000'000, '[');
  expect_error(file_of(deep), "nests deeper");
  expect_error(file_of(R"({"a":)" + deep), "nests deeper");
  expect_error(file_of(R"({"a":{"shape":)" + deep), "nests deeper");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  expect_error(file_of(objects), "nests deeper");
}

TEST_F(SafetensorsTest, UnknownDTypes) {
  expect_error(file_of(entry("BF16", "[1]", "[0,2]"), "12"), R"(is "BF16")");
  expect_error(file_of(entry("f32", "[1]", "[0,4]"), "1234"), R"(is "f32")");
  expect_error(file_of(R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", "1234"), "is 32");
}

TEST_F(SafetensorsTest, AbsurdShapesAreRefusedBeforeAnythingIsAllocated) {
  expect_error(file_of(entry("F32", "[1000000,1000000]", "[0,4]"), "1234"), R"(tensor "a")");
  expect_error(file_of(entry("F32", "[1000000000000]", "[0,4000000000000]"), "1234"), R"(tensor "a")");
  // 2^33 * 2^31 elements wrap around to 0 in 64 bits.
  expect_error(file_of(entry("U8", "[8589934592,2147483648]", "[0,0]")), R"(tensor "a")");
  // Allowed as a shape, but 2 GiB that the file doesn't have.
  expect_error(file_of(entry("U8", "[2147483648]", "[0,4]"), "1234"), "takes 2147483648");
  expect_error(file_of(entry("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), "1"), R"(tensor "a")");
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "[null]", "[9223372036854775808]", "[1e400]", "[[1]]", "7"})
    EXPECT_NE(error_of(file_of(entry("U8", shape, "[0,1]"), "1")), "") << shape;
}

TEST_F(SafetensorsTest, OffsetsMustFitShapeAndFile) {
  expect_error(file_of(entry("F32", "[2]", "[0,4]"), "1234"), "span 4 bytes, but float32 [2] takes 8");
  expect_error(file_of(entry("F32", "[1]", "[4,0]"), "1234"), "end before they begin");
  expect_error(file_of(entry("F32", "[1]", "[4,8]"), "1234"), "leave the file");
  expect_error(file_of(entry("F32", "[1]", "[0]"), "1234"), "two numbers, are 1");
  expect_error(file_of(entry("F32", "[1]", "[0,4,4]"), "1234"), "two numbers, are 3");
  expect_error(file_of(entry("F32", "[1]", "[-4,0]"), "1234"), "holds -4");
  expect_error(file_of(entry("F32", "[1]", "[0,18446744073709551616]"), "1234"), "data_offsets must hold whole");
  expect_error(file_of(entry("F32", "[1]", "[0,9223372036854775807]"), "1234"), "leave the file");
}

TEST_F(SafetensorsTest, TensorsMustCoverTheDataExactlyOnce) {
  const auto pair = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(error_of(file_of(pair("[4,8]", "[0,4]"), "12345678")), "");
  expect_error(file_of(pair("[0,4]", "[0,4]"), "1234"), R"("a" and "b" overlap)");
  expect_error(file_of(pair("[3,7]", "[0,4]"), "1234567"), R"("b" and "a" overlap)");
  expect_error(file_of(pair("[0,4]", "[5,9]"), "123456789"), R"(bytes 4 to 5 before tensor "b")");
  expect_error(file_of(pair("[1,5]", "[5,9]"), "123456789"), R"(bytes 0 to 1 before tensor "a")");
  expect_error(file_of(pair("[0,4]", "[4,8]"), "123456789"), "end at byte 8 of the data, the file has 9");
  expect_error(file_of("{}", "x"), "end at byte 0 of the data, the file has 1");
}

/// What a graph of 20,000 biases makes with momentum; each name once stood below a limit of 10,000.
TEST_F(SafetensorsTest, ReadsAsManyTensorsAsItWrites) {
  if (is_guarding()) GTEST_SKIP() << "guarded, so many tensors take more mappings than Linux gives a process";
  constexpr int kBiases = 20000;
  Safetensors written;
  for (int i = 0; i < kBiases; ++i) {
    const std::string name = concat("block", i, "/biases");
    written.tensors[name] = Tensor::scalar(static_cast<float>(i));
    written.tensors["optimizer:momentum/" + name] = Tensor::scalar(static_cast<float>(-i));
  }
  write_safetensors(path_, written);
  const auto started = std::chrono::steady_clock::now();
  const Safetensors content = read_safetensors(path_);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
  EXPECT_EQ(content.tensors.size(), 2u * kBiases);
  expect_values<float>(content, "optimizer:momentum/block19999/biases", {}, {-19999.0f});
}

TEST_F(SafetensorsTest, AMissingFileOrADirectoryIsNamed) {
  EXPECT_THROW(read_safetensors(folder_ / "missing"), Error);
  EXPECT_THROW(read_safetensors(folder_), Error);
}

TEST_F(SafetensorsTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  write_safetensors(path_, one_of_each());
  const std::string before = read_file(path_);

  Safetensors undefined;
  undefined.tensors["nothing"] = Tensor();
  EXPECT_THROW(write_safetensors(path_, undefined), Error);
  Safetensors reserved;
  reserved.tensors["__metadata__"] = Tensor::scalar(1.0f);
  EXPECT_THROW(write_safetensors(path_, reserved), Error);
  Safetensors no_text;
  no_text.metadata["key"] = "\xff";
  EXPECT_THROW(write_safetensors(path_, no_text), Error);
  EXPECT_THROW(write_safetensors(path_ / "below_a_file", one_of_each()), Error);
  EXPECT_THROW(write_safetensors(folder_ / "missing" / "file", one_of_each()), Error);

  EXPECT_EQ(read_file(path_), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

/// A signal does not wait for the end of a large file; bytes that a stop has to read are read to their end.
TEST(SafetensorsStops, AreBetweenPiecesOfTheFileAndBeforeLargeTensors) {
  const testing::TempDir place;
  const fs::path file = place.path() / "large";
  write_safetensors(file, {.tensors = {{"a", Tensor(Shape{9 << 20})}, {"b", Tensor(Shape{2})}}, .metadata = {}});
  static int points = 0;
  const InterruptionScope counted([] { ++points; });
  read_safetensors(file);
  EXPECT_EQ(points, 2 + 1);
  read_file(file);
  EXPECT_EQ(points, 3);
}

TEST(RequireFinite, NamesSourceTensorAndElement) {
  NamedTensors tensors;
  tensors["a"] = Tensor::from<float>({2}, std::vector<float>{1, 2});
  tensors["b"] = Tensor::from<std::int32_t>({1}, std::vector<std::int32_t>{3});
  tensors["empty"] = Tensor(Shape{0});
  EXPECT_NO_THROW(require_finite(tensors, "file"));
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      tensors["c"] = Tensor::from<double>({2, 2}, std::vector<double>{1, 2, 3, bad}).to(dtype);
      try {
        require_finite(tensors, "run/checkpoint");
        FAIL() << bad;
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("run/checkpoint: tensor \"c\" [2,2]"), std::string::npos) << text;
        EXPECT_NE(text.find("at element 3"), std::string::npos) << text;
      }
    }
  }
}

}  // namespace
}  // namespace miniqat::safetensors_test

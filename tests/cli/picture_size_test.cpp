// Pictures of another size than the model's are refused by their headers: a small .gz can hold gigabytes.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/cli/tiny_task.h"
#include "tests/datasets/dataset_files.h"

namespace miniqat::testing::picture_size_test {
namespace {

class PictureSizeTest : public TinyTaskTest {
 protected:
  /// Ten pictures of 8192x8192 in each split, as the headers say. They are cut off: whoever expands them says so.
  PictureSizeTest() {
    for (const std::string split : {"large/train", "large/t10k"}) {
      std::string pictures;
      for (const std::uint32_t word : {2051, 10, 8192, 8192})
        for (int shift = 24; shift >= 0; shift -= 8) pictures += static_cast<char>(word >> shift);
      const std::string bytes = gzip_bytes(pictures + std::string(100'000, '\0'), 9);
      place_.write(split + "-images-idx3-ubyte.gz", bytes.substr(0, bytes.size() - 20));
      place_.write(split + "-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x0a", 8) + std::string(10, '\1'));
    }
  }

  void expect_refusal(const Outcome& outcome, const std::string& source) const {
    expect_error(outcome, 1, {source, "the input is [", "8,8,1]", "the pictures of mnist are [8192,8192,1]"});
  }
};

const Arguments kLarge = "--dataset mnist --data-dir large";

TEST_F(PictureSizeTest, PicturesThatDoNotFitAreNotExpanded) {
  expect_refusal(train("run", kLarge), "tiny.json");
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  expect_success(train("run"));
  expect_success(train("float", "--float"));
  expect_success(program("export --run run --format miniqat --out net.miniqat"));
  expect_refusal(program(Arguments("eval --run run") + kLarge), "run/eval_graph.json");
  expect_refusal(program(Arguments("eval --run run --integer") + kLarge), "run/eval_graph.json");
  expect_refusal(program(Arguments("eval --model net.miniqat") + kLarge), "net.miniqat");
  expect_refusal(program(Arguments("verify --run run") + kLarge), "run/eval_graph.json");
  expect_refusal(program(Arguments("calibrate --run float --out ptq") + kLarge), "float/eval_graph.json");
}

TEST_F(PictureSizeTest, OwnPicturesFitWithTheFlagsOfTheError) {
  const datasets::Picture picture = make_picture(9, 9, 3, 1);
  for (const std::string part : {"train", "test"})
    for (const std::string kind : {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
      place_.write("own/" + part + "/" + kind + "/a.png", png_bytes(picture));
  const auto own = [&](const Arguments& more) {
    return program(Arguments("train --model tiny.json --dataset ./own --steps 1 --out run") + more);
  };
  const std::string are = "own are [9,9,3]; ";
  expect_error(own({}), 1, {are + "--image-size 8x8 and --colour grey make them fit"});
  expect_error(own({"--colour", "grey"}), 1, {"own are [9,9,1]; --image-size 8x8 makes them fit"});
  expect_error(own({"--image-size", "8"}), 1, {"own are [8,8,3]; --colour grey makes them fit"});
  EXPECT_EQ(own({"--image-size", "8x8", "--colour", "grey"}).status, 0);
}

}  // namespace
}  // namespace miniqat::testing::picture_size_test

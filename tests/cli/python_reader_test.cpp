// python/safetensors_numpy.py, which users and scripts read checkpoints with.

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/files/safetensors.h"
#include "tests/cli/program.h"
#include "tests/source_dir.h"

namespace miniqat::testing::python_reader_test {
namespace {

/// A Python with NumPy: the first of the path or Debian's. "" without one.
std::string interpreter() {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (std::system((python + " -c 'import numpy' 2> /dev/null").c_str()) == 0) return python;
  return "";
}

/// What it prints, in the directory.
std::string output_of(const TempDir& place, const std::string& python, const std::string& arguments) {
  const std::string command = "cd '" + place.path().string() + "' && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" +
                              source_dir().string() + "/python' " + python + " " + arguments + " > out.txt 2> err.txt";
  EXPECT_EQ(std::system(command.c_str()), 0) << bytes_of(place.path() / "err.txt");
  return bytes_of(place.path() / "out.txt");
}

TEST(PythonReader, ReadsWhatMiniqatWritesAndTheReverse) {
  const std::string python = interpreter();
  if (python.empty()) GTEST_SKIP() << "python3-numpy is not installed";
  const TempDir place;
  write_safetensors(place.path() / "a.safetensors",
                    {.tensors = {{"conv1/weights", Tensor::from<float>({2, 3}, {1, -2, 0.5f, 4, 5, 6})},
                                 {"session:step", Tensor::scalar(std::int64_t{12})}},
                     .metadata = {{"note", "is no tensor"}}});
  EXPECT_EQ(output_of(place, python, "'" + source_dir().string() + "/python/safetensors_numpy.py' a.safetensors"),
            "conv1/weights  float32  [2, 3]  -2 to 6\n"
            "session:step   int64  []  12 to 12\n");
  EXPECT_EQ(
      output_of(place, python,
                "-c 'import safetensors_numpy as s; t = s.read(\"a.safetensors\"); "
                "s.write(\"b.safetensors\", {\"twice\": t[\"conv1/weights\"] * 2, \"step\": t[\"session:step\"]})'"),
      "");
  const NamedTensors back = read_safetensors(place.path() / "b.safetensors").tensors;
  ASSERT_EQ(back.at("twice").shape(), (Shape{2, 3}));
  EXPECT_EQ(back.at("twice").values<float>()[2], 1);
  EXPECT_EQ(*back.at("step").data<std::int64_t>(), 12);
}

}  // namespace
}  // namespace miniqat::testing::python_reader_test

#include "tests/datasets/dataset_files.h"

#include <zip.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "core/text/error.h"
#include "core/text/suggest.h"
#include "tests/datasets/gzip_bytes.h"
#include "tests/datasets/picture_files.h"

namespace miniqat::testing {
namespace {

namespace fs = std::filesystem;
using datasets::Dataset;
using datasets::Splits;

void put(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string pixels_of(const Dataset& split) {
  return {static_cast<const char*>(split.images.raw()), split.images.bytes()};
}

std::string big_endian(std::int64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

template <class Write>
void for_splits(const Splits& splits, const Write& write) {
  write("train", splits.train);
  write("test", splits.test);
}

/// By their names, without ".npy".
std::map<std::string, std::string> arrays_of(const Splits& splits) {
  std::map<std::string, std::string> arrays;
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    arrays["x_" + part] = npy_bytes("|u1", joined(split.images.shape().extents()), pixels_of(split));
    std::string labels;
    for (const std::int32_t label : split.labels.values<std::int32_t>())
      labels += std::string(1, static_cast<char>(label)) + std::string(7, '\0');
    arrays["y_" + part] = npy_bytes("<i8", concat(split.size(), ","), labels);
  });
  return arrays;
}

}  // namespace

void write_class_folders(const fs::path& folder, const Splits& splits) {
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    const Shape example = split.example_shape();
    for (std::int64_t i = 0; i < split.size(); ++i) {
      const auto* pixels = split.images.data<std::uint8_t>() + i * example.elements();
      const datasets::Picture picture{.height = example[0],
                                      .width = example[1],
                                      .channels = static_cast<int>(example[2]),
                                      .pixels{pixels, pixels + example.elements()}};
      char name[16];
      std::snprintf(name, sizeof name, "%05d.png", static_cast<int>(i));
      put(folder / part / std::to_string(split.labels.data<std::int32_t>()[i]) / name, png_bytes(picture));
    }
  });
}

void write_idx_folder(const fs::path& folder, const Splits& splits) {
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    const Shape& shape = split.images.shape();
    const std::string stem = part == "train" ? "train" : "t10k";
    put(folder / (stem + "-images-idx3-ubyte"),
        big_endian(2051) + big_endian(shape[0]) + big_endian(shape[1]) + big_endian(shape[2]) + pixels_of(split));
    std::string labels = big_endian(2049) + big_endian(shape[0]);
    for (const std::int32_t label : split.labels.values<std::int32_t>()) labels += static_cast<char>(label);
    put(folder / (stem + "-labels-idx1-ubyte.gz"), gzip_bytes(labels, 6));
  });
}

void write_csv_folder(const fs::path& folder, const Splits& splits) {
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    const std::int64_t size = split.example_shape().elements();
    std::string text = "label";
    for (std::int64_t k = 0; k < size; ++k) text += concat(",p", k);
    if (part == "test") text.clear();
    if (!text.empty()) text += '\n';
    for (std::int64_t i = 0; i < split.size(); ++i) {
      text += std::to_string(split.labels.data<std::int32_t>()[i]);
      for (std::int64_t k = 0; k < size; ++k) text += concat(",", int{split.images.data<std::uint8_t>()[i * size + k]});
      text += '\n';
    }
    put(folder / (part + (part == "test" ? ".csv.gz" : ".csv")), part == "test" ? gzip_bytes(text, 6) : text);
  });
}

void write_npy_folder(const fs::path& folder, const Splits& splits) {
  for (const auto& [name, bytes] : arrays_of(splits)) put(folder / (name + ".npy"), bytes);
}

void write_npz_file(const fs::path& file, const Splits& splits) {
  const std::map<std::string, std::string> arrays = arrays_of(splits);
  zip_t* archive = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const auto& [name, bytes] : arrays)
    zip_file_add(archive, (name + ".npy").c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
  if (zip_close(archive) != 0) fail("cannot write ", file);
}

std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = concat("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize(118 - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + elements;
}

}  // namespace miniqat::testing

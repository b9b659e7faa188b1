#pragma once

#include <filesystem>
#include <string>

#include "datasets/dataset.h"

namespace miniqat::testing {

// One data set in each format that a user's own files may have, byte for byte the same pictures. Each function makes
// the path, a folder or a file, with training and test pictures.

/// Folders of classes in train/ and test/, files numbered through all classes.
void write_class_folders(const std::filesystem::path& folder, const datasets::Splits& splits);
/// As the files of MNIST are called, the labels gzipped.
void write_idx_folder(const std::filesystem::path& folder, const datasets::Splits& splits);
/// train.csv with names of the columns, test.csv.gz without.
void write_csv_folder(const std::filesystem::path& folder, const datasets::Splits& splits);
/// x_train.npy, y_train.npy (int64), x_test.npy, y_test.npy.
void write_npy_folder(const std::filesystem::path& folder, const datasets::Splits& splits);
/// The same in a .npz.
void write_npz_file(const std::filesystem::path& file, const datasets::Splits& splits);

/// A .npy file of such elements: "|u1", "2, 3, 4".
std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& elements);

}  // namespace miniqat::testing

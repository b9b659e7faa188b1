#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// Pictures or numbers from a user's files. `path` is one of
///
///   a folder with a folder of pictures (JPEG, PNG, BMP, WebP) for each class, or with such folders in train/ and in
///   test/ or val/, in any case
///
///   a folder of IDX files: "train" in the names of some, "test", "t10k" or "val" in those of the others
///
///   a folder of x_train.npy, y_train.npy, x_test.npy, y_test.npy, or a .npz file of these arrays; other names are in
///   array_pictures.cpp. A .npy file is x alone, without answers
///
///   a folder of train.csv and test.csv (or val.csv), each perhaps with .gz behind it, or one such file
///
///   a folder of labels.csv and the recordings that it lists (arrays/recordings.h), or such folders train/ and test/
///
///   NAME_TRAIN.ts, which takes NAME_TEST.ts beside it, or another .ts file (arrays/ts.h), each perhaps with .gz, or a
///   folder with one pair of these.
///
/// Arrays and tables that can be pictures are pictures, all others numbers (NumberOptions), standardised. With both
/// test and val, val becomes the validation part. Without either, the last of every six examples of each class, or of
/// every six groups, becomes a test example; LoadOptions::whole_as_test makes all of them test examples. The number of
/// classes comes from the data; folders and texts give them names. What was left out, what a column became, and what
/// rounding costs, is in Dataset::remarks. Throws Error in one line for a path where there is nothing of this kind, and
/// what the readers throw.
Splits load_user_files(const std::filesystem::path& path, const LoadOptions& options);

/// Whether a file in a folder of data, or of a data set that has a name, can be one that is read, by its name: people
/// keep other files there, too.
bool is_named_like_data(const std::filesystem::path& file);

/// A path of data and what is read with it: the NAME_TEST.ts beside a NAME_TRAIN.ts.
std::vector<std::filesystem::path> files_read_with(const std::filesystem::path& data);

/// One file of these formats as an example [h, w, c] uint8 of the size and the colour that the options ask for. Throws
/// Error.
Tensor read_picture(const std::filesystem::path& path, const PictureOptions& options);

/// The file itself or, of a folder, the sounds at any depth below it, in order.
std::vector<std::string> sound_files(const std::filesystem::path& path);

/// Sound files as examples of this front end, without answers, in order: one each or, with SoundOptions::frames, all
/// windows of each (Dataset::recordings), whose numbers are not standardised. Throws Error that names a file that
/// cannot be read or is too short.
Dataset read_sound_files(const std::vector<std::string>& files, const SoundOptions& options);

}  // namespace miniqat::datasets

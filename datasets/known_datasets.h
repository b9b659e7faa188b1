#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/data_kind.h"
#include "datasets/dataset.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// A data set that has a name.
struct KnownDataset {
  std::string name;
  /// The data set is read from files; otherwise LoadOptions decide.
  bool has_files = true;
  /// A picture that is shifted and mirrored shows the same thing. Not so digits.
  bool mirrors = false;
  /// The grid of its pictures, as in Dataset.
  float scale = 1.0f / 255;
  int zero_point = 0;
  /// The front end of sounds that the program draws, and their power over that of the noise; none for pictures.
  std::optional<SoundOptions> sounds = {};
  double snr_db = 0;
  Splits (*load)(const std::string& name, const std::filesystem::path& data_dir, const LoadOptions& options);

  DataKind kind() const { return sounds ? DataKind::kDrawnSounds : DataKind::kNamedPictures; }
};

/// All of them, the default first.
const std::vector<KnownDataset>& known_datasets();

/// The names of the known data sets, in the same order.
std::vector<std::string> dataset_names();

/// Throws Error that lists the names when `name` is none of them, and says that a path could be given.
const KnownDataset& find_dataset(const std::string& name);

/// Whether a name of a data set is the path of a user's own files: it has a slash, ends in .npz, .npy, .csv, .ts,
/// .csv.gz or .ts.gz, or is a folder that is there and not called like a known data set.
bool is_path(const std::string& name);

/// Whether it is a folder of sound files, as they are found at any depth.
bool is_of_sounds(const std::string& name);

/// What to call a data set in the name of a run: its name, or that of its file or folder without an ending.
std::string short_name(const std::string& name);

/// Both splits of a data set by name, or of a user's own files by their path (user_files.h). Named ones that live in
/// files are read from `data_dir` or, when it is empty, from the directory in the environment variable
/// MINIQAT_DATA_DIR: from its subfolder called `name` if there is one. Throws Error in one line: an unknown name with
/// the known ones; a missing directory or file with what was looked for and where; a malformed file with its path and
/// what is wrong.
Splits load(const std::string& name, const std::filesystem::path& data_dir = {}, const LoadOptions& options = {});

}  // namespace miniqat::datasets

#include "datasets/known_datasets.h"

#include <algorithm>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/ts.h"
#include "datasets/cifar10.h"
#include "datasets/idx.h"
#include "datasets/sound/sound_files.h"
#include "datasets/synthetic_digits.h"
#include "datasets/synthetic_hums.h"
#include "datasets/synthetic_sounds.h"
#include "datasets/user_files.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

Splits digits(const std::string&, const fs::path&, const LoadOptions& options) { return synthetic_digits(options); }
Splits idx(const std::string& name, const fs::path& data_dir, const LoadOptions& options) {
  return load_idx(name, data_dir, options.accept);
}
Splits cifar10(const std::string&, const fs::path& data_dir, const LoadOptions&) { return load_cifar10(data_dir); }
Splits sounds(const std::string&, const fs::path&, const LoadOptions& options) { return synthetic_sounds(options); }
Splits hums(const std::string&, const fs::path&, const LoadOptions& options) { return synthetic_hums(options); }

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> kDatasets = {
      {.name = "synthetic", .has_files = false, .load = digits},
      {.name = "mnist", .load = idx},
      {.name = "fashion-mnist", .load = idx},
      {.name = "cifar10", .mirrors = true, .scale = kCifar10Scale, .zero_point = kCifar10ZeroPoint, .load = cifar10},
      {.name = "synthetic-sounds",
       .has_files = false,
       .sounds = SoundOptions(),
       .snr_db = kSoundsSnrDb,
       .load = sounds},
      {.name = "synthetic-hums", .has_files = false, .sounds = anomaly_detector(), .snr_db = kHumsSnrDb, .load = hums}};
  return kDatasets;
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const KnownDataset& dataset : known_datasets()) names.push_back(dataset.name);
  return names;
}

const KnownDataset& find_dataset(const std::string& name) {
  for (const KnownDataset& dataset : known_datasets())
    if (dataset.name == name) return dataset;
  const std::vector<std::string> names = dataset_names();
  fail("unknown data set ", quote(name), "; known are ", joined(names),
       ", or the path of your own files (there is no folder of that name here)", did_you_mean(name, names));
}

bool is_path(const std::string& name) {
  const auto known = dataset_names();
  if (std::ranges::find(known, name) != known.end()) return false;
  std::error_code failure;
  return name.find('/') != std::string::npos || name.ends_with(".npz") || name.ends_with(".npy") ||
         name.ends_with(".csv") || name.ends_with(".csv.gz") || is_ts(name) || fs::is_directory(name, failure);
}

bool is_of_sounds(const std::string& name) {
  std::error_code failure;
  return is_path(name) && fs::is_directory(name, failure) && has_sounds(name);
}

std::string short_name(const std::string& name) {
  if (!is_path(name)) return name;
  const fs::path path = fs::path(name).lexically_normal();
  const std::string file = (path.has_filename() ? path : path.parent_path()).filename().string();
  const std::string stem = file.substr(0, file.find('.', 1));
  // NAME_TRAIN.ts is both parts of NAME.
  return is_ts(path) ? stem.substr(0, stem.rfind("_TRAIN")) : stem;
}

Splits load(const std::string& name, const fs::path& data_dir, const LoadOptions& options) {
  if (is_path(name)) return load_user_files(name, options);
  const KnownDataset& known = find_dataset(name);
  if (options.accept_kind) options.accept_kind(known.kind());
  Splits splits = known.load(name, data_dir, options);
  if (!options.grid || !splits.test.has_pictures()) return splits;
  for (Dataset* part : {&splits.train, &splits.test, splits.validation ? &*splits.validation : nullptr}) {
    if (part == nullptr) continue;
    part->scale = options.grid->scale;
    part->zero_point = static_cast<int>(options.grid->zero_point);
  }
  return splits;
}

}  // namespace miniqat::datasets

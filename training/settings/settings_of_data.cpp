#include "training/settings/settings_of_data.h"

#include <algorithm>
#include <vector>

#include "core/text/json.h"
#include "core/text/suggest.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

using datasets::DataKind;
using datasets::Features;

/// A setting that not all data have.
struct SettingOfData {
  const char* name;
  std::vector<DataKind> kinds;
  /// The features of sounds that it decides; all of them where this is empty.
  std::vector<Features> features = {};
};

const std::vector<SettingOfData>& settings_by_kind() {
  using enum DataKind;
  static const std::vector<DataKind> kOwn = {kPictureFolders, kPictureArrays, kArrays, kTables,
                                             kSeries,         kRecordings,    kSounds},
                                     kOwnPictures = {kPictureFolders, kPictureArrays},
                                     kOwnNumbers = {kArrays, kTables, kSeries, kRecordings, kSounds},
                                     kGrouped = {kPictureFolders, kTables, kRecordings, kSounds},
                                     kAllSounds = {kSounds, kDrawnSounds};
  static const std::vector<Features> kBands = {Features::kLogMel, Features::kMfcc};
  static const std::vector<SettingOfData> kTable = {
      {"image_size", kOwnPictures},
      {"colour", kOwnPictures},
      {"mean", kOwnPictures},
      {"std", kOwnPictures},
      {"skip_broken", {kPictureFolders, kSounds}},
      {"inputs", kOwn},
      {"target", {kTables, kRecordings, kSounds}},
      {"answers", {kPictureArrays, kArrays, kTables, kSeries, kRecordings}},
      {"no_standardise", kOwnNumbers},
      {"pad_to", {kSeries, kRecordings}},
      {"group_by", kGrouped},
      {"test_groups", kGrouped},
      {"features", kAllSounds},
      {"frames", kAllSounds},
      {"sample_rate", kAllSounds},
      {"seconds", kAllSounds},
      {"window_ms", kAllSounds, kBands},
      {"stride_ms", kAllSounds, kBands},
      {"bands", kAllSounds, kBands},
      {"coefficients", kAllSounds, {Features::kMfcc}},
      {"low_hz", kAllSounds, kBands},
      {"high_hz", kAllSounds, kBands},
      {"mel_scale", kAllSounds, kBands},
      {"silence", {kSounds}},
      {"snr_db", {kDrawnSounds}},
      {"shift_ms", kAllSounds},
      {"gain_db", kAllSounds},
      {"noise", kAllSounds},
      {"noise_db", kAllSounds},
  };
  return kTable;
}

/// What runs record of data without sounds, too: the usual front end.
TrainSettings recorded_as_usual() {
  TrainSettings settings;
  settings.sounds.resolve("");
  return settings;
}

[[noreturn]] void refuse_beside(DataKind kind, const SettingOfData& one, const std::string& dataset) {
  std::vector<std::string> others;
  for (const DataKind other : one.kinds) others.emplace_back(datasets::words_of(other));
  refuse_ignored(flag_of(one.name),
                 concat("--dataset ", dataset, ", ", datasets::words_of(kind), ": it is for ", alternatives(others)));
}

std::string name_of(Features features) { return std::string(names_of(features)[static_cast<std::size_t>(features)]); }

/// Refuses a setting that the features of these sounds do not have.
void require_features(const SettingOfData& one, const TrainSettings& settings) {
  if (one.features.empty()) return;
  const Features features = settings.sounds.options(settings.dataset).features;
  if (std::ranges::find(one.features, features) != one.features.end()) return;
  std::vector<std::string> others;
  for (const Features other : one.features) others.push_back(name_of(other));
  refuse_ignored(flag_of(one.name), concat("--features ", name_of(features), ": it is for ", alternatives(others)));
}

}  // namespace

void require_settings_of(DataKind kind, const TrainSettings& settings) {
  const auto is_of = [&](const SettingOfData& one) { return std::ranges::find(one.kinds, kind) != one.kinds.end(); };
  for (const SettingOfData& one : settings_by_kind()) {
    if (!settings.given.contains(one.name)) continue;
    if (!is_of(one)) refuse_beside(kind, one, settings.dataset);
    require_features(one, settings);
  }
  if (settings.of_a_run) return;
  const Json now = settings_to_json(settings), usual = settings_to_json(TrainSettings()),
             recorded = settings_to_json(recorded_as_usual());
  for (const SettingOfData& one : settings_by_kind())
    if (!is_of(one) && now[one.name] != usual[one.name] && now[one.name] != recorded[one.name])
      refuse_beside(kind, one, settings.dataset);
}

}  // namespace miniqat::training

#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/flags/command_line.h"
#include "core/text/error.h"
#include "training/calibrate/calibration.h"
#include "training/run/run_source.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

/// Flags under a heading of their own.
struct FlagGroup {
  std::string heading;
  /// Names of the settings that --help shows, in this order.
  std::vector<std::string> first;
  /// Names of the settings that only --help-all shows.
  std::vector<std::string> more;
};

inline constexpr const char* kRunHeading = "The run";

/// The settings of a training: data, network, bits and ranges, schedule, the run. Those that a first week needs come
/// first. Each setting of TrainSettings is in one of them.
const std::vector<FlagGroup>& groups_of_training();

/// How the flags of one command differ from the settings that they are for, by the names of fields.
struct FlagChanges {
  /// Without a flag.
  std::set<std::string> omitted = {};
  /// The fields that have one; all of them where this is empty.
  std::set<std::string> only = {};
  /// With another help text.
  std::map<std::string, std::string> help = {};
  /// What `--help` shows as the default.
  std::map<std::string, std::string> shown_defaults = {};
  /// Under which headings; without any all are under one, and --help shows all.
  std::vector<FlagGroup> groups = {};
};

/// The flags of a command for one settings struct.
template <class Settings>
class SettingFlags {
 public:
  explicit SettingFlags(Command& command, const std::string& heading, const FlagChanges& changes = {},
                        const Settings& defaults = {})
      : given_(defaults), omitted_(changes.omitted) {
    Settings::visit([&](const char* name, auto, const char*) {
      if (!changes.only.empty() && !changes.only.contains(name)) omitted_.insert(name);
    });
    for (const FlagGroup& group : changes.groups) {
      for (const std::string& name : group.first) add_named(command, name, group.heading, changes);
      for (const std::string& name : group.more)
        if (const Flag* flag = add_named(command, name, group.heading, changes)) command.keep_for_help_all(*flag);
    }
    Settings::visit([&](const char* name, auto access, const char* help) {
      if (!omitted_.contains(name) && !flags_.contains(name))
        add_setting(command, name, access(given_), help, heading, changes);
    });
  }
  SettingFlags(const SettingFlags&) = delete;

  bool was_given(const std::string& field) const { return !omitted_.contains(field) && flags_.at(field).was_given(); }
  /// The fields whose flags are on the command line, by name.
  std::vector<std::string> given() const {
    std::vector<std::string> names;
    for (const auto& [name, flag] : flags_)
      if (flag.was_given()) names.push_back(name);
    return names;
  }
  /// Overwrites the fields whose flags are on the command line.
  void apply(Settings& settings) const {
    Settings::visit([&](const char* name, auto access, const char*) {
      if (was_given(name)) access(settings) = access(given_);
    });
  }

 private:
  /// Null for a name that is none of the settings or has no flag.
  const Flag* add_named(Command& command, const std::string& wanted, const std::string& heading,
                        const FlagChanges& changes) {
    const Flag* added = nullptr;
    Settings::visit([&](const char* name, auto access, const char* help) {
      if (name == wanted && !omitted_.contains(wanted))
        added = &add_setting(command, wanted, access(given_), help, heading, changes);
    });
    return added;
  }

  template <class Field>
  const Flag& add_setting(Command& command, const std::string& name, Field& field, const char* help,
                          const std::string& heading, const FlagChanges& changes) {
    const auto text = changes.help.find(name), shown = changes.shown_defaults.find(name);
    Flag flag = add(command, training::flag_of(name), field, text == changes.help.end() ? help : text->second.c_str());
    if (shown != changes.shown_defaults.end()) flag.shown_default(shown->second);
    // So that a flag added to a line that has it already wins.
    return flags_.emplace(name, flag.heading(heading).last_wins()).first->second;
  }

  template <class Field>
  static Flag add(Command& command, const std::string& name, Field& field, const char* help) {
    if constexpr (std::is_same_v<Field, bool>) {
      return command.flag(name, field, help);
    } else if constexpr (std::is_enum_v<Field>) {
      std::vector<std::string> names;
      for (const std::string_view value : names_of(field)) names.emplace_back(value);
      return command.choice(
          name, names, static_cast<std::size_t>(field), [&field](std::size_t i) { field = static_cast<Field>(i); },
          help);
    } else {
      return command.option(name, field, help);
    }
  }

  Settings given_;
  std::set<std::string> omitted_;
  std::map<std::string, Flag> flags_;
};

/// Throws UsageError for settings of a calibration that are out of range or without effect.
void check_calibration(const SettingFlags<training::CalibrateSettings>& flags,
                       const training::CalibrateSettings& settings);

/// Overwrites the settings whose flags are on the command line; --epochs replaces the steps of a config.json. Throws
/// UsageError that names both for a flag that would have no effect beside another one or beside what the settings say
/// already.
void apply_flags(const SettingFlags<training::TrainSettings>& flags, training::TrainSettings& settings);

/// The flag of a command that takes a data set besides the run's own.
inline void add_skip_broken(Command& command, bool& skip_broken) {
  command.flag("--skip-broken", skip_broken,
               "with --dataset: leave out pictures that cannot be read, instead of ending with an error");
}

/// Throws UsageError for the flag without --dataset.
inline void require_dataset_for(bool skip_broken, const std::string& dataset) {
  if (skip_broken && dataset.empty())
    throw training::UsageError("--skip-broken goes with --dataset: a run reads its own data as it was trained");
}

/// The run, which reads the data set as the flag says.
inline training::RunSource with_skip_broken(training::RunSource run, bool skip_broken, const std::string& dataset) {
  require_dataset_for(skip_broken, dataset);
  run.settings.skip_broken = run.settings.skip_broken || skip_broken;
  return run;
}

}  // namespace miniqat::cli

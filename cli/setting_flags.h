#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/command_line.h"
#include "training/settings.h"

namespace miniqat::cli {

/// The flags of a command for one settings struct.
template <class Settings>
class SettingFlags {
 public:
  explicit SettingFlags(Command& command, const std::string& heading) {
    Settings::visit([&](const char* name, auto access, const char* help) {
      Flag flag = add(command, training::flag_of(name), access(given_), help);
      // So that a flag added to a line that has it already wins.
      flags_.emplace(name, flag.heading(heading).last_wins());
    });
  }
  SettingFlags(const SettingFlags&) = delete;

  bool was_given(const std::string& field) const { return flags_.at(field).was_given(); }
  /// Overwrites the fields whose flags stood on the command line.
  void apply(Settings& settings) const {
    Settings::visit([&](const char* name, auto access, const char*) {
      if (was_given(name)) access(settings) = access(given_);
    });
  }

 private:
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
  std::map<std::string, Flag> flags_;
};

}  // namespace miniqat::cli

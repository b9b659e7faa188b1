#include "cli/flags/setting_flags.h"

#include <gtest/gtest.h>

#include <map>

#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli::setting_flags_test {
namespace {

// One that is in no group would come last, among those of the run, and for everybody.
TEST(SettingGroups, EachSettingIsInOne) {
  std::map<std::string, int> times;
  for (const FlagGroup& group : groups_of_training()) {
    for (const std::string& name : group.first) ++times[name];
    for (const std::string& name : group.more) ++times[name];
  }
  training::TrainSettings::visit([&](const char* name, auto, const char*) {
    EXPECT_EQ(times[name], 1) << name;
    times.erase(name);
  });
  EXPECT_TRUE(times.empty()) << times.begin()->first << " is no setting";
}

}  // namespace
}  // namespace miniqat::cli::setting_flags_test

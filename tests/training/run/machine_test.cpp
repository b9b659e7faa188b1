#include <gtest/gtest.h>

#include "core/text/json.h"
#include "training/run/made_by.h"

namespace miniqat::training::machine_test {
namespace {

TEST(Machine, HasTheCommitThatTheProgramGave) {
  EXPECT_EQ(machine_to_json()["commit"], "") << "a library knows none";
  set_program_commit("907277a-dirty");
  EXPECT_EQ(machine_to_json()["commit"], "907277a-dirty");
  set_program_commit("");
}

}  // namespace
}  // namespace miniqat::training::machine_test

// `miniqat verify --c`: the exported C, compiled and run.

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::verify_c_test {
namespace {

using Json = nlohmann::json;

class VerifyCTest : public TinyTaskTest {
 protected:
  Outcome verify() const { return program("verify run --c --no-runtimes --threads 1 --json"); }
};

/// The same integers for every picture.
TEST_F(VerifyCTest, RunsExportedC) {
  if (std::system("command -v cc > /dev/null") != 0) GTEST_SKIP() << "no C compiler called cc";
  expect_success(train("run", "--weight-bits 4 --quantize-input"));
  const Json runtimes = Json::parse(expect_success(verify()).out)["runtimes"];
  ASSERT_EQ(runtimes.size(), 1u);
  EXPECT_EQ(runtimes[0]["name"].get<std::string>().find("C (cc "), 0u);
  EXPECT_EQ(runtimes[0]["examples"], 20);
  EXPECT_EQ(runtimes[0]["top1_agreement_with_integer"], 1);
  EXPECT_EQ(runtimes[0]["outputs"]["count"], 200);
  EXPECT_EQ(runtimes[0]["outputs"]["equal"], 200);
  EXPECT_EQ(Json::parse(bytes_of(path("run/verify.json")))["runtimes"], runtimes) << "for report";
  // A compiler that fails is a failed runtime, which only a bound makes a failure of the command.
  place_.write("bin/cc", "#!/bin/sh\n[ \"$1\" = -dumpversion ] && echo 1 && exit\necho no room >&2\nexit 3\n");
  std::filesystem::permissions(path("bin/cc"), std::filesystem::perms::owner_all);
  const std::string before = std::getenv("PATH");
  setenv("PATH", (path("bin").string() + ":" + before).c_str(), 1);
  const Json failed = Json::parse(verify().out);
  setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(failed["runtimes"], Json::array());
  EXPECT_EQ(failed["failed"], Json({"c failed: cc ended with status 3: no room"}));
}

}  // namespace
}  // namespace miniqat::testing::verify_c_test

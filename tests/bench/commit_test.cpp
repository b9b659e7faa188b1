// cmake/Commit.cmake, which each build runs.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/source_dir.h"
#include "tests/temp_dir.h"

namespace miniqat::bench {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

void shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

/// The commit of a build of `sources`.
std::string commit_of(const fs::path& sources, const TempDir& place) {
  const fs::path written = place.path() / "commit.txt", commit_template = place.write("commit.in", "@MINIQAT_COMMIT@");
  shell("cmake -DGIT=git '-DSOURCES=" + sources.string() + "' '-DTEMPLATE=" + commit_template.string() +
        "' '-DOUTPUT=" + written.string() + "' -P '" + (source_dir() / "cmake/Commit.cmake").string() + "'");
  std::string commit;
  std::getline(std::ifstream(written), commit);
  return commit;
}

TEST(Commit, IsThatOfTheFilesAtEachBuild) {
  if (std::system("command -v git > /dev/null") != 0) GTEST_SKIP() << "git is not installed";
  const TempDir place;
  const fs::path sources = place.path() / "some sources";
  fs::create_directories(sources / "inner");
  EXPECT_EQ(commit_of(sources, place), "") << "outside of git";

  const std::string git = "git -C '" + sources.string() + "' -c user.name=a -c user.email=a@b ";
  shell(git + "init --quiet && echo 1 > '" + (sources / "file").string() + "' && " + git + "add file && " + git +
        "commit --quiet --message=one");
  const std::string clean = commit_of(sources, place);
  EXPECT_GE(clean.size(), 7u);
  EXPECT_EQ(commit_of(sources / "inner", place), "") << "another's repository";

  std::ofstream(sources / "file") << "changed";
  EXPECT_EQ(commit_of(sources, place), clean + "-dirty");
  std::ofstream(sources / "file") << "1\n";
  EXPECT_EQ(commit_of(sources, place), clean);
}

}  // namespace
}  // namespace miniqat::bench

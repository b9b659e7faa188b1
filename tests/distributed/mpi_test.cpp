// The sums between real ranks. A test starts its own program under mpirun, where the other half of this file runs.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "distributed/launch.h"
#include "tests/cli/program.h"
#include "tests/distributed/mpirun.h"
#include "tests/distributed/thread_ranks.h"

namespace miniqat::distributed::mpi_test {
namespace {

constexpr const char* kOnRanks = "OnRanks.CheckAllSums";

class MpiSums : public ::testing::TestWithParam<int> {};

TEST_P(MpiSums, HaveTheBitsOfOneTree) {
  if (!testing::has_mpirun()) GTEST_SKIP() << "skipped: there is no mpirun, or no MPI in this build";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const testing::Outcome outcome =
      testing::mpirun(GetParam(), {self, std::string("--gtest_filter=") + kOnRanks, "--gtest_color=no"}).wait();
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  std::size_t passed = 0;
  for (std::size_t at = 0; (at = outcome.out.find("[  PASSED  ] 1 test", at)) != std::string::npos; ++at) ++passed;
  EXPECT_EQ(passed, GetParam()) << outcome.out << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(, MpiSums, ::testing::Values(2, 4, 8));

TEST(OnRanks, CheckAllSums) {
  if (launched_ranks() == 1) GTEST_SKIP() << "skipped: for the ranks that MpiSums starts";
  Communicator& ranks = open_ranks();
  check_small_talk(ranks);
  for (const SumWay way : {SumWay::kGather, SumWay::kSlices, SumWay::kHalves, SumWay::kWhole})
    check_tree_sums(ranks, way);
  check_tree_sums(ranks, SumWay::kHalves, std::chrono::microseconds(50));
  ranks.close();
}

}  // namespace
}  // namespace miniqat::distributed::mpi_test

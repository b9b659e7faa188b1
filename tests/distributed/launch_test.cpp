// Launchers that start several tasks of a program which cannot be ranks of one run.

#include "distributed/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/tiny_task.h"

namespace miniqat::testing::launch_test {
namespace {

/// Of launchers; this test may itself run under one.
constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
    "SLURM_PROCID",         "SLURM_STEP_NUM_TASKS"};

class LaunchTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    for (const char* const name : kVariables) unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(LaunchTest, TasksOfSrunWithoutMpiAreRefusedWithTheWayOut) {
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  setenv("SLURM_PROCID", "0", 1);
  const Outcome outcome = train("run", {"--shards", "2"});
  expect_error(outcome, 1, {"srun started 2 tasks", "--mpi=pmix for OpenMPI, --mpi=pmi2 for MPICH"});
}

TEST_F(LaunchTest, TheFirstTaskOfSrunSpeaksFirst) {
  EXPECT_EQ(distributed::launched_rank(), 0);
  setenv("SLURM_PROCID", "3", 1);
  EXPECT_EQ(distributed::launched_rank(), 3);
  // Under mpirun in a job of Slurm.
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  EXPECT_EQ(distributed::launched_rank(), 1);
}

}  // namespace
}  // namespace miniqat::testing::launch_test

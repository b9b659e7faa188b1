#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/cli/tiny_task.h"
#include "tests/distributed/mpirun.h"

namespace miniqat::testing {

/// Runs of tiny tasks by `mpirun -np N miniqat train --shards 8`.
class RanksTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    if (!has_mpirun()) GTEST_SKIP() << "skipped: there is no mpirun, or no MPI in this build";
  }

  static Arguments program_line(const Arguments& line) { return Arguments{program_path()} + line; }
  /// `train_command` in 8 shards of 4 pictures.
  static Arguments sharded(const std::string& out, const Arguments& more) {
    return train_command(out, "--shards 8 --batch-size 32" + more);
  }
  Outcome on_ranks(int ranks, const Arguments& line) const {
    return ranks == 1 ? program(line) : mpirun(ranks, program_line(line), place_.path()).wait();
  }
  Outcome train_on(int ranks, const std::string& out, const Arguments& more) const {
    return on_ranks(ranks, sharded(out, more));
  }
};

}  // namespace miniqat::testing

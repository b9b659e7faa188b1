#include "core/threads/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/temp_dir.h"

namespace miniqat::cpu_quota_test {
namespace {

class CpuQuotaTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = place_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<double> quota() const { return cpu_quota(place_.path()); }

  testing::TempDir place_;
};

constexpr const char* kUnified = "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(CpuQuotaTest, NoFilesNoLimit) { EXPECT_FALSE(quota()); }

TEST_F(CpuQuotaTest, VersionTwoTakesTheLeastOfNestedGroups) {
  write("proc/self/mountinfo", kUnified);
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_FALSE(quota());
  write("sys/fs/cgroup/outer/inner/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 2.5);
  write("sys/fs/cgroup/outer/cpu.max", "75000 50000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 1.5);
  write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 1.5);
}

TEST_F(CpuQuotaTest, VersionOne) {
  write("proc/self/mountinfo",
        "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("proc/self/cgroup", "5:memory:/elsewhere\n4:cpu,cpuacct:/group\n");
  write("sys/fs/cgroup/cpu,cpuacct/group/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/group/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(quota());
  write("sys/fs/cgroup/cpu,cpuacct/group/cpu.cfs_quota_us", "50000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 0.5);
}

TEST_F(CpuQuotaTest, AContainerSeesItsGroupAsTheTop) {
  write("proc/self/mountinfo", "25 1 0:22 /docker/abc /sys/fs/cgroup rw - cgroup cgroup rw,cpu\n");
  write("proc/self/cgroup", "4:cpu:/docker/abc/inside\n");
  write("sys/fs/cgroup/cpu.cfs_quota_us", "300000");
  write("sys/fs/cgroup/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(quota().value(), 3);
  write("sys/fs/cgroup/inside/cpu.cfs_quota_us", "200000");
  write("sys/fs/cgroup/inside/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(quota().value(), 2);
}

TEST_F(CpuQuotaTest, NonsenseIsNoLimit) {
  write("proc/self/mountinfo", std::string("nonsense\n- - -\n") + kUnified);
  write("proc/self/cgroup", "nonsense\n0::/\n");
  for (const char* text : {"", "max", "abc 100000", "100000", "100000 0", "-5 100000"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(quota()) << text;
  }
}

TEST(CoresOfQuota, RoundsUpToAtLeastOne) {
  EXPECT_EQ(cores_of_quota(0.01), 1);
  EXPECT_EQ(cores_of_quota(1), 1);
  EXPECT_EQ(cores_of_quota(1.5), 2);
  EXPECT_EQ(cores_of_quota(64), 64);
  EXPECT_EQ(cores_of_quota(1e12), std::numeric_limits<int>::max());
  EXPECT_EQ(cores_of_quota({}), std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace miniqat::cpu_quota_test

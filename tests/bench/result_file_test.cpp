// Rows of the JSON as CSV.

#include "bench/results/result_file.h"

#include <gtest/gtest.h>

#include "core/text/json.h"

namespace miniqat::bench::result_file_test {
namespace {

using Json = nlohmann::ordered_json;

TEST(BenchCsv, HasAColumnForEveryKeyWhereARowHasIt) {
  const Json json = {{"version", "0.1"},
                     {"commit", ""},
                     {"date", "2026-11-28"},
                     {"machine", {{"cpu", "m, \"x\""}, {"cores", 2}, {"instruction_set", "avx2"}}},
                     {"kernels",
                      {{{"kernel", "memcpy"}, {"elements", 10}, {"seconds", 0.5}, {"rounds", {0.5, 0.25}}},
                       {{"kernel", "forward"},
                        {"bits", 8},
                        {"elements", 10},
                        {"seconds", 1e-7},
                        {"seconds_quartiles", {0.25, 0.75}},
                        {"quiet", false}}}},
                     {"steps", {{{"model", "lenet"}, {"what", "W8A8, folded"}, {"seconds", nullptr}}}}};
  EXPECT_EQ(bench_csv(json),
            "row,model,what,kernel,bits,elements,seconds,seconds_quartiles_low,seconds_quartiles_high,quiet,"
            "cpu,instruction_set,version,commit,date\n"
            "kernel,,,memcpy,,10,0.5,,,,\"m, \"\"x\"\"\",avx2,0.1,,2026-11-28\n"
            "kernel,,,forward,8,10,1e-07,0.25,0.75,false,\"m, \"\"x\"\"\",avx2,0.1,,2026-11-28\n"
            "step,lenet,\"W8A8, folded\",,,,,,,,\"m, \"\"x\"\"\",avx2,0.1,,2026-11-28\n");
}

TEST(BenchCsv, ObjectsBecomeColumns) {
  const Json json = {{"cases", {{{"case", "c"}, {"a", {{"by", "x"}, {"seconds_quartiles", {1, 2}}}}, {"speed", 2}}}}};
  EXPECT_EQ(bench_csv(json),
            "row,case,a_by,a_seconds_quartiles_low,a_seconds_quartiles_high,speed\n"
            "compared,c,x,1,2,2\n");
  EXPECT_EQ(bench_csv({{"kernels", Json::array()}}), "") << "nothing was measured";
}

}  // namespace
}  // namespace miniqat::bench::result_file_test

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/cases.h"
#include "tests/fuzz/graph_case.h"

namespace miniqat::fuzz {

/// In the order in which they run.
const std::vector<std::string>& all_stages();

/// Whether this case is wrong; reported, shrunk and saved then.
bool run_case(const Arguments& arguments, const std::string& stage, std::int64_t number, Counts& counts);

/// Whether the process that judges the case in the file dies.
using Dies = std::function<bool(const std::string& path)>;

/// Reports a case that killed its process: shrinks it by way of files in further ones, and saves it.
void report_death(const Arguments& arguments, const std::string& isa, const std::string& stage, std::int64_t number,
                  const std::string& what, const Dies& dies);

/// Judges a file that was saved. Returns what is wrong; "" when all is well.
std::string replay(const std::string& path);

/// What of a stage cannot be done on this machine, for its summary; "" when everything can.
std::string left_out(const std::string& stage);

/// Whether a case shows the fault. Cases that cannot be run show none.
using Fails = std::function<bool(const GraphCase&)>;

/// A smaller case that fails, too: around `finding`'s nodes if that will do, of fewer nodes, threads and runs, smaller
/// extents and plainer attributes. Greedy, for at most `seconds`.
GraphCase shrink(const GraphCase& test, const Finding& finding, const Fails& fails, double seconds);

}  // namespace miniqat::fuzz

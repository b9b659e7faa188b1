#pragma once

#include <string>

#include "training/report/report.h"

namespace miniqat::training {

/// The report of one run; gather_report() says what it throws. `name` is for the page.
RunReport examine_run(const std::string& path, const std::string& name, const ReportRequest& request,
                      const ReportProgress& progress);

}  // namespace miniqat::training

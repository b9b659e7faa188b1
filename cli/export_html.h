#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "integer/model.h"
#include "training/run/run_source.h"

namespace miniqat::cli {

/// A run, as integers, for a page (exporters/html/html.h).
struct HtmlRequest {
  const training::RunSource& run;
  const integer::Model& model;
  /// The grid of the pictures' bytes.
  const integer::Grid& bytes;
  /// Further runs, behind it on the slider.
  const std::vector<std::string>& compared;
  /// Test pictures on the page, at most: of every class first one, then another.
  std::int64_t pictures;
  /// The data set of the pictures; "" for the run's own.
  const std::string& dataset;
  const std::string& data_dir;
};

struct HtmlExport {
  std::string text;
  /// About the page: whole lines.
  std::string words;
};

/// Without the run's data set the page has no test pictures, which a note on stderr says. Throws what
/// exporters::html() throws, and Error for a run that is missing, is none of integers or does not fit, or for a data
/// set that was asked for and is not there.
HtmlExport export_html(const HtmlRequest& request);

}  // namespace miniqat::cli

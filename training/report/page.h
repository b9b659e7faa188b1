#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "training/report/layer_figures.h"
#include "training/report/report.h"

namespace miniqat::training {

/// The figures, in their order.
nlohmann::ordered_json layers_to_json(const std::vector<LayerFigures>& layers);

/// The data of a page; docs/report.md describes the keys.
nlohmann::ordered_json report_to_json(const Report& report);

/// A file of training/report/page/, by its name; cmake/TextFiles.cmake puts them into the program. Throws Error if
/// there is none of that name.
std::string_view report_page_file(std::string_view name);

/// Throws UsageError for an --out that ends as a file of another kind, a checkpoint, say.
void require_page_name(const std::filesystem::path& out);

/// One HTML file that draws the report in the browser: the files of training/report/page/ put together with the data.
/// The page loads nothing else, and its content security policy forbids it.
std::string report_page(const Report& report);

}  // namespace miniqat::training

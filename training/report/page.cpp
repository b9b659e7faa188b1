#include "training/report/page.h"

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "training/report/page_texts.h"
#include "training/report/report_json.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

std::string title_of(const Report& report) {
  std::string names;
  for (const RunReport& run : report.runs) names += (names.empty() ? "" : ", ") + run.name;
  return "miniqat: " + names;
}

/// Paths and names may hold any bytes.
Json readable(const Json& json) { return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace

std::string_view report_page_file(std::string_view name) {
  for (const auto& [file, text] : kReportPageTexts)
    if (file == name) return text;
  fail("the page has no file ", name);
}

std::string report_page(const Report& report) {
  const Json data = readable(report_to_json(report)), title = readable(title_of(report));
  return fill_page(report_page_file("page.html"), [&](std::string_view name) {
    if (name == "title") return html_text(title.get<std::string>());
    if (name == "data") return script_json(data);
    return std::string(report_page_file(name));
  });
}

}  // namespace miniqat::training

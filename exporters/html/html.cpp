#include "exporters/html/html.h"

#include <string_view>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "exporters/html/page_texts.h"
#include "integer/format/model_file.h"

namespace miniqat::exporters {
namespace {

using Json = nlohmann::ordered_json;

void require_fit(const HtmlPage& page) {
  if (page.models.empty()) fail("a page needs a model");
  const integer::Model& first = page.models.front().model;
  const Shape& input = first.tensor(first.input).shape;
  const std::int64_t outputs = first.tensor(first.output).shape.elements();
  for (const HtmlModel& other : page.models) {
    if (!other.model.task.empty() || other.model.input_standard)
      fail(other.label, ": a page classifies pictures, and this model is for ",
           other.model.input_standard ? "numbers" : concat("the task ", other.model.task));
    const Shape& shape = other.model.tensor(other.model.input).shape;
    if (shape != input) fail(other.label, " takes pictures ", shape, ", ", page.models.front().label, " takes ", input);
    const std::int64_t count = other.model.tensor(other.model.output).shape.elements();
    if (count != outputs)
      fail(other.label, " has ", counted(count, "output"), ", ", page.models.front().label, " has ", outputs);
  }
  const auto pictures = static_cast<std::int64_t>(page.picture_names.size());
  const bool has_pictures = page.pictures.defined() && page.pictures.elements() > 0;
  if ((pictures > 0 || has_pictures) && page.pictures.shape() != integer::batch_shape(pictures, input))
    fail(pictures, " names for the pictures ", page.pictures.shape(), " of a model that takes ", input);
}

Json json_of(const HtmlModel& entry) {
  const integer::Grid& input = entry.model.tensor(entry.model.input).grid;
  Json json = {{"label", entry.label}, {"weight_bytes", entry.model.weight_bytes()}};
  if (entry.accuracy) json["accuracy"] = *entry.accuracy;
  if (entry.bytes != input) json["input_from_byte"] = integer::input_table(entry.bytes, input);
  json["model"] = base64(integer::to_bytes(entry.model));
  return json;
}

/// Models and pictures.
std::string data_of(const HtmlPage& page) {
  Json json = {{"models", Json::array()}, {"pictures", Json::array()}};
  for (const HtmlModel& entry : page.models) json["models"].push_back(json_of(entry));
  const std::size_t count = page.picture_names.size();
  const std::size_t size = count == 0 ? 0 : page.pictures.bytes() / count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view bytes(static_cast<const char*>(page.pictures.raw()) + i * size, size);
    json["pictures"].push_back({{"name", page.picture_names[i]}, {"bytes", base64(bytes)}});
  }
  return script_json(json);
}

/// A file of exporters/html/page/, by its name; cmake/TextFiles.cmake puts them into the program.
std::string_view page_file(std::string_view name) {
  for (const auto& [file, text] : kPageTexts)
    if (file == name) return text;
  fail("the page has no file ", name);
}

/// What stands for @name@ in page.html.
std::string part(std::string_view name, const HtmlPage& page, const std::string& data) {
  if (name == "title") return html_text(page.title);
  if (name == "data") return data;
  return std::string(page_file(name));
}

}  // namespace

std::string html(const HtmlPage& page) {
  require_fit(page);
  std::string data;
  try {
    data = data_of(page);
  } catch (const Json::type_error&) {
    fail("a name is not valid UTF-8");
  }
  return fill_page(page_file("page.html"), [&](std::string_view name) { return part(name, page, data); });
}

}  // namespace miniqat::exporters

#include "exporters/json.h"

#include <algorithm>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "integer/format/model_json.h"

namespace miniqat::exporters {
namespace {

using Json = nlohmann::ordered_json;

class NumberWriter final : public integer::ListWriter {
 public:
  Json unsigned_list(std::span<const std::uint8_t> values, int /*bits*/) override { return list(values); }
  Json int32_list(std::span<const std::int32_t> values) override { return list(values); }
  Json float32_list(std::span<const float> values) override { return list(values); }

 private:
  static Json list(const auto& values) { return Json(Json::array_t(values.begin(), values.end())); }
};

/// JSON for people: a short value takes one line, lists of numbers fill lines, and every key of a larger object and
/// every item of a larger list begins a line.
class Layout {
 public:
  std::string write(const Json& json) {
    value(json, 0);
    return std::move(text_) + "\n";
  }

 private:
  static constexpr std::size_t kWidth = 120;
  /// More than these don't fit a line.
  static constexpr std::size_t kMostItems = 40;

  static bool may_fit(const Json& json) {
    return !json.is_structured() || (json.size() <= kMostItems && std::ranges::all_of(json, may_fit));
  }
  std::size_t column() const { return text_.size() - (text_.rfind('\n') + 1); }
  void line(std::size_t indent) { text_ += "\n" + std::string(indent, ' '); }

  void value(const Json& json, std::size_t indent) {
    if (may_fit(json)) {
      const std::string line = dump_on_one_line(json);
      if (!json.is_structured() || column() + line.size() < kWidth) {
        text_ += line;
        return;
      }
    }
    const bool object = json.is_object();
    text_ += object ? '{' : '[';
    bool first = true;
    for (auto item = json.begin(); item != json.end(); ++item, first = false) {
      if (!first) text_ += ',';
      if (json.is_array() && !item->is_structured()) {
        number(*item, first, indent + 2);
      } else {
        line(indent + 2);
        if (object) text_ += Json(item.key()).dump() + ": ";
        value(*item, indent + 2);
      }
    }
    line(indent);
    text_ += object ? '}' : ']';
  }

  void number(const Json& json, bool first, std::size_t indent) {
    const std::string number = json.dump();
    if (first || line_start_ + kWidth < text_.size() + number.size() + 2) {
      line(indent);
      line_start_ = text_.size() - indent;
    } else {
      text_ += ' ';
    }
    text_ += number;
  }

  std::string text_;
  /// Where the line of numbers begins that is being filled.
  std::size_t line_start_ = 0;
};

}  // namespace

std::string json(const integer::Model& model, const std::optional<integer::Grid>& bytes) {
  model.check();
  NumberWriter numbers;
  Json json;
  json["format"] = "miniqat.integer_model";
  json["version"] = 2;
  const integer::Grid& input = model.tensor(model.input).grid;
  if (bytes && *bytes != input) json["input_from_byte"] = integer::input_table(*bytes, input);
  json.update(integer::model_to_json(model, numbers));
  try {
    return Layout().write(json);
  } catch (const Json::type_error&) {
    fail("the model's name is not valid UTF-8");
  }
}

}  // namespace miniqat::exporters

#include "training/report/example_drawing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "datasets/pictures/resize.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostLines = 8;

std::string base64_of(std::span<const std::uint8_t> bytes) {
  return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Json draw_picture(const datasets::Dataset& pictures, std::int64_t index) {
  constexpr std::int64_t kLongestSide = 64;
  const Shape shape = pictures.example_shape();
  const auto bytes = pictures.images.values<std::uint8_t>().subspan(static_cast<std::size_t>(index * shape.elements()),
                                                                    static_cast<std::size_t>(shape.elements()));
  datasets::Picture picture{.height = shape[0],
                            .width = shape[1],
                            .channels = static_cast<int>(shape[2]),
                            .pixels = {bytes.begin(), bytes.end()}};
  const std::int64_t longest = std::max(shape[0], shape[1]);
  const bool is_seen = shape[2] == 1 || shape[2] == 3;
  if (is_seen && longest > kLongestSide)
    picture = datasets::fit_picture(picture, std::max<std::int64_t>(shape[0] * kLongestSide / longest, 1),
                                    std::max<std::int64_t>(shape[1] * kLongestSide / longest, 1));
  return {{"shape", {picture.height, picture.width, picture.channels}},
          {"pixels", is_seen ? base64_of(picture.pixels) : ""}};
}

bool is_of_lines(const Shape& example) {
  return example.rank() == 1 || (example.rank() == 2 && example[1] <= kMostLines);
}

/// Numbers [rows, columns, channels] of an example, or of what a network gave back, in the units to draw.
struct Numbers {
  std::int64_t rows = 1, columns = 1, channels = 1;
  std::vector<double> values = {};

  double at(std::int64_t row, std::int64_t column, std::int64_t channel) const {
    return values[static_cast<std::size_t>((row * columns + column) * channels + channel)];
  }
};

/// Features, and the channels of a map, differ in their units: they stay standardised. [steps, channels] are a row.
Numbers numbers_of(const datasets::Dataset& examples, std::span<const float> values) {
  const Shape shape = examples.example_shape();
  Numbers numbers;
  numbers.channels = shape.rank() == 1 ? 1 : shape.extents().back();
  numbers.columns = shape.rank() == 3 ? shape[1] : shape[0];
  numbers.rows = shape.rank() == 3 ? shape[0] : 1;
  const Standard* units = is_of_lines(shape) && shape.rank() == 2 ? examples.standard.get() : nullptr;
  const auto channels = static_cast<std::size_t>(numbers.channels);
  for (std::size_t i = 0; i < values.size(); ++i)
    numbers.values.push_back(units == nullptr ? values[i] : units->restored(i % channels, values[i]));
  return numbers;
}

/// The numbers of a channel over the steps; of very many the lowest and the highest of each stretch, as they come.
Json line_of(const Numbers& numbers, std::int64_t channel) {
  constexpr std::int64_t kMostPoints = 400;
  Json line = Json::array();
  const auto at = [&](std::int64_t step) { return numbers.at(0, step, channel); };
  if (numbers.columns <= kMostPoints) {
    for (std::int64_t step = 0; step < numbers.columns; ++step) line.push_back(rounded_json(at(step)));
    return line;
  }
  constexpr std::int64_t kStretches = kMostPoints / 2;
  for (std::int64_t i = 0; i < kStretches; ++i) {
    const std::int64_t first = i * numbers.columns / kStretches, last = (i + 1) * numbers.columns / kStretches;
    std::int64_t low = first, high = first;
    for (std::int64_t step = first; step < last; ++step) {
      if (at(step) < at(low)) low = step;
      if (at(step) > at(high)) high = step;
    }
    for (const std::int64_t step : {std::min(low, high), std::max(low, high)}) line.push_back(rounded_json(at(step)));
  }
  return line;
}

void add_lines(const Numbers& numbers, bool is_output, Json& drawing) {
  for (std::int64_t channel = 0; channel < numbers.channels; ++channel)
    drawing["lines"].push_back({{"name", numbers.channels == 1 ? "" : concat("channel ", channel)},
                                {"values", line_of(numbers, channel)},
                                {"output", is_output}});
}

/// [height, width] of a first channel or, with the steps to the right, of all channels upwards.
struct Map {
  std::int64_t height = 0, width = 0;
  std::vector<double> values = {};
};

Map map_of(const Numbers& numbers, bool is_of_steps) {
  const auto shown = [](std::int64_t side) { return std::min<std::int64_t>(side, 256); };
  const std::int64_t height = is_of_steps ? numbers.channels : numbers.rows, width = numbers.columns;
  Map map{.height = shown(height), .width = shown(width)};
  for (std::int64_t y = 0; y < map.height; ++y)
    for (std::int64_t x = 0; x < map.width; ++x) {
      const std::int64_t row = y * height / map.height, column = x * width / map.width;
      map.values.push_back(is_of_steps ? numbers.at(0, column, height - 1 - row) : numbers.at(row, column, 0));
    }
  return map;
}

Json draw_maps(const std::vector<Map>& maps) {
  double low = 0, high = 0;
  bool is_first = true;
  for (const Map& map : maps)
    for (const double value : map.values) {
      if (!std::isfinite(value)) continue;
      low = is_first ? value : std::min(low, value);
      high = is_first ? value : std::max(high, value);
      is_first = false;
    }
  Json drawing = {{"maps", Json::array()}, {"low", rounded_json(low)}, {"high", rounded_json(high)}};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    std::vector<std::uint8_t> bytes;
    for (const double value : maps[i].values) {
      const double share = std::isfinite(value) && high > low ? (value - low) / (high - low) : 0;
      bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * share)));
    }
    drawing["maps"].push_back({{"name", i == 0 ? "input" : "output"},
                               {"width", maps[i].width},
                               {"height", maps[i].height},
                               {"bytes", base64_of(bytes)}});
  }
  return drawing;
}

}  // namespace

Json rounded_json(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double unit = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(unit) && unit > 0 ? std::round(value * unit) / unit : value;
}

Json draw_example(const datasets::Dataset& examples, std::int64_t index, std::span<const float> output) {
  if (examples.has_pictures()) return draw_picture(examples, index);
  const Shape shape = examples.example_shape();
  const auto elements = static_cast<std::size_t>(shape.elements());
  std::vector<Numbers> all = {numbers_of(
      examples, examples.images.values<float>().subspan(static_cast<std::size_t>(index) * elements, elements))};
  if (!output.empty()) all.push_back(numbers_of(examples, output));
  Json drawing;
  if (is_of_lines(shape)) {
    drawing["lines"] = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i) add_lines(all[i], i > 0, drawing);
  } else {
    std::vector<Map> maps;
    for (const Numbers& numbers : all) maps.push_back(map_of(numbers, shape.rank() == 2));
    drawing = draw_maps(maps);
  }
  const bool is_in_units = is_of_lines(shape) && shape.rank() == 2;
  drawing["unit"] = examples.standard && !is_in_units ? "standardised" : "";
  return drawing;
}

}  // namespace miniqat::training

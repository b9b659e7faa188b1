#include "labs/chart.h"

#include <algorithm>

#include "labs/lab.h"

namespace lab {
namespace {

constexpr double kWidth = 640, kHeight = 340;
constexpr double kLeft = 62, kRight = 622, kTop = 40, kBottom = 290;

const char* class_of(Colour colour) {
  switch (colour) {
    case Colour::kBlue:
      return "blue";
    case Colour::kOrange:
      return "orange";
    case Colour::kGreen:
      return "green";
    case Colour::kGrey:
      return "grey";
  }
  return "grey";
}

/// To a tenth of a pixel, so that the last bits of a processor's arithmetic do not show.
std::string pixel(double value) {
  const std::string rounded = text(value, "%.1f");
  return rounded == "-0.0" ? "0.0" : rounded;
}

std::string words_at(double left, double top, const std::string& words, const std::string& attributes) {
  return "<text x=\"" + pixel(left) + "\" y=\"" + pixel(top) + "\" " + attributes + ">" + words + "</text>\n";
}

std::string stroke(double x1, double y1, double x2, double y2, const std::string& name) {
  return "<line x1=\"" + pixel(x1) + "\" y1=\"" + pixel(y1) + "\" x2=\"" + pixel(x2) + "\" y2=\"" + pixel(y2) +
         "\" class=\"" + name + "\"/>\n";
}

constexpr const char* kStyle = R"(<style>
  svg { font: 13px sans-serif }
  .ground { fill: #ffffff } text { fill: #222222 }
  .rule { stroke: #dddddd } .axis { stroke: #222222 }
  .line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 6 4 }
  .blue { stroke: #1f6fb4 } .orange { stroke: #c25b00 } .green { stroke: #2a7f3b } .grey { stroke: #777777 }
  .blue.solid { fill: #1f6fb4 } .orange.solid { fill: #c25b00 } .green.solid { fill: #2a7f3b } .grey.solid { fill: #777777 }
  .solid { stroke: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #16191d } text { fill: #e6e6e6 }
    .rule { stroke: #3a3f45 } .axis { stroke: #e6e6e6 }
    .blue { stroke: #6cb4f2 } .orange { stroke: #ff9d4d } .green { stroke: #7bd18d } .grey { stroke: #a0a0a0 }
    .blue.solid { fill: #6cb4f2 } .orange.solid { fill: #ff9d4d } .green.solid { fill: #7bd18d } .grey.solid { fill: #a0a0a0 }
    .solid { stroke: none }
  }
</style>
)";

}  // namespace

Chart::Chart(std::string title, Axis x, Axis y) : title_(std::move(title)), x_(std::move(x)), y_(std::move(y)) {}

double Chart::left_of(double x) const { return kLeft + (x - x_.from) / (x_.to - x_.from) * (kRight - kLeft); }
double Chart::top_of(double y) const { return kBottom - (y - y_.from) / (y_.to - y_.from) * (kBottom - kTop); }

void Chart::line(const Points& points, Colour colour, bool dashed) {
  body_ += "<polyline class=\"line " + std::string(class_of(colour)) + (dashed ? " dashed" : "") + "\" points=\"";
  for (std::size_t i = 0; i < points.size(); ++i)
    body_ += (i > 0 ? " " : "") + pixel(left_of(points[i].first)) + "," +
             pixel(std::clamp(top_of(points[i].second), kTop, kBottom));
  body_ += "\"/>\n";
}

void Chart::dots(const Points& points, Colour colour, double radius) {
  for (const auto& [x, y] : points)
    body_ += "<circle class=\"" + std::string(class_of(colour)) + " solid\" cx=\"" + pixel(left_of(x)) + "\" cy=\"" +
             pixel(top_of(y)) + "\" r=\"" + pixel(radius) + "\"/>\n";
}

void Chart::bars(const Points& points, double width, Colour colour) {
  for (const auto& [x, y] : points) {
    const double top = std::max(kTop, top_of(std::max(y, 0.0))), bottom = top_of(std::min(y, 0.0));
    body_ += "<rect class=\"" + std::string(class_of(colour)) + " solid\" x=\"" + pixel(left_of(x - width / 2)) +
             "\" y=\"" + pixel(top) + "\" width=\"" + pixel(left_of(x + width / 2) - left_of(x - width / 2)) +
             "\" height=\"" + pixel(bottom - top) + "\"/>\n";
  }
}

void Chart::label(double x, double y, const std::string& words, Colour colour) {
  body_ += words_at(left_of(x), top_of(y), words, "class=\"" + std::string(class_of(colour)) + " solid\"");
}

std::string Chart::axes() const {
  std::string result;
  for (const double tick : x_.ticks) {
    result += stroke(left_of(tick), kTop, left_of(tick), kBottom, "rule");
    result += words_at(left_of(tick), kBottom + 17, text(tick, "%g"), "text-anchor=\"middle\"");
  }
  for (const double tick : y_.ticks) {
    result += stroke(kLeft, top_of(tick), kRight, top_of(tick), "rule");
    result += words_at(kLeft - 6, top_of(tick) + 4, text(tick, "%g"), "text-anchor=\"end\"");
  }
  result += stroke(kLeft, kBottom, kRight, kBottom, "axis") + stroke(kLeft, kTop, kLeft, kBottom, "axis");
  result += words_at((kLeft + kRight) / 2, kHeight - 10, x_.title, "text-anchor=\"middle\"");
  return result + words_at(8, kTop - 8, y_.title, "text-anchor=\"start\"");
}

std::string Chart::svg() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + text(kWidth) + " " + text(kHeight) +
         "\" role=\"img\">\n<title>" + title_ + "</title>\n" + kStyle + "<rect class=\"ground\" width=\"" +
         text(kWidth) + "\" height=\"" + text(kHeight) + "\"/>\n" +
         words_at(kWidth / 2, 17, title_, "text-anchor=\"middle\" font-weight=\"bold\"") + axes() + body_ + "</svg>\n";
}

}  // namespace lab

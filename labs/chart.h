#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lab {

/// A number axis with marks at `ticks`; from < to.
struct Axis {
  std::string title;
  double from = 0;
  double to = 1;
  std::vector<double> ticks = {};
};

/// The colours of series, readable on light and dark ground.
enum class Colour { kBlue, kOrange, kGreen, kGrey };

using Points = std::vector<std::pair<double, double>>;

/// A small picture over two axes, as an SVG file that follows the reader's choice of light or dark.
class Chart {
 public:
  Chart(std::string title, Axis x, Axis y);

  /// Straight lines from point to point, cut at the edges of the picture.
  void line(const Points& points, Colour colour, bool dashed = false);
  void dots(const Points& points, Colour colour, double radius = 4);
  /// Upright bars from y = 0, `width` wide in units of x and centred there.
  void bars(const Points& points, double width, Colour colour);
  void label(double x, double y, const std::string& words, Colour colour);

  std::string svg() const;

 private:
  double left_of(double x) const;
  double top_of(double y) const;
  std::string axes() const;

  std::string title_;
  Axis x_, y_;
  std::string body_;
};

}  // namespace lab

#include "bench/results/throughput_plot.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "core/text/classic.h"
#include "core/text/error.h"

namespace miniqat::bench {
namespace {

struct PlotPoint {
  double size, speed;
  bool quiet;

  auto operator<=>(const PlotPoint&) const = default;
};

/// The points of one line, by size.
struct PlotLine {
  Operation operation;
  std::string by;
  std::vector<PlotPoint> points;
};

struct Panel {
  std::string title;
  std::vector<PlotLine> lines;
};

constexpr double kLeft = 64, kTop = 48, kBottom = 46, kPlotWidth = 620, kPlotHeight = 300, kHead = 40;
constexpr double kPanelHeight = kTop + kPlotHeight + kBottom;

/// Two colours each, for a light ground and a dark one: told apart by most eyes that see colours differently.
struct Ink {
  const char* light;
  const char* dark;
};
constexpr Ink kInks[] = {{"#6b7280", "#9ca3af"}, {"#6b7280", "#9ca3af"}, {"#0b6fb8", "#5cb3f0"},
                         {"#b3560b", "#f0a35e"}, {"#1c7a45", "#5fcf92"}, {"#a3267b", "#f07cc6"},
                         {"#5b46c2", "#a897ff"}, {"#8a7500", "#dcc640"}};
/// The inks of memcpy and read.
constexpr std::size_t kLimits = 2;
static_assert(std::size(kInks) == static_cast<std::size_t>(Operation::kBackwardLearned) + 1);

std::string style_text() {
  std::string text =
      "<style>\n"
      "text { font: 12px system-ui, 'DejaVu Sans', sans-serif; fill: #1f2937 }\n"
      ".title { font-size: 14px; font-weight: 600 }\n"
      ".ground { fill: #ffffff } .grid { stroke: #e5e7eb } .frame { stroke: #9ca3af; fill: none }\n"
      ".cache { stroke: #9ca3af; stroke-dasharray: 2 3 } .note { fill: #6b7280 }\n"
      ".line { fill: none; stroke-width: 2 } .hollow { fill: #ffffff; stroke-width: 1.5 } .limit { stroke-dasharray: 7 4 }\n";
  std::string dark =
      "@media (prefers-color-scheme: dark) {\n"
      "text { fill: #e5e7eb } .ground { fill: #111827 } .grid { stroke: #1f2937 } .frame { stroke: #6b7280 }\n"
      ".cache { stroke: #6b7280 } .note { fill: #9ca3af } .hollow { fill: #111827 }\n";
  for (std::size_t i = 0; i < std::size(kInks); ++i) {
    text += concat(".c", i, " { stroke: ", kInks[i].light, " } .m", i, " { fill: ", kInks[i].light, " }\n");
    dark += concat(".c", i, " { stroke: ", kInks[i].dark, " } .m", i, " { fill: ", kInks[i].dark, " }\n");
  }
  return text + dark + "}\n</style>\n";
}

std::string with_entities(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

std::string text_at(double x, double y, const std::string& text, const char* more = "") {
  return formatted("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, more) + with_entities(text) + "</text>\n";
}

std::string line_from(double x1, double y1, double x2, double y2, const char* kind) {
  return formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, kind);
}

/// A circle, square or triangle on either side: one kernel each, again from the first after four. Hollow if the row was
/// not quiet.
std::string mark_at(double x, double y, std::size_t kind, std::size_t ink, bool quiet = true) {
  const std::string look = quiet ? concat("m", ink) : concat("hollow c", ink);
  constexpr double kHalf = 3.5;
  if (kind % 4 == 0)
    return formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"%s\"/>\n", x, y, kHalf, look.c_str());
  if (kind % 4 == 1)
    return formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x - kHalf,
                     y - kHalf, 2 * kHalf, 2 * kHalf, look.c_str());
  return formatted("<path d=\"M%.1f %.1f l4.5 %s l-9 0 z\" class=\"%s\"/>\n", x, kind % 4 == 2 ? y - 4 : y + 4,
                   kind % 4 == 2 ? "8" : "-8", look.c_str());
}

std::string panel_title(const KernelTime& row) {
  std::string text = counted(row.threads, "thread");
  if (row.what.has_grid())
    text += concat(", ", row.what.layout(), row.what.channels > 1 ? concat(" (", row.what.channels, ")") : "", ", ",
                   row.what.bits, " bits");
  return text;
}

PlotLine& line_of(Panel& panel, const KernelTime& row) {
  for (PlotLine& line : panel.lines)
    if (line.operation == row.what.operation && line.by == row.by) return line;
  return panel.lines.emplace_back(PlotLine{row.what.operation, row.by, {}});
}

void add_point(Panel& panel, const KernelTime& row) {
  line_of(panel, row)
      .points.push_back({static_cast<double>(row.what.elements), row.elements_per_nanosecond(), row.quiet});
}

/// The panels of one number of threads; what has no grid (the limits, backward) is in each, or in one of its own.
std::vector<Panel> panels_of(const std::vector<KernelTime>& rows) {
  std::vector<Panel> panels;
  std::vector<int> threads;
  for (const KernelTime& row : rows)
    if (std::ranges::count(threads, row.threads) == 0) threads.push_back(row.threads);
  for (const int count : threads) {
    std::vector<Panel> own;
    for (const KernelTime& row : rows) {
      if (row.threads != count || !row.what.has_grid()) continue;
      const std::string title = panel_title(row);
      auto panel = std::ranges::find(own, title, &Panel::title);
      if (panel == own.end()) panel = own.insert(own.end(), Panel{title, {}});
      add_point(*panel, row);
    }
    for (const KernelTime& row : rows) {
      if (row.threads != count || row.what.has_grid() || row.what.operation == Operation::kRead) continue;
      if (own.empty()) own.push_back({panel_title(row), {}});
      for (Panel& panel : own)
        if (is_limit(row.what.operation) || &panel == &own.front()) add_point(panel, row);
    }
    panels.insert(panels.end(), own.begin(), own.end());
  }
  for (Panel& panel : panels)
    for (PlotLine& line : panel.lines) std::ranges::sort(line.points);
  return panels;
}

std::string legend_text(const PlotLine& line) {
  if (is_limit(line.operation)) return "memcpy";
  const std::string name(traits_of(line.operation).name);
  return line.by == kOurName ? name : concat(name, ", ", line.by);
}

/// The width of the legends of all panels, by their longest text.
double legend_width(const std::vector<Panel>& panels) {
  std::size_t longest = 0;
  for (const Panel& panel : panels)
    for (const PlotLine& line : panel.lines) longest = std::max(longest, legend_text(line).size());
  longest = std::max(longest, std::string_view("hollow: not quiet").size());
  return 60 + 7.5 * static_cast<double>(longest);
}

/// Draws one panel with its upper left corner at (0, top).
class PanelPicture {
 public:
  PanelPicture(const Panel& panel, const PlotAxis& sizes, const PlotAxis& speeds, double top)
      : panel_(panel), sizes_(sizes), speeds_(speeds), top_(top + kTop) {}

  std::string draw(const std::vector<Cache>& caches) const {
    std::string text = text_at(kLeft, top_ - 26, panel_.title, "class=\"title\"");
    text += grid() + cache_lines(caches);
    std::vector<std::string> names;
    double legend = top_ + 12;
    for (const PlotLine& line : panel_.lines) {
      if (std::ranges::count(names, line.by) == 0 && !is_limit(line.operation)) names.push_back(line.by);
      const auto kind = static_cast<std::size_t>(std::ranges::find(names, line.by) - names.begin());
      text += drawn_line(line, kind) + legend_entry(line, kind, legend);
      legend += 20;
    }
    const auto has_hollow = [](const PlotLine& line) {
      return !is_limit(line.operation) && !std::ranges::all_of(line.points, &PlotPoint::quiet);
    };
    if (std::ranges::any_of(panel_.lines, has_hollow))
      text += text_at(kLeft + kPlotWidth + 16, legend, "hollow: not quiet", "class=\"note\"");
    return text;
  }

 private:
  double x(double elements) const { return kLeft + sizes_.place(elements) * kPlotWidth; }
  double y(double speed) const { return top_ + (1 - speeds_.place(speed)) * kPlotHeight; }

  std::string grid() const {
    std::string text;
    const double bottom = top_ + kPlotHeight;
    for (const double size : sizes_.ticks())
      text += line_from(x(size), top_, x(size), bottom, "grid") +
              text_at(x(size), bottom + 17, tick_text(size), "text-anchor=\"middle\"");
    for (const double speed : speeds_.ticks())
      text += line_from(kLeft, y(speed), kLeft + kPlotWidth, y(speed), "grid") +
              text_at(kLeft - 8, y(speed) + 4, tick_text(speed), "text-anchor=\"end\"");
    const std::string frame =
        formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"frame\"/>\n", kLeft, top_,
                  kPlotWidth, kPlotHeight);
    const std::string turned =
        formatted("text-anchor=\"middle\" transform=\"rotate(-90 16 %.1f)\"", top_ + kPlotHeight / 2);
    return text + frame + text_at(kLeft + kPlotWidth / 2, bottom + 36, "elements", "text-anchor=\"middle\"") +
           text_at(16, top_ + kPlotHeight / 2, "elements / ns", turned.c_str());
  }

  /// Where x and y, eight bytes an element, fill a cache. Named above the frame, where no line of data can be.
  std::string cache_lines(const std::vector<Cache>& caches) const {
    std::string text;
    for (const Cache& cache : caches) {
      const double elements = static_cast<double>(cache.bytes) / 8;
      if (!sizes_.contains(elements)) continue;
      text +=
          line_from(x(elements), top_, x(elements), top_ + kPlotHeight, "cache") +
          text_at(x(elements), top_ - 6, concat("L", cache.level, " full"), "class=\"note\" text-anchor=\"middle\"");
    }
    return text;
  }

  /// An operation has a colour, or each kernel if there is one operation.
  std::size_t ink_of(const PlotLine& line, std::size_t kind) const {
    const auto operation = static_cast<std::size_t>(line.operation);
    const auto differs = [&](const PlotLine& other) {
      return !is_limit(other.operation) && other.operation != line.operation;
    };
    if (is_limit(line.operation) || std::ranges::any_of(panel_.lines, differs)) return operation;
    return kLimits + (operation - kLimits + kind) % (std::size(kInks) - kLimits);
  }

  std::string drawn_line(const PlotLine& line, std::size_t kind) const {
    const std::size_t ink = ink_of(line, kind);
    std::string path, marks;
    for (const auto& [size, speed, quiet] : line.points) {
      path += formatted("%c%.1f %.1f ", path.empty() ? 'M' : 'L', x(size), y(speed));
      if (!is_limit(line.operation)) marks += mark_at(x(size), y(speed), kind, ink, quiet);
    }
    return concat("<path d=\"", path, "\" class=\"line c", ink, is_limit(line.operation) ? " limit" : "", "\"/>\n") +
           marks;
  }

  std::string legend_entry(const PlotLine& line, std::size_t kind, double at) const {
    const std::size_t ink = ink_of(line, kind);
    const double left = kLeft + kPlotWidth + 16;
    const std::string look = concat("line c", ink, is_limit(line.operation) ? " limit" : "");
    std::string text = line_from(left, at - 4, left + 26, at - 4, look.c_str());
    if (!is_limit(line.operation)) text += mark_at(left + 13, at - 4, kind, ink);
    return text + text_at(left + 34, at, legend_text(line));
  }

  const Panel& panel_;
  const PlotAxis& sizes_;
  const PlotAxis& speeds_;
  double top_;
};

}  // namespace

PlotAxis::PlotAxis(const std::vector<double>& values, Ticks ticks)
    : low_(std::ranges::min(values)), high_(std::ranges::max(values)), kind_(ticks) {
  // A little room at both ends, and never none at all.
  const double room = std::max(std::pow(high_ / low_, 0.04), 1.02);
  low_ /= room;
  high_ *= room;
}

double PlotAxis::place(double value) const { return std::log(value / low_) / std::log(high_ / low_); }

std::vector<double> PlotAxis::ticks() const {
  std::vector<double> found;
  for (double decade = std::pow(10, std::floor(std::log10(low_))); decade <= high_; decade *= 10)
    for (const double step : {1, 2, 5})
      if (contains(step * decade) && (step == 1 || kind_ == Ticks::kOneTwoFive)) found.push_back(step * decade);
  return found;
}

std::string tick_text(double value) {
  if (value >= 1e6) return formatted("%gM", value / 1e6);
  return value >= 1e3 ? formatted("%gk", value / 1e3) : formatted("%g", value);
}

std::string throughput_svg(const std::vector<KernelTime>& rows, const std::vector<Cache>& caches,
                           const std::string& title) {
  std::vector<double> sizes, speeds;
  for (const KernelTime& row : rows) {
    sizes.push_back(static_cast<double>(row.what.elements));
    if (row.what.operation != Operation::kRead) speeds.push_back(row.elements_per_nanosecond());
  }
  if (sizes.empty() || std::ranges::min(sizes) == std::ranges::max(sizes))
    fail("a plot of speed against size needs at least two sizes");
  const PlotAxis size_axis(sizes, PlotAxis::Ticks::kPowersOfTen), speed_axis(speeds, PlotAxis::Ticks::kOneTwoFive);
  const std::vector<Panel> panels = panels_of(rows);
  const double width = kLeft + kPlotWidth + legend_width(panels),
               height = kHead + kPanelHeight * static_cast<double>(panels.size());
  const std::string head =
      formatted("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
                width, height, width, height);
  std::string text = head + style_text() + "<rect width=\"100%\" height=\"100%\" class=\"ground\"/>\n" +
                     text_at(kLeft, 24, title, "class=\"note\"");
  for (std::size_t i = 0; i < panels.size(); ++i)
    text += PanelPicture(panels[i], size_axis, speed_axis, kHead + kPanelHeight * static_cast<double>(i)).draw(caches);
  return text + "</svg>\n";
}

}  // namespace miniqat::bench

#include "training/run/metrics_log.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "quantize/quantizers.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

/// The step that a line is about; nothing for what is no line of ours.
std::optional<std::int64_t> step_of(const Json& line) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return {};
  return line["step"].get<std::int64_t>();
}

/// No line of ours comes near to it.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// The lines of a file from the last to the first, in the memory of the longest.
class LinesFromEnd {
 public:
  explicit LinesFromEnd(const std::filesystem::path& path) : path_(path) {
    std::error_code failure;
    size_ = std::filesystem::file_size(path, failure);
    if (failure) fail("cannot read ", path.string(), ": ", failure.message());
    begin_ = read_ = size_;
  }

  /// Goes to the line before; false where there is none.
  bool next() {
    if (begin_ == 0) return false;
    end_ = begin_;
    is_ended_ = take_newline();
    text_.clear();
    is_too_long_ = false;
    while (begin_ > 0) {
      if (begin_ == read_) read_back();
      const std::size_t size = begin_ - read_;
      const std::size_t newline = std::string_view(part_).substr(0, size).rfind('\n');
      const std::size_t line = newline == std::string::npos ? 0 : newline + 1;
      is_too_long_ = is_too_long_ || text_.size() + size - line > kLongestLine;
      text_.insert(0, is_too_long_ ? "" : part_.substr(line, size - line));
      begin_ = read_ + line;
      if (line > 0) break;
    }
    return true;
  }

  /// The bytes of the file.
  std::uintmax_t size() const { return size_; }
  /// Null for what is too long, discarded for what is no JSON.
  Json json() const { return is_too_long_ ? Json() : Json::parse(text_, nullptr, false); }
  /// Behind its end, the newline included.
  std::uintmax_t end() const { return end_; }
  /// Whether the newline is there.
  bool is_ended() const { return is_ended_; }

 private:
  bool take_newline() {
    if (begin_ == read_) read_back();
    if (part_[begin_ - read_ - 1] != '\n') return false;
    --begin_;
    return true;
  }

  void read_back() {
    const std::uintmax_t bytes = std::min<std::uintmax_t>(begin_, kLongestLine);
    read_ = begin_ - bytes;
    part_ = read_part(path_, read_, bytes);
    if (part_.size() < bytes) fail("cannot read ", path_.string(), ": it became shorter meanwhile");
  }

  const std::filesystem::path& path_;
  /// The part of the file from `read_` on.
  std::string part_;
  std::uintmax_t read_ = 0;
  std::uintmax_t size_ = 0, begin_ = 0, end_ = 0;
  std::string text_;
  bool is_too_long_ = false;
  bool is_ended_ = false;
};

/// 0.1f as a double has 17 digits.
double with_few_digits(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double rounded = value;
  std::from_chars(text, end, rounded);
  return rounded;
}

}  // namespace

bool MetricsLog::exists() const { return is_there(path_); }

void MetricsLog::append(const Json& line) const { append_to_file(path_, dump_on_one_line(line) + "\n"); }

void MetricsLog::sync() const { sync_file(path_); }

void MetricsLog::forget_after(std::int64_t step) const {
  if (!exists()) return;
  LinesFromEnd lines(path_);
  std::uintmax_t kept = 0;
  bool is_ended = true;
  while (kept == 0 && lines.next())
    if (const std::optional<std::int64_t> own = step_of(lines.json()); own && *own <= step) {
      kept = lines.end();
      is_ended = lines.is_ended();
    }
  if (kept < lines.size()) cut_file(path_, kept);
  if (!is_ended) append_to_file(path_, "\n");
}

Json MetricsLog::find(std::int64_t step, const std::string& key) const {
  if (!exists()) return {};
  for (LinesFromEnd lines(path_); lines.next();) {
    Json json = lines.json();
    const std::optional<std::int64_t> own = step_of(json);
    if (own == step && json.contains(key) && json[key].is_number()) return json;
    if (own && *own < step) break;
  }
  return {};
}

Json MetricsLog::last() const {
  if (!exists()) return {};
  for (LinesFromEnd lines(path_); lines.next();)
    if (Json json = lines.json(); step_of(json)) return json;
  return {};
}

std::string MetricsLog::failure_after(std::int64_t step) const {
  if (!exists()) return "";
  for (LinesFromEnd lines(path_); lines.next();) {
    const Json json = lines.json();
    const std::optional<std::int64_t> own = step_of(json);
    if (own && *own <= step) break;
    if (own && json.contains("failure") && json["failure"].is_string()) return json["failure"].get<std::string>();
  }
  return "";
}

nlohmann::ordered_json ranges_json(const Graph& graph, const NamedTensors& variables) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const quantize::QuantizerRange& one : quantize::quantizer_ranges(graph, variables)) {
    const quantize::Range<float> range = one.extremes();
    json[one.quantizer] = {with_few_digits(range.min), with_few_digits(range.max)};
  }
  return json;
}

bool has_ranges(std::int64_t line) {
  constexpr std::int64_t kAll = 20;
  std::int64_t every = 1;
  while (line > kAll * every) every *= 2;
  return line % every == 0;
}

}  // namespace miniqat::training

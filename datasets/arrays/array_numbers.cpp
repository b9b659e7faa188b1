#include "datasets/arrays/array_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/arrays/array_pictures.h"
#include "datasets/arrays/float_rounding.h"

namespace miniqat::datasets {
namespace {

/// Element i of an array that is no text.
float number_at(const NumpyArray& array, std::int64_t i, const Shape& shape, const std::string& source,
                FloatRounding& rounding) {
  pause_at(i);
  if (array.kind == 'b') return array.bytes[static_cast<std::size_t>(i)] != 0 ? 1.0F : 0.0F;
  if (array.kind != 'f') {
    const std::int64_t value = array.integer(i, source);
    return rounding.kept(static_cast<double>(value), static_cast<float>(value));
  }
  const double value = real_at(array, i, source);
  if (std::isfinite(value) && std::abs(value) <= std::numeric_limits<float>::max()) return rounding.kept(value);
  fail(source, " holds ", exact(value), " at ", place_in(shape, i),
       std::isfinite(value) ? ", too large for floats of 32 bits" : "; all numbers must be finite");
}

Tensor floats_of(const NumpyArray& array, const Shape& shape, const std::string& source,
                 std::vector<std::string>& notes) {
  Tensor numbers(shape);
  float* to = numbers.data<float>();
  std::vector<FloatRounding> rounding(static_cast<std::size_t>(shape[-1]));
  std::size_t channel = 0;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    to[i] = number_at(array, i, shape, source, rounding[channel]);
    channel = channel + 1 < rounding.size() ? channel + 1 : 0;
  }
  note_float_rounding(source, shape.rank() > 2 ? "channel" : "column", rounding, {}, notes);
  return numbers;
}

bool are_zeros_and_ones(const NumpyArray& array, const std::string& source) {
  for (std::int64_t i = 0; i < array.elements(); ++i)
    if (const std::int64_t value = array.integer(i, source); value != 0 && value != 1 && array.kind != 'b')
      return false;
  return true;
}

Tensor whole_labels(const NumpyArray& array, const std::string& source) {
  Tensor labels(Shape{array.shape[0]}, DType::kInt32);
  for (std::int64_t i = 0; i < array.shape[0]; ++i) {
    const double value = real_at(array, i, source);
    if (!(value >= 0 && value < kMostClasses) || value != std::floor(value))
      fail(source, " gives example ", i, " the label ", exact(value), "; labels must be whole numbers in [0, ",
           kMostClasses, ")");
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
  return labels;
}

std::vector<std::string> texts_of(const NumpyArray& array, const std::string& source) {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    std::string text = array.text(i, source);
    // They go into files that must be UTF-8, a name a line.
    if (text.empty() || printable(text) != text)
      fail(source, " gives example ", i, " the class ", quote(text),
           "; the name of a class must not be empty and has no control characters");
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

Tensor numbers_of(const NumpyArray& array, const std::string& source, std::vector<std::string>& notes) {
  const std::size_t rank = array.shape.size();
  if (array.kind == 'U') fail(source, " holds texts; numbers are needed");
  if (rank < 2 || rank > 4)
    fail(source, " has the shape ", shape_text(array.shape),
         "; numbers must be [n, features], [n, steps, channels] or [n, h, w, channels]");
  if (array.elements() == 0) fail(source, " has the shape ", shape_text(array.shape), ": there is no number");
  return floats_of(array, Shape(array.shape), source, notes);
}

void put_answers(const NumpyArray& array, const std::string& source, Answers answers, PartData& part,
                 std::vector<std::string>& notes) {
  const std::size_t rank = array.shape.size();
  const bool one_each = rank == 1 || (rank == 2 && array.shape[1] == 1);
  if (array.kind == 'U') {
    if (!one_each || answers == Answers::kTargets)
      fail(source, " has the shape ", shape_text(array.shape), " and texts; classes are [n] or [n, 1]",
           one_each ? ", and texts are no numbers to predict" : "");
    part.classes = texts_of(array, source);
    return;
  }
  const bool several = array.kind != 'f' && rank == 2 && !one_each && answers != Answers::kClasses;
  if (answers == Answers::kTargets || (array.kind == 'f' && answers == Answers::kAuto) ||
      (several && array.elements() > 0 && are_zeros_and_ones(array, source))) {
    if (rank < 1 || rank > 2 || array.elements() == 0)
      fail(source, " has the shape ", shape_text(array.shape), "; numbers to predict are [n] or [n, k]");
    part.targets = floats_of(array, {array.shape[0], rank == 1 ? 1 : array.shape[1]}, source, notes);
  } else if (array.kind == 'f' && one_each) {
    part.labels = whole_labels(array, source);
  } else {
    const bool is_open = answers == Answers::kAuto && array.kind != 'f';
    part.labels = labels_of(array, source, is_open ? "; `answers` targets makes them numbers to predict" : "");
  }
}

Tensor targets_of(const Tensor& labels) {
  Tensor targets(Shape{labels.shape()[0], 1});
  std::ranges::transform(labels.values<std::int32_t>(), targets.data<float>(), [](std::int32_t label) {
    return label < 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(label);
  });
  return targets;
}

}  // namespace miniqat::datasets

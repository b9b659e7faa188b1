#include "training/report/answers_report.h"

#include <algorithm>
#include <string_view>

#include "core/tensors/tensor.h"
#include "core/text/page.h"
#include "datasets/pictures/resize.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {
namespace {

void add_pixels(const datasets::Dataset& dataset, LostPicture& lost) {
  constexpr std::int64_t kLongestSide = 64;
  const Shape shape = dataset.example_shape();
  const auto bytes = dataset.images.values<std::uint8_t>().subspan(
      static_cast<std::size_t>(lost.index * shape.elements()), static_cast<std::size_t>(shape.elements()));
  datasets::Picture picture{.height = shape[0],
                            .width = shape[1],
                            .channels = static_cast<int>(shape[2]),
                            .pixels = {bytes.begin(), bytes.end()}};
  const std::int64_t longest = std::max(shape[0], shape[1]);
  const bool is_seen = shape[2] == 1 || shape[2] == 3;
  if (is_seen && longest > kLongestSide)
    picture = datasets::fit_picture(picture, std::max<std::int64_t>(shape[0] * kLongestSide / longest, 1),
                                    std::max<std::int64_t>(shape[1] * kLongestSide / longest, 1));
  lost.height = picture.height;
  lost.width = picture.width;
  lost.channels = picture.channels;
  if (!is_seen) return;
  lost.pixels = base64({reinterpret_cast<const char*>(picture.pixels.data()), picture.pixels.size()});
}

}  // namespace

void NetworkAnswers::add(std::int64_t index, std::span<const float> logits) {
  answers.add(index, logits);
  const std::int64_t chosen = argmax(logits);
  choices.push_back({chosen, chosen < 0 ? 0 : class_scores(logits)[static_cast<std::size_t>(chosen)]});
}

Comparison compare(const NetworkAnswers& first, const NetworkAnswers& second, const datasets::Dataset& pictures,
                   std::size_t most) {
  Comparison result;
  const auto labels = pictures.labels.values<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Choice &a = first.choices[i], &b = second.choices[i];
    const bool a_right = a.predicted == labels[i], b_right = b.predicted == labels[i];
    std::int64_t& count = a_right ? (b_right ? result.both_right : result.only_first_right)
                                  : (b_right ? result.only_second_right : result.both_wrong);
    ++count;
    result.same_class += a.predicted == b.predicted ? 1 : 0;
    if (a_right && !b_right)
      result.lost.push_back(
          {.index = static_cast<std::int64_t>(i), .label = labels[i], .in_float = a, .in_integers = b});
  }
  std::ranges::stable_sort(result.lost, std::greater(), [](const LostPicture& lost) { return lost.in_integers.score; });
  result.lost.resize(std::min(result.lost.size(), most));
  for (LostPicture& lost : result.lost) add_pixels(pictures, lost);
  return result;
}

}  // namespace miniqat::training

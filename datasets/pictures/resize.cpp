#include "datasets/pictures/resize.h"

#include <algorithm>
#include <cmath>

#include "core/threads/parallel.h"

namespace miniqat::datasets {
namespace {

/// The old pixels of one new pixel along an axis, [first, first + weights.size()), and their shares, which sum to 1.
struct Reach {
  std::int64_t first = 0;
  std::vector<float> weights;
};

/// For a side of `from` pixels scaled by `factor`, the `count` new pixels that begin `offset` new pixels behind its
/// edge.
std::vector<Reach> reaches(std::int64_t from, double factor, std::int64_t count, double offset) {
  std::vector<Reach> all(count);
  for (std::int64_t i = 0; i < count; ++i) {
    // The stretch of old pixels under the new one, within the picture.
    const double begin = (static_cast<double>(i) + offset) / factor, end = begin + 1 / factor;
    Reach& reach = all[i];
    if (factor < 1) {
      reach.first = std::clamp<std::int64_t>(std::floor(begin), 0, from - 1);
      const auto last = std::clamp<std::int64_t>(std::ceil(end), reach.first + 1, from);
      for (std::int64_t k = reach.first; k < last; ++k)
        reach.weights.push_back(
            static_cast<float>(std::max(0.0, std::min<double>(end, k + 1) - std::max<double>(begin, k))));
    } else {
      const double centre = std::clamp((begin + end) / 2 - 0.5, 0.0, static_cast<double>(from - 1));
      reach.first = std::min<std::int64_t>(static_cast<std::int64_t>(centre), std::max<std::int64_t>(from - 2, 0));
      const auto right = static_cast<float>(centre - static_cast<double>(reach.first));
      reach.weights = from == 1 ? std::vector<float>{1} : std::vector<float>{1 - right, right};
    }
    float sum = 0;
    for (const float weight : reach.weights) sum += weight;
    for (float& weight : reach.weights) weight /= sum;
  }
  return all;
}

}  // namespace

Picture fit_picture(const Picture& picture, std::int64_t height, std::int64_t width) {
  if (picture.height == height && picture.width == width) return picture;
  const double factor = std::max(static_cast<double>(height) / static_cast<double>(picture.height),
                                 static_cast<double>(width) / static_cast<double>(picture.width));
  const auto middle = [&](std::int64_t from, std::int64_t to) {
    // A picture that is only cut keeps its pixels.
    const double offset = (factor * static_cast<double>(from) - static_cast<double>(to)) / 2;
    return factor == 1 ? std::floor(offset) : offset;
  };
  const std::vector<Reach> columns = reaches(picture.width, factor, width, middle(picture.width, width));
  const std::vector<Reach> rows = reaches(picture.height, factor, height, middle(picture.height, height));
  const int channels = picture.channels;
  // [old rows, new columns, channels]
  std::vector<float> across(picture.height * width * channels);
  for (std::int64_t y = 0; y < picture.height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::size_t k = 0; k < columns[x].weights.size(); ++k)
          sum += columns[x].weights[k] *
                 picture.pixels[(y * picture.width + columns[x].first + static_cast<std::int64_t>(k)) * channels + c];
        across[(y * width + x) * channels + c] = sum;
      }
  Picture result{.height = height, .width = width, .channels = channels, .pixels = {}};
  const std::int64_t row = width * channels;
  result.pixels.resize(height * row);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t i = 0; i < row; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < rows[y].weights.size(); ++k)
        sum += rows[y].weights[k] * across[(rows[y].first + static_cast<std::int64_t>(k)) * row + i];
      result.pixels[y * row + i] = static_cast<std::uint8_t>(std::clamp(std::floor(sum + 0.5f), 0.0f, 255.0f));
    }
  return result;
}

Shape shape_fitted(const Shape& from, const PictureOptions& options) {
  const std::int64_t height = options.has_size() ? options.height : from[1];
  const std::int64_t width = options.has_size() ? options.width : from[2];
  const std::int64_t channels = options.colour == Colour::kAuto ? from[3] : options.colour == Colour::kGrey ? 1 : 3;
  return {from[0], height, width, channels};
}

Tensor fit_images(const Tensor& images, const PictureOptions& options) {
  const Shape &from = images.shape(), to = shape_fitted(from, options);
  if (to == from) return images;
  const std::int64_t height = to[1], width = to[2], channels = to[3];
  Tensor fitted(to, DType::kUInt8);
  const std::int64_t old_size = from.elements() / from[0], new_size = to.elements() / to[0];
  parallel_for(from[0], 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto* pixels = images.data<std::uint8_t>() + i * old_size;
      Picture picture{.height = from[1],
                      .width = from[2],
                      .channels = static_cast<int>(from[3]),
                      .pixels{pixels, pixels + old_size}};
      set_colour(picture, channels == 1 ? Colour::kGrey : Colour::kRgb);
      std::ranges::copy(fit_picture(picture, height, width).pixels, fitted.data<std::uint8_t>() + i * new_size);
    }
  });
  return fitted;
}

}  // namespace miniqat::datasets

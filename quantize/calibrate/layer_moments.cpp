#include "quantize/calibrate/layer_moments.h"

#include <algorithm>

#include "core/kernels/onednn_matrix.h"
#include "core/tensors/eigen.h"
#include "layers/layers.h"

namespace miniqat::quantize {
namespace {

/// sums += a^T b, all row-major.
void add_product(const onednn::Matrix& a, const onednn::Matrix& b, std::vector<float>& sums) {
  std::vector<float> product(sums.size());
  onednn::multiply(a.transposed(), b, product.data());
  vector_of(std::span(sums)) += vector_of(std::span(product));
}

std::vector<float> mean_of_group(const std::vector<float>& sums, std::int64_t group, std::int64_t groups,
                                 std::int64_t count) {
  std::vector<float> mean(sums.size() / static_cast<std::size_t>(groups));
  const auto by_group = matrix_of(std::span(sums), groups);
  vector_of(std::span(mean)) = by_group.col(group).array() / static_cast<float>(count);
  return mean;
}

}  // namespace

WeightLayout layout_of(const Node& layer) {
  const Shape& weights = layer.input(1).shape();
  if (const auto* product = layer.as<layers::MatMul>()) {
    const bool transposed = product->transpose_b;
    return {.inputs = weights[transposed ? 1 : 0], .outputs = weights[transposed ? 0 : 1], .outputs_first = transposed};
  }
  if (layer.as<layers::DepthwiseConv2d>())
    return {.groups = weights[2], .inputs = weights[0] * weights[1], .outputs = weights[3]};
  return {.inputs = weights[0] * weights[1] * weights[2], .outputs = weights[3]};
}

LayerMoments::LayerMoments(const Node& layer, std::int64_t patches, std::uint64_t seed)
    : layer_(layer), layout_(layout_of(layer)), patches_(patches), random_(mix(seed, hash_text(layer.name()))) {
  squares_.resize(static_cast<std::size_t>(layout_.inputs * layout_.inputs * layout_.groups));
  products_.resize(static_cast<std::size_t>(layout_.outputs * layout_.inputs * layout_.groups));
}

std::vector<std::int64_t> LayerMoments::choose_positions() {
  const Shape& output = layer_.output().shape();
  const std::int64_t all = output.elements() / output.channels(), taken = std::min(all, patches_);
  std::vector<std::int64_t> positions;
  for (std::int64_t k = 0; k < taken; ++k) {
    const std::int64_t first = k * all / taken, next = (k + 1) * all / taken;
    positions.push_back(first + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(next - first))));
  }
  return positions;
}

std::vector<float> LayerMoments::patches_at(const std::vector<std::int64_t>& positions, const Tensor& input) const {
  const std::int64_t channels = input.shape().channels();
  std::vector<float> patches(positions.size() * static_cast<std::size_t>(layout_.groups * layout_.inputs));
  float* to = patches.data();
  if (layer_.as<layers::MatMul>()) {
    for (const std::int64_t row : positions) to = std::copy_n(input.data<float>() + row * channels, channels, to);
    return patches;
  }
  const auto& [rows, columns] = layers::window_of(layer_);
  for (const std::int64_t position : positions) {
    const std::int64_t ox = position % columns.output, oy = position / columns.output % rows.output;
    const std::int64_t image = position / (columns.output * rows.output);
    for (std::int64_t tap = 0; tap < rows.window * columns.window; ++tap, to += channels) {
      const std::int64_t y = rows.source(oy, tap / columns.window), x = columns.source(ox, tap % columns.window);
      if (!rows.contains(y) || !columns.contains(x)) continue;
      std::copy_n(input.data<float>() + ((image * rows.input + y) * columns.input + x) * channels, channels, to);
    }
  }
  return patches;
}

void LayerMoments::add(const Tensor& input, const Tensor& wanted) {
  const std::vector<std::int64_t> positions = choose_positions();
  const std::int64_t channels = wanted.shape().channels();
  std::vector<float> y;
  for (const std::int64_t position : positions) {
    const float* pixel = wanted.data<float>() + position * channels;
    y.insert(y.end(), pixel, pixel + channels);
  }
  count_ += std::ssize(positions);
  wanted_square_ += vector_of(std::span(y)).cast<double>().square().sum();
  const std::vector<float> x = patches_at(positions, input);
  layout_.groups == 1 ? add_matrix(x, y) : add_groups(x, y);
}

void LayerMoments::add_matrix(const std::vector<float>& x, const std::vector<float>& y) {
  const std::int64_t taken = std::ssize(x) / layout_.inputs;
  const auto inputs = onednn::Matrix::row_major(x.data(), taken, layout_.inputs);
  add_product(inputs, inputs, squares_);
  add_product(onednn::Matrix::row_major(y.data(), taken, layout_.outputs), inputs, products_);
}

void LayerMoments::add_groups(const std::vector<float>& x, const std::vector<float>& y) {
  const std::int64_t groups = layout_.groups, inputs = layout_.inputs, outputs = layout_.outputs;
  const std::int64_t taken = std::ssize(x) / (groups * inputs);
  VectorMap<float> squares = vector_of(std::span(squares_)), products = vector_of(std::span(products_));
  for (std::int64_t k = 0; k < taken; ++k)
    for (std::int64_t i = 0; i < inputs; ++i) {
      const auto tap = [&](std::int64_t j) {
        return Eigen::Map<const Eigen::ArrayXf>(x.data() + (k * inputs + j) * groups, groups);
      };
      for (std::int64_t j = 0; j < inputs; ++j) squares.segment((i * inputs + j) * groups, groups) += tap(i) * tap(j);
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t g = 0; g < groups; ++g)
          products((o * inputs + i) * groups + g) += tap(i)(g) * y[(k * groups + g) * outputs + o];
    }
}

std::vector<float> LayerMoments::squares(std::int64_t group) const {
  std::vector<float> mean = mean_of_group(squares_, group, layout_.groups, count_);
  // A product of matrices may round its two halves differently.
  const auto at = [&](std::int64_t j, std::int64_t k) -> float& {
    return mean[static_cast<std::size_t>(j * layout_.inputs + k)];
  };
  for (std::int64_t j = 0; j < layout_.inputs; ++j)
    for (std::int64_t k = 0; k < j; ++k) at(j, k) = at(k, j);
  return mean;
}

std::vector<float> LayerMoments::products(std::int64_t group) const {
  return mean_of_group(products_, group, layout_.groups, count_);
}

}  // namespace miniqat::quantize

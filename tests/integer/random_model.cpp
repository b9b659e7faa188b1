#include "tests/integer/random_model.h"

#include <algorithm>
#include <cmath>

#include "core/text/error.h"
#include "integer/model.h"

namespace miniqat::testing {

using integer::Grid;
using integer::Layer;
using integer::LayerKind;
using integer::Multiplier;
using integer::TensorInfo;

RandomModel::RandomModel(std::uint64_t seed, const Shape& input, const RandomModelOptions& options)
    : random_(seed), options_(options) {
  model_.name = miniqat::concat("random ", seed);
  model_.tensors.push_back({.name = "input", .shape = input, .grid = grid(1.0 / 128)});
}

Grid RandomModel::grid(double scale) {
  const int bits = options_.only_bits != 0 ? options_.only_bits : between(options_.fewest_activation_bits, 8);
  Grid grid{.scale = static_cast<float>(scale * std::ldexp(1.0, 8 - bits)), .bits = bits};
  grid.zero_point = random_.below(2) == 0 ? 0 : between(0, grid.quant_max());
  return grid;
}

int RandomModel::append(integer::Action action, std::vector<int> inputs, const Shape& shape, const Grid& grid) {
  const std::string name = miniqat::concat(integer::type_name(action), "_", model_.operations.size());
  integer::Operation operation{.name = name,
                               .action = std::move(action),
                               .inputs = std::move(inputs),
                               .output = static_cast<int>(model_.tensors.size()),
                               .clamp = {.min = 0, .max = grid.quant_max()}};
  if (random_.below(2) == 0) operation.clamp.min = grid.zero_point;
  if (random_.below(4) == 0) operation.clamp.max = between(operation.clamp.min, grid.quant_max());
  model_.tensors.push_back({.name = name + "_out", .shape = shape, .grid = grid});
  model_.output = operation.output;
  model_.operations.push_back(std::move(operation));
  return model_.output;
}

Window2d RandomModel::window(bool pool) {
  const Shape& image = current().shape;
  const auto extent = [&](int axis) { return std::min<std::int64_t>(between(1, pool ? 3 : 5), image[axis]); };
  WindowAttributes attributes{.window = {extent(0), extent(1)},
                              .strides = {between(1, 2), between(1, 2)},
                              .padding = random_.below(2) == 0 ? Padding::kSame : Padding::kValid};
  const bool dilates = attributes.padding == Padding::kSame && attributes.strides == std::array<std::int64_t, 2>{1, 1};
  if (!pool && dilates && random_.below(3) == 0) attributes.dilations = {2, 2};
  if (!options_.plain_windows && attributes.dilations[0] == 1 && random_.below(3) == 0) {
    attributes.padding = Padding::kExplicit;
    for (const int side : {0, 1, 2, 3})
      attributes.pads[side] = between(0, static_cast<int>(attributes.window[side % 2]) - 1);
  }
  return slide(integer::batch_shape(1, image), attributes);
}

int RandomModel::append_layer(Layer layer, const Shape& shape) {
  const TensorInfo& x = current();
  const std::int64_t out = layer.output_channels();
  layer.weight_bits = options_.only_bits != 0 ? options_.only_bits : between(options_.fewest_weight_bits, 8);
  const int largest = (1 << layer.weight_bits) - 1;
  const int middle = 1 << (layer.weight_bits - 1);
  const bool per_channel = random_.below(2) == 0;
  const bool symmetric = random_.below(2) == 0 || (per_channel && options_.symmetric_weights);
  layer.weights.resize(layer.filter.elements());
  const int lowest = options_.full_range_weights ? 0 : 1;
  for (std::uint8_t& weight : layer.weights) weight = static_cast<std::uint8_t>(between(lowest, largest));
  const double taps = static_cast<double>(layer.filter.elements()) / static_cast<double>(out);
  const double spread = std::sqrt(taps) * x.grid.quant_max() * largest / 8 + 1;
  const double weight_scale = 0.02;
  const Grid grid = this->grid(x.grid.scale * weight_scale * spread / 40);
  for (std::int64_t o = 0; o < (per_channel ? out : 1); ++o) {
    const float scale = static_cast<float>(weight_scale * (1 + random_.uniform()));
    layer.weight_scales.push_back(scale);
    layer.weight_zero_points.push_back(symmetric ? middle : between(1, largest));
    layer.multipliers.push_back(integer::multiplier_for(x.grid.scale * layer.unit_scale(o) / grid.scale));
  }
  for (std::int64_t o = 0; o < out; ++o)
    layer.bias.push_back(
        static_cast<std::int32_t>(random_.uniform(-1, 1) * static_cast<float>(spread * (1 << layer.weight_shift()))));
  return append(std::move(layer), {model_.output}, shape, grid);
}

int RandomModel::convolution(LayerKind kind, std::int64_t channels) {
  Layer layer{.kind = kind, .window = window(false)};
  layer.filter = {layer.window.rows.window, layer.window.columns.window, current().shape[2], channels};
  const Shape shape{layer.window.rows.output, layer.window.columns.output, layer.output_channels()};
  return append_layer(std::move(layer), shape);
}

int RandomModel::fully_connected(std::int64_t channels) {
  if (current().shape.rank() != 1) reshape({current().shape.elements()});
  return append_layer({.kind = LayerKind::kFullyConnected, .filter = {current().shape[0], channels}}, {channels});
}

int RandomModel::add(int a, int b) {
  const TensorInfo x = model_.tensors[a], z = model_.tensors[b];
  const Grid grid =
      this->grid(1.5 * std::max(x.grid.scale * x.grid.quant_max(), z.grid.scale * z.grid.quant_max()) / 255);
  const double reals[] = {x.grid.scale / grid.scale, z.grid.scale / grid.scale};
  return append(integer::Add{integer::shared_multipliers_for(reals)}, {a, b}, x.shape, grid);
}

int RandomModel::mul(int a, int b) {
  const TensorInfo x = model_.tensors[a], z = model_.tensors[b];
  const float product = x.grid.scale * z.grid.scale;
  const Grid grid = this->grid(product * x.grid.quant_max() * z.grid.quant_max() / 1000);
  std::vector<std::int64_t> extents = x.shape.to_vector();
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    extents[axis] = std::max(extents[axis], z.shape[static_cast<int>(axis)]);
  return append(integer::Mul{integer::multiplier_for(product / grid.scale)}, {a, b}, Shape(extents), grid);
}

int RandomModel::gate() {
  const int a = last();
  const auto rank = static_cast<std::size_t>(current().shape.rank());
  const auto kind = random_.below(3);
  std::vector<bool> left(rank, true), right(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    right[axis] = kind == 0 ? axis + 1 == rank : random_.below(2) == 0;
    if (kind == 2) left[axis] = !right[axis] || random_.below(2) == 0;
  }
  const int image = kind == 2 ? first_of_axes(a, left) : a;
  first_of_axes(a, right);
  // On a grid of their own.
  const int factors = rescale();
  return random_.below(2) == 0 ? mul(image, factors) : mul(factors, image);
}

int RandomModel::first_of_axes(int a, const std::vector<bool>& stays) {
  const TensorInfo x = model_.tensors[a];
  std::vector<std::int64_t> extents = x.shape.to_vector();
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    if (!stays[axis]) extents[axis] = 1;
  integer::Slice slice{.starts = std::vector<std::int64_t>(extents.size(), 0),
                       .steps = std::vector<std::int64_t>(extents.size(), 1)};
  return append(std::move(slice), {a}, Shape(extents), x.grid);
}

int RandomModel::rescale() {
  const TensorInfo x = current();
  const Grid grid = this->grid(x.grid.scale * x.grid.quant_max() / 255 * (0.7 + random_.uniform()));
  return append(integer::Rescale{integer::multiplier_for(x.grid.scale / grid.scale)}, {last()}, x.shape, grid);
}

int RandomModel::concat(int a, int b) {
  const TensorInfo x = model_.tensors[a], z = model_.tensors[b];
  const Grid grid = this->grid(std::max(x.grid.scale * x.grid.quant_max(), z.grid.scale * z.grid.quant_max()) / 255);
  const int axis = x.shape.rank() - 1;
  std::vector<std::int64_t> extents = x.shape.to_vector();
  extents[axis] += z.shape[axis];
  std::vector<Multiplier> multipliers;
  for (const TensorInfo& part : {x, z}) multipliers.push_back(integer::multiplier_for(part.grid.scale / grid.scale));
  return append(integer::Concat{.axis = axis, .multipliers = multipliers}, {a, b}, Shape(extents), grid);
}

int RandomModel::average_pool() {
  const TensorInfo x = current();
  integer::AveragePool pool{.window = window(true), .multipliers = {}};
  const Grid grid = this->grid(x.grid.scale * x.grid.quant_max() / 255);
  for (std::int64_t n = 1; n <= pool.window.rows.window * pool.window.columns.window; ++n)
    pool.multipliers.push_back(integer::multiplier_for(double{x.grid.scale / grid.scale} / static_cast<double>(n)));
  const Shape shape{pool.window.rows.output, pool.window.columns.output, x.shape[2]};
  return append(std::move(pool), {last()}, shape, grid);
}

int RandomModel::mean() {
  const TensorInfo x = current();
  integer::AveragePool pool{.window = slide(integer::batch_shape(1, x.shape),
                                            {.window = {x.shape[0], x.shape[1]}, .padding = Padding::kValid}),
                            .multipliers = {}};
  const Grid grid = this->grid(x.grid.scale * x.grid.quant_max() / 512);
  for (std::int64_t n = 1; n <= x.shape[0] * x.shape[1]; ++n)
    pool.multipliers.push_back(integer::multiplier_for(double{x.grid.scale / grid.scale} / static_cast<double>(n)));
  return append(std::move(pool), {last()}, {x.shape[2]}, grid);
}

int RandomModel::max_pool() {
  const TensorInfo x = current();
  const Window2d window = this->window(true);
  return append(integer::MaxPool{window}, {last()}, {window.rows.output, window.columns.output, x.shape[2]}, x.grid);
}

int RandomModel::reshape(const Shape& shape) {
  const Grid grid = current().grid;
  return append(integer::Reshape{}, {last()}, shape, grid);
}

int RandomModel::pad() {
  const TensorInfo x = current();
  integer::Pad pad;
  std::vector<std::int64_t> extents = x.shape.to_vector();
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const bool channel = axis + 1 == extents.size();
    pad.paddings.push_back({channel ? 0 : between(0, 2), channel ? 0 : between(0, 2)});
    extents[axis] += pad.paddings.back()[0] + pad.paddings.back()[1];
  }
  return append(std::move(pad), {last()}, Shape(extents), x.grid);
}

int RandomModel::slice() {
  const TensorInfo x = current();
  integer::Slice slice;
  std::vector<std::int64_t> extents = x.shape.to_vector();
  for (std::int64_t& extent : extents) {
    const auto start = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>((extent + 1) / 2)));
    slice.starts.push_back(start);
    slice.steps.push_back(between(0, 1) == 0 ? between(2, 3) : 1);
    const std::int64_t most = (extent - 1 - start) / slice.steps.back() + 1;
    extent = most - static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>((most + 2) / 3)));
  }
  return append(std::move(slice), {last()}, Shape(extents), x.grid);
}

int RandomModel::lookup() {
  const TensorInfo x = current();
  append(integer::Lookup{.function = "noise"}, {last()}, x.shape, grid(x.grid.scale));
  integer::Operation& operation = model_.operations.back();
  auto& table = std::get<integer::Lookup>(operation.action).table;
  for (int q = 0; q <= x.grid.quant_max(); ++q)
    table.push_back(static_cast<std::uint8_t>(between(operation.clamp.min, operation.clamp.max)));
  return last();
}

int RandomModel::lookup(const std::string& function, const std::function<double(double)>& f, const Grid& grid) {
  const TensorInfo x = current();
  append(integer::Lookup{.function = function}, {last()}, x.shape, grid);
  integer::Operation& operation = model_.operations.back();
  auto& table = std::get<integer::Lookup>(operation.action).table;
  for (int q = 0; q <= x.grid.quant_max(); ++q) {
    const double place = std::floor(f(double{x.grid.scale} * (q - x.grid.zero_point)) / grid.scale + 0.5);
    table.push_back(static_cast<std::uint8_t>(
        std::clamp<double>(place + grid.zero_point, operation.clamp.min, operation.clamp.max)));
  }
  return last();
}

int RandomModel::anything() {
  if (current().shape.rank() != 3) {
    const auto choice = random_.below(5);
    return choice < 2 ? fully_connected(between(1, 40)) : choice < 4 ? rescale() : lookup();
  }
  switch (random_.below(12)) {
    case 0:
    case 1:
      return conv2d(between(1, 40));
    case 2:
      return depthwise_conv2d(between(1, 2));
    case 3:
      return rescale();
    case 4:
      return average_pool();
    case 5:
      return max_pool();
    case 6:
      return pad();
    case 7:
      return add(last(), last());
    case 8:
      return lookup();
    case 9:
      return slice();
    case 10:
      return gate();
    default:
      return concat(last(), last());
  }
}

integer::Model RandomModel::finish() const {
  model_.check();
  return model_;
}

Tensor random_images(Random& random, const integer::Model& model, std::int64_t n) {
  const TensorInfo& input = model.tensor(model.input);
  Tensor images(integer::batch_shape(n, input.shape), DType::kUInt8);
  for (std::uint8_t& value : images.values<std::uint8_t>())
    value = static_cast<std::uint8_t>(random.below(input.grid.quant_max() + 1));
  return images;
}

void cut_weights(Layer& layer, int bits) {
  const int mask = (1 << bits) - 1;
  layer.weight_bits = bits;
  for (std::uint8_t& weight : layer.weights) weight &= static_cast<std::uint8_t>(mask);
  for (std::int32_t& zero_point : layer.weight_zero_points) zero_point &= mask;
}

integer::Model random_network(std::uint64_t seed, const RandomModelOptions& options) {
  RandomModel net(seed, {9, 11, 3}, options);
  net.pad();
  const int left = net.conv2d(8);
  const int right = net.rescale();
  net.concat(left, net.add(left, right));
  net.depthwise_conv2d(2);
  net.max_pool();
  net.average_pool();
  net.conv2d(21);
  net.mean();
  net.fully_connected(17);
  net.fully_connected(5);
  return net.finish();
}

using integer::AveragePool;
using integer::Layer;
using integer::MaxPool;
using integer::Model;
using integer::Operation;

Model with_scales_per_tensor(Model model) {
  for (Operation& operation : model.operations)
    if (auto* layer = std::get_if<Layer>(&operation.action)) {
      layer->weight_scales.resize(1);
      layer->weight_zero_points.resize(1);
      layer->multipliers.resize(1);
    }
  model.check();
  return model;
}

Model with_symmetric_weights(Model model) {
  for (Operation& operation : model.operations)
    if (auto* layer = std::get_if<Layer>(&operation.action))
      for (std::int32_t& zero_point : layer->weight_zero_points) zero_point = 1 << (layer->weight_bits - 1);
  model.check();
  return model;
}

Model with_int4_weights(Model model) {
  constexpr int kBits = 4;
  for (Operation& operation : model.operations) {
    auto* layer = std::get_if<Layer>(&operation.action);
    if (layer == nullptr) continue;
    // The units of the sums, and so the multipliers, stay.
    const std::vector<float> units = layer->unit_scales();
    cut_weights(*layer, kBits);
    for (std::size_t i = 0; i < units.size(); ++i)
      layer->weight_scales[i] = units[i] * static_cast<float>(1 << layer->weight_shift());
    for (std::uint8_t& weight : layer->weights) weight = std::max<std::uint8_t>(weight, 1);
  }
  return with_symmetric_weights(std::move(model));
}

Model with_wider_padding(Model model, std::int64_t border) {
  Operation& operation = model.operations.back();
  miniqat::Window2d* window = nullptr;
  if (auto* layer = std::get_if<Layer>(&operation.action)) window = &layer->window;
  if (auto* pool = std::get_if<MaxPool>(&operation.action)) window = &pool->window;
  if (auto* pool = std::get_if<AveragePool>(&operation.action)) window = &pool->window;
  const auto widen = [border](miniqat::WindowAxis& axis) {
    axis.pad_before += border;
    axis.pad_after += border;
    const std::int64_t span = (axis.window - 1) * axis.dilation + 1;
    axis.output = (axis.input + axis.pad_before + axis.pad_after - span) / axis.stride + 1;
  };
  widen(window->rows);
  widen(window->columns);
  Shape& shape = model.tensors[operation.output].shape;
  shape = {window->rows.output, window->columns.output, shape[2]};
  model.check();
  return model;
}

}  // namespace miniqat::testing

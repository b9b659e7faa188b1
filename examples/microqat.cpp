// microqat: quantization-aware training in one file of plain C++, to be read from top to bottom: a small network learns
// digits through fake quantization, and then computes the same in integers.
//
//   g++ -std=c++20 -O3 microqat.cpp -o microqat
//   ./microqat [BITS [DIRECTORY]]   # 8 bits, digits that it draws; or 2 to 8 bits; or MNIST's four unpacked IDX files
//
// The network: convolution 5x5, Relu, max pool 2x2, dense. Tensors are rows of floats in NHWC order: the index of
// picture n, row y, column x, channel c is ((n * height + y) * width + x) * channels + c. Weights of the convolution
// are [ky, kx, filter], those of the dense layer [feature, class].

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace microqat {

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

constexpr int kSize = 28, kPixels = kSize * kSize;     // a picture has 28 rows of 28 pixels
constexpr int kKernel = 5, kTaps = kKernel * kKernel;  // a filter has 5x5 taps
constexpr int kFilters = 8, kClasses = 10;             // outputs of the convolution's filters, of the dense layer
constexpr int kConv = kSize - kKernel + 1;             // its rows and columns: 24, without padding
constexpr int kPooled = kConv / 2, kFeatures = kPooled * kPooled * kFilters;

float uniform(float low, float high, std::mt19937& random) {
  return low + (high - low) * static_cast<float>(random()) / 4294967296.0f;
}

// 1. The grid: integers q stand for real numbers r = scale * (q - zero_point).

struct Range {
  float min = 0, max = 0;
};

struct Grid {
  float scale = 1;     // the real distance between neighbours
  int zero_point = 0;  // the integer of real 0, which is always on the grid: padding and Relu cost no error
  int quant_max = 0;   // integers are 0..quant_max

  float real(int q) const { return scale * static_cast<float>(q - zero_point); }
  float nudged_min() const { return real(0); }
  float nudged_max() const { return real(quant_max); }
};

// The range must have real 0 in it. Its zero point is a real number at first; rounding it moves ("nudges") both ends of
// the range by the same part of a step.
Grid grid_of(const Range& range, int bits) {
  const int steps = (1 << bits) - 1;
  Grid grid = {.quant_max = steps};
  const double width = double{range.max} - range.min;
  if (width == 0) return grid;  // a tensor of zeros
  grid.scale = static_cast<float>(width / steps);
  grid.zero_point = static_cast<int>(std::round(-double{range.min} * steps / width));
  return grid;
}

// The nearest integer, ties upwards; numbers beyond the ends saturate.
int quantize(const Grid& grid, float r) {
  const float clamped = std::clamp(r, grid.nudged_min(), grid.nudged_max());
  return static_cast<int>(std::floor((clamped - grid.nudged_min()) / grid.scale + 0.5f));
}

// 2. FakeQuant: rounds to the grid and goes on in floats, so that training feels what integers will do.
// Before quant_delay, not `quantizing`, this and its gradient let everything pass.
Floats fake_quant_forward(const Grid& grid, const Floats& x, bool quantizing) {
  Floats y = x;
  if (quantizing)
    for (float& r : y) r = grid.real(quantize(grid, r));
  return y;
}

// The straight-through estimator: rounding is a staircase, whose derivative is 0 nearly everywhere, so that nothing
// could be learned. Backward takes it for the identity between the ends of the grid, and for a constant beyond them.
Floats fake_quant_backward(const Grid& grid, const Floats& x, const Floats& d_y, bool quantizing) {
  Floats d_x = d_y;
  for (std::size_t i = 0; quantizing && i < x.size(); ++i)
    if (x[i] < grid.nudged_min() || x[i] > grid.nudged_max()) d_x[i] = 0;
  return d_x;
}

// What a tensor shows, widened to real 0.
Range range_of(const Floats& x) {
  const auto [min, max] = std::minmax_element(x.begin(), x.end());
  return {std::min(*min, 0.0f), std::max(*max, 0.0f)};
}

// The range of activations: a moving average over the batches of training. Evaluation has nothing else to go by.
struct MovingRange {
  static constexpr double kDecay = 0.99;
  Range range;
  int updates = 0;

  // Values 1..t have the weights decay^(t-1), ..., decay, 1 over their sum: the first batch sets the range.
  void update(const Range& seen) {
    ++updates;
    const double weight = (1 - kDecay) / (1 - std::pow(kDecay, updates));
    range.min = static_cast<float>(range.min + (double{seen.min} - range.min) * weight);
    range.max = static_cast<float>(range.max + (double{seen.max} - range.max) * weight);
  }
};

// 3. Layers, each beside its gradient.
// Rows of `inputs` numbers become rows of `outputs`: y[n, o] = b[o] + sum over i of x[n, i] * w[i, o].
Floats dense_forward(const Floats& x, const Floats& w, const Floats& b) {
  const std::size_t outputs = b.size(), inputs = w.size() / outputs, rows = x.size() / inputs;
  Floats y;
  for (std::size_t n = 0; n < rows; ++n) {
    y.insert(y.end(), b.begin(), b.end());
    for (std::size_t i = 0; i < inputs; ++i)
      for (std::size_t o = 0; o < outputs; ++o) y[n * outputs + o] += x[n * inputs + i] * w[i * outputs + o];
  }
  return y;
}

// Each product passes the gradient of its sum on to both factors. d_x is null where nobody asks for it.
void dense_backward(const Floats& x, const Floats& w, const Floats& d_y, Floats& d_w, Floats& d_b, Floats* d_x) {
  const std::size_t outputs = d_b.size(), inputs = w.size() / outputs, rows = x.size() / inputs;
  d_w.assign(w.size(), 0);
  d_b.assign(outputs, 0);
  if (d_x != nullptr) d_x->assign(x.size(), 0);
  for (std::size_t n = 0; n < rows; ++n) {
    for (std::size_t o = 0; o < outputs; ++o) d_b[o] += d_y[n * outputs + o];
    for (std::size_t i = 0; i < inputs; ++i) {
      for (std::size_t o = 0; o < outputs; ++o) d_w[i * outputs + o] += x[n * inputs + i] * d_y[n * outputs + o];
      for (std::size_t o = 0; d_x != nullptr && o < outputs; ++o)
        (*d_x)[n * inputs + i] += w[i * outputs + o] * d_y[n * outputs + o];
    }
  }
}

// The pixel that output pixel `position` (row * kConv + column) multiplies by `tap` (row * kKernel + column). With
// these pixels as the inputs, a convolution is a dense layer that runs at every position.
int pixel_under(int position, int tap) {
  return (position / kConv + tap / kKernel) * kSize + position % kConv + tap % kKernel;
}

Floats patches_of(const Floats& x) {
  Floats patches(x.size() / kPixels * kConv * kConv * kTaps);
  for (std::size_t row = 0; row < patches.size() / kTaps; ++row)
    for (int tap = 0; tap < kTaps; ++tap)
      patches[row * kTaps + tap] = x[row / (kConv * kConv) * kPixels + pixel_under(row % (kConv * kConv), tap)];
  return patches;
}

Floats conv_forward(const Floats& x, const Floats& w, const Floats& b) { return dense_forward(patches_of(x), w, b); }

void conv_backward(const Floats& x, const Floats& w, const Floats& d_y, Floats& d_w, Floats& d_b) {
  dense_backward(patches_of(x), w, d_y, d_w, d_b, nullptr);
}

Floats relu_forward(Floats x) {
  for (float& r : x) r = std::max(r, 0.0f);
  return x;
}

Floats relu_backward(const Floats& x, Floats d_y) {
  for (std::size_t i = 0; i < x.size(); ++i) d_y[i] = x[i] > 0 ? d_y[i] : 0;
  return d_y;
}

// The largest of each 2x2 window. winners[i] is the index in x that y[i] came from: the first of equals.
Floats max_pool_forward(const Floats& x, std::vector<int>& winners) {
  Floats y;
  for (int row = 0; row < static_cast<int>(x.size()) / kFilters / kConv; row += 2)  // of all pictures
    for (int column = 0; column < kConv; column += 2)
      for (int f = 0; f < kFilters; ++f) {
        int winner = (row * kConv + column) * kFilters + f;
        for (const int step : {kFilters, kConv * kFilters, (kConv + 1) * kFilters})
          if (const int other = (row * kConv + column) * kFilters + f + step; x[other] > x[winner]) winner = other;
        y.push_back(x[winner]);
        winners.push_back(winner);
      }
  return y;
}

Floats max_pool_backward(const std::vector<int>& winners, const Floats& d_y) {
  Floats d_x(4 * d_y.size());
  for (std::size_t i = 0; i < d_y.size(); ++i) d_x[winners[i]] += d_y[i];
  return d_x;
}

// The mean over pictures of -log(softmax(logits)[label]), and its gradient (softmax - one-hot) / pictures.
float softmax_cross_entropy(const Floats& logits, const Bytes& labels, Floats& d_logits) {
  d_logits.resize(logits.size());
  double loss = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const float* z = &logits[n * kClasses];
    const float largest = *std::max_element(z, z + kClasses);  // taken off, so that exp() stays finite
    float sum = 0;
    for (int c = 0; c < kClasses; ++c) sum += std::exp(z[c] - largest);
    loss += largest + std::log(sum) - z[labels[n]];
    for (int c = 0; c < kClasses; ++c)
      d_logits[n * kClasses + c] =
          (std::exp(z[c] - largest) / sum - (c == labels[n] ? 1.0f : 0.0f)) / static_cast<float>(labels.size());
  }
  return static_cast<float>(loss / static_cast<double>(labels.size()));
}

// 4. The network and its training step.
struct Parameter {
  explicit Parameter(int size) : value(size), gradient(size), velocity(size) {}
  // Stochastic gradient descent with momentum.
  void descend(float learning_rate, float momentum) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      value[i] -= learning_rate * velocity[i];
    }
  }
  Floats value, gradient, velocity;
};

struct Network {
  // He's initialization: weights of variance 2 / inputs keep the variance of activations from layer to layer.
  Network(int bits, std::mt19937& random) : bits(bits) {
    for (float& w : conv_w.value) w = uniform(-1, 1, random) * std::sqrt(6.0f / kTaps);
    for (float& w : dense_w.value) w = uniform(-1, 1, random) * std::sqrt(6.0f / kFeatures);
  }

  int bits;  // of weights, and of the activations between the layers; logits have 8
  Parameter conv_w{kTaps * kFilters}, conv_b{kFilters}, dense_w{kFeatures * kClasses}, dense_b{kClasses};
  MovingRange hidden_range, logits_range;

  Grid conv_w_grid() const { return grid_of(range_of(conv_w.value), bits); }
  Grid dense_w_grid() const { return grid_of(range_of(dense_w.value), bits); }
  Grid hidden_grid() const { return grid_of(hidden_range.range, bits); }
  Grid logits_grid() const { return grid_of(logits_range.range, 8); }
};

// What forward computes and backward looks at again; ..._q is behind FakeQuant.
struct Activations {
  Floats conv_w_q, conv, relu, pooled, dense_w_q, logits, logits_q;
  std::vector<int> winners;
};

// In training, and here alone, ranges follow the batch, before quant_delay, too. x is pixels: integers times 1/255.
Activations forward(Network& net, const Floats& x, bool training, bool quantizing) {
  Activations a;
  a.conv_w_q = fake_quant_forward(net.conv_w_grid(), net.conv_w.value, quantizing);
  a.conv = conv_forward(x, a.conv_w_q, net.conv_b.value);
  a.relu = relu_forward(a.conv);
  if (training) net.hidden_range.update(range_of(a.relu));
  a.pooled = max_pool_forward(fake_quant_forward(net.hidden_grid(), a.relu, quantizing), a.winners);
  a.dense_w_q = fake_quant_forward(net.dense_w_grid(), net.dense_w.value, quantizing);
  a.logits = dense_forward(a.pooled, a.dense_w_q, net.dense_b.value);
  if (training) net.logits_range.update(range_of(a.logits));
  a.logits_q = fake_quant_forward(net.logits_grid(), a.logits, quantizing);
  return a;
}

// Returns the batch's loss. Gradients at rounded weights go to the weights themselves, which keep all their digits.
float train_step(Network& net, const Floats& x, const Bytes& labels, float learning_rate, bool quantizing) {
  const Activations a = forward(net, x, true, quantizing);
  Floats d_logits_q, d_pooled, d_w_q;
  const float loss = softmax_cross_entropy(a.logits_q, labels, d_logits_q);
  const Floats d_logits = fake_quant_backward(net.logits_grid(), a.logits, d_logits_q, quantizing);
  dense_backward(a.pooled, a.dense_w_q, d_logits, d_w_q, net.dense_b.gradient, &d_pooled);
  net.dense_w.gradient = fake_quant_backward(net.dense_w_grid(), net.dense_w.value, d_w_q, quantizing);
  const Floats d_relu_q = max_pool_backward(a.winners, d_pooled);
  const Floats d_relu = fake_quant_backward(net.hidden_grid(), a.relu, d_relu_q, quantizing);
  conv_backward(x, a.conv_w_q, relu_backward(a.conv, d_relu), d_w_q, net.conv_b.gradient);
  net.conv_w.gradient = fake_quant_backward(net.conv_w_grid(), net.conv_w.value, d_w_q, quantizing);
  for (Parameter* parameter : {&net.conv_w, &net.conv_b, &net.dense_w, &net.dense_b})
    parameter->descend(learning_rate, 0.9f);
  return loss;
}

// 5. Integers. With r = scale * (q - zero_point) for x, w and y, the layer y = b + sum of x * w becomes
//   q_y = Z_y + M * (q_b + sum of (q_x - Z_x) * (q_w - Z_w)),    M = S_x * S_w / S_y,    q_b = b / (S_x * S_w)
// where the sum is exact in 32 bits, and only M is no integer. It becomes mantissa * 2^-shift.

struct IntegerLayer {
  Bytes w;
  std::vector<std::int32_t> b;
  int x_zero_point = 0, w_zero_point = 0;
  std::int64_t mantissa = 0, shift = 0;  // 31 bits; M = mantissa * 2^-shift
  Grid y;
  Bytes forward(const Bytes& x) const {
    Bytes result;
    for (std::size_t o = 0; o < b.size(); ++o) {
      std::int32_t sum = b[o];
      for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - x_zero_point) * (w[i * b.size() + o] - w_zero_point);
      // M * sum: one product of 64 bits, one addition, one shift. Ties go upwards, as in training.
      const std::int64_t q = y.zero_point + ((sum * mantissa + (std::int64_t{1} << (shift - 1))) >> shift);
      result.push_back(static_cast<std::uint8_t>(std::clamp<std::int64_t>(q, 0, y.quant_max)));
    }
    return result;
  }
};

IntegerLayer integer_layer(const Floats& w, const Floats& b, const Grid& x_grid, const Grid& w_grid,
                           const Grid& y_grid) {
  IntegerLayer layer;
  for (const float r : w) layer.w.push_back(static_cast<std::uint8_t>(quantize(w_grid, r)));
  for (const float r : b)
    layer.b.push_back(static_cast<std::int32_t>(std::lround(r / (double{x_grid.scale} * w_grid.scale))));
  layer.x_zero_point = x_grid.zero_point;
  layer.w_zero_point = w_grid.zero_point;
  layer.y = y_grid;
  int exponent = 0;  // M = fraction * 2^exponent, fraction in [1/2, 1); in floats, as other engines have it
  const double fraction = std::frexp(x_grid.scale * w_grid.scale / y_grid.scale, &exponent);
  layer.mantissa = std::llround(std::ldexp(fraction, 31));
  layer.shift = 31 - exponent;
  return layer;
}

std::pair<IntegerLayer, IntegerLayer> integer_layers(const Network& net) {
  const Grid pixels = {.scale = 1 / 255.0f, .zero_point = 0, .quant_max = 255}, hidden = net.hidden_grid();
  return {integer_layer(net.conv_w.value, net.conv_b.value, pixels, net.conv_w_grid(), hidden),
          integer_layer(net.dense_w.value, net.dense_b.value, hidden, net.dense_w_grid(), net.logits_grid())};
}

// One picture's logits, without a float. Relu needs no work: its range begins at 0, and clamping to the grid does it.
// The largest integer is that of the largest real number, so the pool is what it was.
Bytes integer_inference(const IntegerLayer& conv, const IntegerLayer& dense, const std::uint8_t* pixels) {
  Bytes pooled(kFeatures);
  for (int position = 0; position < kConv * kConv; ++position) {
    Bytes patch;
    for (int tap = 0; tap < kTaps; ++tap) patch.push_back(pixels[pixel_under(position, tap)]);
    const Bytes channels = conv.forward(patch);
    std::uint8_t* window = &pooled[(position / kConv / 2 * kPooled + position % kConv / 2) * kFilters];
    for (int f = 0; f < kFilters; ++f) window[f] = std::max(window[f], channels[f]);
  }
  return dense.forward(pooled);
}

// 6. Digits: drawn, or MNIST's.

struct Digits {
  Bytes pixels, labels;

  Floats reals(const std::vector<int>& which) const {
    Floats x;
    for (const int i : which)
      for (int p = 0; p < kPixels; ++p) x.push_back(static_cast<float>(pixels[i * kPixels + p]) * (1 / 255.0f));
    return x;
  }
};

// Glyphs of 5x7 dots, turned, stretched and moved by chance, on a noisy ground.
Digits draw_digits(int count, std::mt19937& random) {
  static const char* const kGlyphs =
      "011101000110011101011100110001011100010001100001000010000100001000111001110100010000100010001000100011111"
      "111110001000100000100000110001011100001000110010101001011111000100001011111100001111000001000011000101110"
      "001100100010000111101000110001011101111100001000100010001000010000100001110100011000101110100011000101110"
      "01110100011000101111000010001001100";
  Digits digits;
  for (int n = 0; n < count; ++n) {
    const float angle = uniform(-0.3f, 0.3f, random), ink = uniform(200, 350, random);
    const float wide = uniform(2.2f, 3.4f, random), high = uniform(2.2f, 3.2f, random);  // pixels a dot
    const float left = uniform(10.5f, 16.5f, random), top = uniform(10.5f, 16.5f, random);
    for (int p = 0; p < kPixels; ++p) {
      const float x = p % kSize - left, y = p / kSize - top;  // from the digit's centre, (2, 3) in dots
      const float u = 2 + (std::cos(angle) * x + std::sin(angle) * y) / wide;
      const float v = 3 + (std::cos(angle) * y - std::sin(angle) * x) / high;
      float shade = 0;  // between the four dots around
      for (int dot = 0; dot < 35; ++dot)
        if (kGlyphs[n % kClasses * 35 + dot] == '1')
          shade += std::max(0.0f, 1 - std::abs(u - dot % 5)) * std::max(0.0f, 1 - std::abs(v - dot / 5));
      const float pixel = std::min(ink * shade, 255.0f) + uniform(-40, 40, random);
      digits.pixels.push_back(static_cast<std::uint8_t>(std::clamp(pixel, 0.0f, 255.0f)));
    }
    digits.labels.push_back(static_cast<std::uint8_t>(n % kClasses));
  }
  return digits;
}

// What is behind the header of an unpacked IDX file.
Bytes read_idx(const std::string& path, int header) {
  std::ifstream file(path, std::ios::binary);
  file.ignore(header);
  return Bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

Digits read_mnist(const std::string& path) {
  Digits digits = {read_idx(path + "-images-idx3-ubyte", 16), read_idx(path + "-labels-idx1-ubyte", 8)};
  if (digits.labels.empty() || digits.pixels.size() != digits.labels.size() * kPixels)
    throw std::runtime_error("no unpacked IDX files of 28x28 pixels and their labels: " + path + "-...");
  return digits;
}

// 7. What the network can do, and the training loop.
double compare(Network& net, const Digits& digits) {
  const auto [conv, dense] = integer_layers(net);
  const int pictures = static_cast<int>(digits.labels.size());
  int simulated_right = 0, integers_right = 0, equal = 0, furthest = 0;
  for (int n = 0; n < pictures; ++n) {
    const Floats simulated = forward(net, digits.reals({n}), false, true).logits_q;
    const Bytes found = integer_inference(conv, dense, &digits.pixels[n * kPixels]);
    simulated_right += std::max_element(simulated.begin(), simulated.end()) - simulated.begin() == digits.labels[n];
    integers_right += std::max_element(found.begin(), found.end()) - found.begin() == digits.labels[n];
    for (int c = 0; c < kClasses; ++c) {
      const int difference = std::abs(quantize(net.logits_grid(), simulated[c]) - found[c]);
      equal += difference == 0;
      furthest = std::max(furthest, difference);
    }
  }
  const double percent = 100.0 / pictures;
  std::printf(
      "%d pictures that training did not see: simulation %.2f%% right, integers %.2f%%\n%.2f%% of the logits are equal; the largest difference is %d of 255\n",
      pictures, percent * simulated_right, percent * integers_right, percent * equal / kClasses, furthest);
  return percent * integers_right;
}

void train(Network& net, const Digits& digits, int epochs, std::mt19937& random) {
  constexpr int kBatch = 50;
  const int batches = static_cast<int>(digits.labels.size()) / kBatch, steps = epochs * batches;
  const int quant_delay = batches;  // the first epoch
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(digits.labels.size()); ++i) order.push_back(i);
  for (int step = 0; step < steps;) {
    std::shuffle(order.begin(), order.end(), random);
    double loss = 0;
    for (int batch = 0; batch < batches; ++batch, ++step) {
      const std::vector<int> which(order.begin() + batch * kBatch, order.begin() + (batch + 1) * kBatch);
      Bytes labels;
      for (const int i : which) labels.push_back(digits.labels[i]);
      const float learning_rate = 0.05f * static_cast<float>(steps - step) / static_cast<float>(steps);
      loss += train_step(net, digits.reals(which), labels, learning_rate, step >= quant_delay);
    }
    std::printf("epoch %d of %d, %s: loss %.4f\n", step / batches, epochs, step > quant_delay ? "quantized" : "float",
                loss / batches);
  }
}

}  // namespace microqat

int main(int count, char** arguments) try {
  using namespace microqat;
  const int bits = count < 2 ? 8 : std::string(arguments[1]).size() == 1 ? arguments[1][0] - '0' : 0;
  if (bits < 2 || bits > 8 || count > 3) throw std::runtime_error("usage: microqat [BITS (2..8) [DIRECTORY]]");
  std::mt19937 random(1);
  const Digits digits = count < 3 ? draw_digits(6000, random) : read_mnist(arguments[2] + std::string("/train"));
  const Digits unseen = count < 3 ? draw_digits(2000, random) : read_mnist(arguments[2] + std::string("/t10k"));
  Network net(bits, random);
  train(net, digits, 3, random);
  const int status = compare(net, unseen) >= 97 ? 0 : 1;
  return std::fflush(stdout) == 0 ? status : throw std::runtime_error("its output cannot be written");
} catch (const std::exception& error) {
  std::fprintf(stderr, "microqat: %s\n", error.what());
  return 2;
}

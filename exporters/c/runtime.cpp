#include "exporters/c/runtime.h"

#include <algorithm>
#include <vector>

#include "core/text/error.h"
#include "exporters/c/runtime_layers.h"

namespace miniqat::exporters {
namespace {

struct Piece {
  std::string_view name;
  std::vector<std::string_view> needs;
  std::string_view text;
};

constexpr std::string_view kOutput = R"c(
/* Where an operation's results lie: their zero point, the smallest and the largest of them. */
struct output {
  int32_t zero_point, min, max;
};

/* product / 2^shift to the nearest integer, ties upwards, counted from the zero point, clamped; for a shift of at most
   31. (What >> makes of negative numbers is up to the compiler.) */
static uint8_t place_32(int32_t product, int32_t shift, const struct output *to) {
  const int32_t sum = product + ((int32_t)1 << (shift - 1));
  const int32_t value = (sum >= 0 ? sum >> shift : ~(~sum >> shift)) + to->zero_point;
  return (uint8_t)(value < to->min ? to->min : value > to->max ? to->max : value);
}
)c";

constexpr std::string_view kPlace = R"c(
/* value / 2^shift, rounded downwards. */
static int64_t shift_down(int64_t value, int32_t shift) {
  return value >= 0 ? value >> shift : ~(~value >> shift);
}

/* The same as place_32 for any shift up to 62. Beyond 32 the upper half of a product decides alone. */
static uint8_t place(int64_t product, int32_t shift, const struct output *to) {
  int64_t value;
  if (shift > 32) return place_32((int32_t)shift_down(product, 32), shift - 32, to);
  value = shift_down(product + ((int64_t)1 << (shift - 1)), shift) + to->zero_point;
  return (uint8_t)(value < to->min ? to->min : value > to->max ? to->max : value);
}
)c";

constexpr std::string_view kWindow = R"c(
/* A window that slides over an image. Output row o sees through tap k the input row o * stride - padding +
   k * dilation; columns likewise. What falls outside the image counts nothing. */
struct window {
  int32_t in_height, in_width, out_height, out_width;
  int32_t height, width, stride_y, stride_x, dilation_y, dilation_x, padding_y, padding_x;
};
)c";

constexpr std::string_view kAveragePool = R"c(
/* Multipliers by the number of pixels that a window has on the image, from 1 on. */
struct average_pool {
  struct window window;
  int32_t channels;
  const int32_t *mantissas;
  const uint8_t *shifts;
  int32_t x_zero_point;
  struct output to;
};

static void average_pool(const struct average_pool *pool, const uint8_t *x, uint8_t *y) {
  const struct window *w = &pool->window;
  for (int32_t oy = 0; oy < w->out_height; ++oy)
    for (int32_t ox = 0; ox < w->out_width; ++ox) {
      int32_t count = 0;
      memset(pool_sums, 0, (size_t)pool->channels * sizeof pool_sums[0]);
      for (int32_t ky = 0; ky < w->height; ++ky)
        for (int32_t kx = 0; kx < w->width; ++kx) {
          const int32_t iy = oy * w->stride_y - w->padding_y + ky * w->dilation_y;
          const int32_t ix = ox * w->stride_x - w->padding_x + kx * w->dilation_x;
          if (iy >= 0 && iy < w->in_height && ix >= 0 && ix < w->in_width) {
            const uint8_t *pixel = x + (iy * w->in_width + ix) * pool->channels;
            for (int32_t c = 0; c < pool->channels; ++c) pool_sums[c] += pixel[c] - pool->x_zero_point;
            ++count;
          }
        }
      for (int32_t c = 0; c < pool->channels; ++c)
        *y++ = place((int64_t)pool_sums[c] * pool->mantissas[count - 1], pool->shifts[count - 1], &pool->to);
    }
}
)c";

constexpr std::string_view kMaxPool = R"c(
static void max_pool(const struct window *w, int32_t channels, const uint8_t *x, uint8_t *y) {
  memset(y, 0, (size_t)(w->out_height * w->out_width * channels));
  for (int32_t oy = 0; oy < w->out_height; ++oy)
    for (int32_t ox = 0; ox < w->out_width; ++ox, y += channels)
      for (int32_t ky = 0; ky < w->height; ++ky)
        for (int32_t kx = 0; kx < w->width; ++kx) {
          const int32_t iy = oy * w->stride_y - w->padding_y + ky * w->dilation_y;
          const int32_t ix = ox * w->stride_x - w->padding_x + kx * w->dilation_x;
          if (iy >= 0 && iy < w->in_height && ix >= 0 && ix < w->in_width) {
            const uint8_t *pixel = x + (iy * w->in_width + ix) * channels;
            for (int32_t c = 0; c < channels; ++c)
              if (pixel[c] > y[c]) y[c] = pixel[c];
          }
        }
}
)c";

constexpr std::string_view kAdd = R"c(
/* Both products are added before anything is rounded; sum and rounding fit 32 bits. */
struct add {
  int32_t a_zero_point, b_zero_point, a_mantissa, b_mantissa, shift;
  struct output to;
};

static void add(const struct add *add, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    y[i] = place_32((a[i] - add->a_zero_point) * add->a_mantissa + (b[i] - add->b_zero_point) * add->b_mantissa,
                    add->shift, &add->to);
}
)c";

constexpr std::string_view kProduct = R"c(
struct multiply {
  int32_t a_zero_point, b_zero_point, mantissa, shift;
  struct output to;
};
)c";

constexpr std::string_view kMultiply = R"c(
static void multiply(const struct multiply *mul, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    y[i] = place((int64_t)((a[i] - mul->a_zero_point) * (b[i] - mul->b_zero_point)) * mul->mantissa, mul->shift,
                 &mul->to);
}
)c";

constexpr std::string_view kMultiplyStretched = R"c(
/* Inputs of two shapes: how far an input's place moves with each axis, 0 where the input is stretched. */
struct stretch {
  int32_t rank, extent[7], a_stride[7], b_stride[7];
  int32_t rows; /* of all axes but the last */
};

static void multiply_stretched(const struct multiply *mul, const struct stretch *s, const uint8_t *a, const uint8_t *b,
                               uint8_t *y) {
  const int32_t last = s->rank - 1;
  for (int32_t r = 0; r < s->rows; ++r) {
    const uint8_t *pa = a, *pb = b;
    int32_t rest = r;
    for (int32_t axis = last - 1; axis >= 0; --axis) {
      pa += rest % s->extent[axis] * s->a_stride[axis];
      pb += rest % s->extent[axis] * s->b_stride[axis];
      rest /= s->extent[axis];
    }
    for (int32_t i = 0; i < s->extent[last]; ++i, pa += s->a_stride[last], pb += s->b_stride[last])
      *y++ = place((int64_t)((*pa - mul->a_zero_point) * (*pb - mul->b_zero_point)) * mul->mantissa, mul->shift, &mul->to);
  }
}
)c";

constexpr std::string_view kRescale = R"c(
/* From one scale and zero point to another. */
struct rescale {
  int32_t x_zero_point, mantissa, shift;
  struct output to;
};

static void rescale(const struct rescale *r, const uint8_t *x, uint8_t *y, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    y[i] = place((int64_t)(x[i] - r->x_zero_point) * r->mantissa, r->shift, &r->to);
}
)c";

constexpr std::string_view kJoin = R"c(
/* One input of a concatenation: `blocks` pieces of it, brought to the output's scale, go to every `step`th place. */
static void join(const struct rescale *r, const uint8_t *x, uint8_t *y, int32_t blocks, int32_t piece, int32_t step) {
  for (int32_t block = 0; block < blocks; ++block) rescale(r, x + block * piece, y + block * step, piece);
}
)c";

constexpr std::string_view kPad = R"c(
/* Borders of the zero point. Extents and what is put before them, for each axis. */
struct padding {
  int32_t rank, in[7], out[7], before[7];
  int32_t rows, size; /* of all axes but the last, of the output */
  uint8_t zero_point;
};

static void pad(const struct padding *p, const uint8_t *x, uint8_t *y) {
  const int32_t last = p->rank - 1;
  memset(y, p->zero_point, (size_t)p->size);
  for (int32_t r = 0; r < p->rows; ++r) {
    int32_t rest = r, position = p->before[last], stride = p->out[last];
    for (int32_t axis = last - 1; axis >= 0; --axis) {
      position += (rest % p->in[axis] + p->before[axis]) * stride;
      rest /= p->in[axis];
      stride *= p->out[axis];
    }
    memcpy(y + position, x + r * p->in[last], (size_t)p->in[last]);
  }
}
)c";

constexpr std::string_view kSlice = R"c(
/* Every step-th element of each axis, from `start` on. */
struct slice {
  int32_t rank, in[7], out[7], start[7], step[7];
  int32_t rows; /* of all axes of the output but the last */
};

static void slice(const struct slice *s, const uint8_t *x, uint8_t *y) {
  const int32_t last = s->rank - 1;
  for (int32_t r = 0; r < s->rows; ++r) {
    int32_t rest = r, position = s->start[last], stride = s->in[last];
    for (int32_t axis = last - 1; axis >= 0; --axis) {
      position += (s->start[axis] + rest % s->out[axis] * s->step[axis]) * stride;
      rest /= s->out[axis];
      stride *= s->in[axis];
    }
    for (int32_t i = 0; i < s->out[last]; ++i) *y++ = x[position + i * s->step[last]];
  }
}
)c";

constexpr std::string_view kLookUp = R"c(
/* A function of one number: its result for each integer. */
static void look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, int32_t count) {
  for (int32_t i = 0; i < count; ++i) y[i] = table[x[i]];
}
)c";

/// In an order in which a compiler can read them.
const std::vector<Piece>& pieces() {
  static const std::vector<Piece> all = {{"output", {}, kOutput},
                                         {"place", {"output"}, kPlace},
                                         {"window", {}, kWindow},
                                         {"layer", {"place", "window"}, kLayerText},
                                         {"unpack_8", {"layer"}, kUnpack8Text},
                                         {"unpack_4", {"layer"}, kUnpack4Text},
                                         {"unpack_2", {"layer"}, kUnpack2Text},
                                         {"unpack_bits", {"layer"}, kUnpackBitsText},
                                         {"block", {"layer"}, kBlockText},
                                         {"accumulate", {"layer"}, kAccumulateText},
                                         {"taps", {"window"}, kTapsText},
                                         {"convolve", {"block", "accumulate", "taps"}, kConvolveText},
                                         {"convolve_depthwise", {"block", "taps"}, kDepthwiseText},
                                         {"fully_connected", {"block", "accumulate"}, kFullyConnectedText},
                                         {"average_pool", {"place", "window"}, kAveragePool},
                                         {"max_pool", {"window"}, kMaxPool},
                                         {"add", {"output"}, kAdd},
                                         {"product", {"place"}, kProduct},
                                         {"multiply", {"product"}, kMultiply},
                                         {"multiply_stretched", {"product"}, kMultiplyStretched},
                                         {"rescale", {"place"}, kRescale},
                                         {"join", {"rescale"}, kJoin},
                                         {"pad", {}, kPad},
                                         {"slice", {}, kSlice},
                                         {"look_up", {}, kLookUp}};
  return all;
}

void gather(std::string_view name, std::set<std::string_view>& wanted) {
  const auto piece = std::ranges::find(pieces(), name, &Piece::name);
  if (piece == pieces().end()) fail("there is no C for \"", name, "\"");
  wanted.insert(piece->name);
  for (const std::string_view need : piece->needs) gather(need, wanted);
}

}  // namespace

std::string c_runtime(const std::set<std::string_view>& kernels) {
  std::set<std::string_view> wanted;
  for (const std::string_view kernel : kernels) gather(kernel, wanted);
  std::string text;
  for (const Piece& piece : pieces())
    if (wanted.contains(piece.name)) text += piece.text;
  return text;
}

}  // namespace miniqat::exporters

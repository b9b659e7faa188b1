#include "exporters/c/runtime_layers.h"

namespace miniqat::exporters {

const std::string_view kLayerText = R"c(
/* Output channels first, first + 1, ...: 4 of them, fewer in the last block of a layer. */
struct block {
  int32_t first, channels;
  int32_t weight_zero_points[4];
};

/* A layer works block by block: it unpacks the block's weights once and makes the block's channels of all pixels. Lists
   that are per channel have one entry for each output channel, others one for all. */
struct layer {
  struct window window;
  int32_t in_channels, out_channels;
  int32_t channel_weights;            /* the weights of one output channel */
  int32_t weight_bits;
  int32_t weight_unit;                /* sums count a weight's steps so many times */
  int32_t per_channel;
  const uint8_t *weights;             /* block by block, in it in the order height, width, in, out */
  void (*unpack)(const struct layer *, const struct block *, int32_t from, int32_t count); /* of a block of 4 */
  void (*unpack_last)(const struct layer *, const struct block *, int32_t from, int32_t count); /* of one of fewer */
  const uint8_t *weight_zero_points;  /* per channel */
  const int32_t *bias;                /* one for each output channel */
  const int32_t *mantissas;           /* per channel: results are sum * mantissa / 2^shift */
  const uint8_t *shifts;              /* per channel */
  int32_t x_zero_point;
  struct output to;
};

/* The number of weights before a block's groups from `from` on. A group is the weights of the block's channels for one
   tap and input channel. */
static int32_t weights_before(const struct layer *layer, const struct block *block, int32_t from) {
  return block->first * layer->channel_weights + from * block->channels;
}
)c";

const std::string_view kUnpack8Text = R"c(
/* Fills filter[] with `count` groups of 4 weights of 8 bits, less their zero points. */
static void unpack_8(const struct layer *layer, const struct block *block, int32_t from, int32_t count) {
  const uint8_t *packed = layer->weights + weights_before(layer, block, from);
  const int32_t *zero = block->weight_zero_points;
  const int32_t zero_0 = zero[0], zero_1 = zero[1], zero_2 = zero[2], zero_3 = zero[3];
  for (int16_t *to = filter; count > 0; --count, packed += 4, to += 4) {
    to[0] = (int16_t)(packed[0] - zero_0);
    to[1] = (int16_t)(packed[1] - zero_1);
    to[2] = (int16_t)(packed[2] - zero_2);
    to[3] = (int16_t)(packed[3] - zero_3);
  }
}
)c";

const std::string_view kUnpack4Text = R"c(
/* The same of 4 bits: two weights in a byte, the first in its lower half. */
static void unpack_4(const struct layer *layer, const struct block *block, int32_t from, int32_t count) {
  const uint8_t *packed = layer->weights + weights_before(layer, block, from) / 2;
  const int32_t *zero = block->weight_zero_points;
  const int32_t zero_0 = zero[0], zero_1 = zero[1], zero_2 = zero[2], zero_3 = zero[3];
  for (int16_t *to = filter; count > 0; --count, packed += 2, to += 4) {
    const int32_t low = packed[0], high = packed[1];
    to[0] = (int16_t)((low & 15) - zero_0);
    to[1] = (int16_t)((low >> 4) - zero_1);
    to[2] = (int16_t)((high & 15) - zero_2);
    to[3] = (int16_t)((high >> 4) - zero_3);
  }
}
)c";

const std::string_view kUnpack2Text = R"c(
/* The same of 2 bits: four weights in a byte, the first in its lowest bits. */
static void unpack_2(const struct layer *layer, const struct block *block, int32_t from, int32_t count) {
  const uint8_t *packed = layer->weights + weights_before(layer, block, from) / 4;
  const int32_t *zero = block->weight_zero_points;
  const int32_t zero_0 = zero[0], zero_1 = zero[1], zero_2 = zero[2], zero_3 = zero[3];
  for (int16_t *to = filter; count > 0; --count, ++packed, to += 4) {
    const int32_t all = packed[0];
    to[0] = (int16_t)((all & 3) - zero_0);
    to[1] = (int16_t)((all >> 2 & 3) - zero_1);
    to[2] = (int16_t)((all >> 4 & 3) - zero_2);
    to[3] = (int16_t)((all >> 6) - zero_3);
  }
}
)c";

const std::string_view kUnpackBitsText = R"c(
/* Weights of fewer than 8 bits lie one behind another, the first in the lowest bits of the first byte; one that does
   not fit into what is left of a byte goes on in the lowest bits of the next. */
static int32_t weight(const struct layer *layer, int32_t index) {
  const int32_t bits = layer->weight_bits;
  const int32_t byte = index * bits / 8;
  const int32_t bit = index * bits % 8;
  int32_t value = layer->weights[byte] >> bit;
  if (bit + bits > 8) value |= (int32_t)layer->weights[byte + 1] << (8 - bit);
  return value & ((1 << bits) - 1);
}

/* The same of any number of bits and of channels; channels that the block does not have get weights of 0. */
static void unpack_bits(const struct layer *layer, const struct block *block, int32_t from, int32_t count) {
  int32_t index = weights_before(layer, block, from);
  int16_t *to = filter;
  for (int32_t i = 0; i < count; ++i)
    for (int32_t c = 0; c < 4; ++c)
      *to++ = c < block->channels ? (int16_t)(weight(layer, index++) - block->weight_zero_points[c]) : 0;
}
)c";

const std::string_view kBlockText = R"c(
static struct block block_at(const struct layer *layer, int32_t first) {
  const int32_t left = layer->out_channels - first;
  struct block block = {first, left < 4 ? left : 4, {0, 0, 0, 0}};
  for (int32_t c = 0; c < block.channels; ++c)
    block.weight_zero_points[c] = layer->weight_zero_points[layer->per_channel ? first + c : 0];
  return block;
}

static void unpack(const struct layer *layer, const struct block *block, int32_t from, int32_t count) {
  if (block->channels == 4)
    layer->unpack(layer, block, from, count);
  else
    layer->unpack_last(layer, block, from, count);
}

/* The block's channels of one output pixel. */
static void finish(const struct layer *layer, const struct block *block, const int32_t *sums, uint8_t *pixel) {
  for (int32_t c = 0; c < block->channels; ++c) {
    const int32_t o = block->first + c, k = layer->per_channel ? o : 0;
    const int32_t sum = layer->bias[o] + layer->weight_unit * sums[c];
    pixel[o] = place((int64_t)sum * layer->mantissas[k], layer->shifts[k], &layer->to);
  }
}
)c";

const std::string_view kAccumulateText = R"c(
/* `rows` rows of `count` numbers, and how far one row lies behind another in x and in filter[]. */
struct patch {
  int32_t rows, count, x_step, filter_step;
};

/* sums[c] += the sum of (x - zero point) * (weight - zero point) over the patch; weights in groups of 4 channels. */
static void accumulate(const struct patch *patch, const uint8_t *x, int32_t zero_point, const int16_t *weights,
                       int32_t *sums) {
  int32_t sum_0 = sums[0], sum_1 = sums[1], sum_2 = sums[2], sum_3 = sums[3];
  for (int32_t row = 0; row < patch->rows; ++row) {
    const uint8_t *number = x + row * patch->x_step;
    const uint8_t *const end = number + patch->count;
    const int16_t *group = weights + row * patch->filter_step;
    for (; number != end; ++number, group += 4) {
      const int32_t value = *number - zero_point;
      if (value == 0) continue;
      sum_0 += value * group[0];
      sum_1 += value * group[1];
      sum_2 += value * group[2];
      sum_3 += value * group[3];
    }
  }
  sums[0] = sum_0;
  sums[1] = sum_1;
  sums[2] = sum_2;
  sums[3] = sum_3;
}
)c";

const std::string_view kTapsText = R"c(
/* Of a window's taps along one axis those from `first` to before `end` lie on the image; the first on pixel `at`. */
struct taps {
  int32_t first, end, at;
};

/* A window whose tap 0 would lie on pixel `at`. */
static struct taps taps_on_image(int32_t at, int32_t size, int32_t dilation, int32_t pixels) {
  struct taps taps = {0, size, at};
  while (taps.first < size && taps.at < 0) {
    ++taps.first;
    taps.at += dilation;
  }
  while (taps.end > taps.first && at + (taps.end - 1) * dilation >= pixels) --taps.end;
  return taps;
}

static struct taps taps_of_row(const struct window *w, int32_t y) {
  return taps_on_image(y * w->stride_y - w->padding_y, w->height, w->dilation_y, w->in_height);
}

static struct taps taps_of_column(const struct window *w, int32_t x) {
  return taps_on_image(x * w->stride_x - w->padding_x, w->width, w->dilation_x, w->in_width);
}
)c";

const std::string_view kConvolveText = R"c(
/* Columns that lie side by side are one stretch of numbers, with all their input channels. */
static void add_window(const struct layer *layer, const struct taps *rows, const struct taps *columns,
                       const uint8_t *x, int32_t *sums) {
  const struct window *w = &layer->window;
  const int32_t in = layer->in_channels;
  const int32_t together = w->dilation_x == 1 ? columns->end - columns->first : 1;
  const struct patch patch = {rows->end - rows->first, together * in, w->dilation_y * w->in_width * in,
                              4 * w->width * in};
  for (int32_t kx = columns->first; kx < columns->end; kx += together) {
    const int32_t ix = columns->at + (kx - columns->first) * w->dilation_x;
    if (patch.rows > 0)
      accumulate(&patch, x + (rows->at * w->in_width + ix) * in, layer->x_zero_point,
                 filter + 4 * (rows->first * w->width + kx) * in, sums);
  }
}

/* sum = bias + the sum over taps and input channels of (x - zero point) * (weight - zero point). */
static void convolve(const struct layer *layer, const uint8_t *x, uint8_t *y) {
  const struct window *w = &layer->window;
  for (int32_t first = 0; first < layer->out_channels; first += 4) {
    const struct block block = block_at(layer, first);
    uint8_t *pixel = y;
    unpack(layer, &block, 0, layer->channel_weights);
    for (int32_t oy = 0; oy < w->out_height; ++oy) {
      const struct taps rows = taps_of_row(w, oy);
      for (int32_t ox = 0; ox < w->out_width; ++ox, pixel += layer->out_channels) {
        const struct taps columns = taps_of_column(w, ox);
        int32_t sums[4] = {0, 0, 0, 0};
        add_window(layer, &rows, &columns, x, sums);
        finish(layer, &block, sums, pixel);
      }
    }
  }
}
)c";

const std::string_view kDepthwiseText = R"c(
/* Input channels that a block's output channels read: each input channel makes out / in output channels. */
struct inputs {
  int32_t channel[4];
};

static struct inputs inputs_of(const struct layer *layer, const struct block *block) {
  const int32_t multiplier = layer->out_channels / layer->in_channels;
  struct inputs inputs;
  for (int32_t c = 0; c < 4; ++c)
    inputs.channel[c] = (block->first + (c < block->channels ? c : 0)) / multiplier;
  return inputs;
}

static void add_depthwise(const struct layer *layer, const struct inputs *inputs, const struct taps *rows,
                          const struct taps *columns, const uint8_t *x, int32_t *sums) {
  const struct window *w = &layer->window;
  const int32_t zero_point = layer->x_zero_point, step = w->dilation_x * layer->in_channels;
  const int32_t in_0 = inputs->channel[0], in_1 = inputs->channel[1];
  const int32_t in_2 = inputs->channel[2], in_3 = inputs->channel[3];
  int32_t sum_0 = 0, sum_1 = 0, sum_2 = 0, sum_3 = 0, iy = rows->at;
  for (int32_t ky = rows->first; ky < rows->end; ++ky, iy += w->dilation_y) {
    int32_t at = (iy * w->in_width + columns->at) * layer->in_channels;
    const int16_t *group = filter + 4 * (ky * w->width + columns->first);
    for (int32_t kx = columns->first; kx < columns->end; ++kx, at += step, group += 4) {
      sum_0 += (x[at + in_0] - zero_point) * group[0];
      sum_1 += (x[at + in_1] - zero_point) * group[1];
      sum_2 += (x[at + in_2] - zero_point) * group[2];
      sum_3 += (x[at + in_3] - zero_point) * group[3];
    }
  }
  sums[0] = sum_0;
  sums[1] = sum_1;
  sums[2] = sum_2;
  sums[3] = sum_3;
}

/* sum = bias + the sum over taps of (x - zero point) * (weight - zero point), from one input channel. */
static void convolve_depthwise(const struct layer *layer, const uint8_t *x, uint8_t *y) {
  const struct window *w = &layer->window;
  for (int32_t first = 0; first < layer->out_channels; first += 4) {
    const struct block block = block_at(layer, first);
    const struct inputs inputs = inputs_of(layer, &block);
    uint8_t *pixel = y;
    unpack(layer, &block, 0, layer->channel_weights);
    for (int32_t oy = 0; oy < w->out_height; ++oy) {
      const struct taps rows = taps_of_row(w, oy);
      for (int32_t ox = 0; ox < w->out_width; ++ox, pixel += layer->out_channels) {
        const struct taps columns = taps_of_column(w, ox);
        int32_t sums[4];
        add_depthwise(layer, &inputs, &rows, &columns, x, sums);
        finish(layer, &block, sums, pixel);
      }
    }
  }
}
)c";

const std::string_view kFullyConnectedText = R"c(
/* A weight is used once: as many are unpacked at a time as filter[] holds. */
static void fully_connected(const struct layer *layer, const uint8_t *x, uint8_t *y) {
  const int32_t in = layer->in_channels;
  for (int32_t first = 0; first < layer->out_channels; first += 4) {
    const struct block block = block_at(layer, first);
    int32_t sums[4] = {0, 0, 0, 0};
    for (int32_t from = 0; from < in; from += FILTER_SIZE / 4) {
      const int32_t count = in - from < FILTER_SIZE / 4 ? in - from : FILTER_SIZE / 4;
      const struct patch patch = {1, count, 0, 0};
      unpack(layer, &block, from, count);
      accumulate(&patch, x + from, layer->x_zero_point, filter, sums);
    }
    finish(layer, &block, sums, y);
  }
}
)c";

}  // namespace miniqat::exporters

#include "benchmarks/limit_loops.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

// One copy for each generation of x86-64 CPUs, chosen at run time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MINIQAT_EVERY_CPU __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MINIQAT_EVERY_CPU
#endif

#include "core/openmp.h"
#include "core/team.h"

namespace miniqat::limit {
namespace {

constexpr std::int64_t kLanes = Mask::kWordsOfBlock;
constexpr std::int64_t kBlock = Buffer::kBlock;
constexpr std::int64_t kRows = kBlock / kLanes;
constexpr float kNoFraction = 1 << 23;

using Floats = float __attribute__((vector_size(kLanes * sizeof(float)), may_alias));
using Words = std::uint32_t __attribute__((vector_size(kLanes * sizeof(std::uint32_t)), may_alias));

struct MinMax {
  float min = 0;
  float max = 0;
};

/// body(first block, end, thread) on every thread, or on the calling one alone where little is to be done.
template <class Body>
void spread(std::int64_t blocks, const Body& body) {
  constexpr std::int64_t kFew = 32;
  const int threads = blocks <= kFew ? 1 : omp_get_max_threads();
  if (threads == 1) return body(std::int64_t{0}, blocks, 0);
  // oneDNN's regions run there, too: two pools of threads would take the cores from one another.
  const auto part = [&](int t) { body(blocks * t / threads, blocks * (t + 1) / threads, t); };
  miniqat::run_in_team(
      threads, [](void* erased, int t) { (*static_cast<decltype(part)*>(erased))(t); },
      const_cast<void*>(static_cast<const void*>(&part)), miniqat::TeamParts::kIndependent);
}

// The functions below work on blocks [begin, end).

MINIQAT_EVERY_CPU MinMax min_max(const float* x, std::int64_t begin, std::int64_t end) {
  // Four of each, so that one comparison need not wait for the last.
  constexpr int kChains = 4;
  Floats low[kChains] = {}, high[kChains] = {};
  for (const float* at = x + begin * kBlock; at < x + end * kBlock; at += kChains * kLanes)
    for (int k = 0; k < kChains; ++k) {
      const Floats value = *reinterpret_cast<const Floats*>(at + k * kLanes);
      low[k] = value < low[k] ? value : low[k];
      high[k] = value > high[k] ? value : high[k];
    }
  MinMax all;
  for (int k = 0; k < kChains; ++k)
    for (int lane = 0; lane < kLanes; ++lane) {
      all.min = std::min(all.min, low[k][lane]);
      all.max = std::max(all.max, high[k][lane]);
    }
  return all;
}

/// Plain loops here: of vectors that are compared and chosen from like this, GCC 12 makes scalar code.
MINIQAT_EVERY_CPU void quantize_blocks(const Quantizer& grid, float smallest, const float* x, float* y, Words* mask,
                                       std::int64_t begin, std::int64_t end) {
  const float low = grid.low, high = grid.high, scale = grid.scale;
  // Steps are counted from `low`.
  const float shift = grid.quant_min - grid.zero_point;
  for (std::int64_t block = begin; block < end; ++block) {
    std::uint32_t passes[kLanes] = {};
    for (std::int64_t row = 0; row < kRows; ++row) {
      const float* from = x + block * kBlock + row * kLanes;
      float* to = y + block * kBlock + row * kLanes;
#pragma omp simd
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        const float value = from[lane];
        passes[lane] |= static_cast<std::uint32_t>((value >= smallest) & (value <= high)) << row;
        const float raised = value < low ? low : value;
        const float clamped = raised > high ? high : raised;
        // Adding and subtracting 2^23 rounds to the nearest whole number, which may be one above the floor.
        const float wanted = (clamped - low) / scale + 0.5f;
        const float nearest = (wanted + kNoFraction) - kNoFraction;
        const std::int32_t overshoot = nearest > wanted ? -1 : 0;
        to[lane] = (nearest + static_cast<float>(overshoot) + shift) * scale;
      }
    }
    for (std::int64_t lane = 0; lane < kLanes; ++lane) mask[block][lane] = passes[lane];
  }
}

/// All ones where the word's bit of this row is 1.
#define MINIQAT_PASSING(words, row) ((((words) >> (row)) & 1u) != 0u)

MINIQAT_EVERY_CPU void mask_blocks(const Words* mask, float* d, std::int64_t begin, std::int64_t end) {
  for (std::int64_t block = begin; block < end; ++block) {
    const Words passes = mask[block];
    for (std::int64_t row = 0; row < kRows; ++row) {
      auto* at = reinterpret_cast<Floats*>(d + block * kBlock + row * kLanes);
      *at = MINIQAT_PASSING(passes, row) ? *at : Floats{};
    }
  }
}

MINIQAT_EVERY_CPU void relu_gradient_blocks(const float* y, float* d, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) d[i] = y[i] > 0 ? d[i] : 0.0f;
}

MINIQAT_EVERY_CPU void drop_blocks(std::uint32_t key, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) {
    // murmur3's finaliser
    std::uint32_t hash = static_cast<std::uint32_t>(i) + key;
    hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
    hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
    y[i] = (hash >> 31) != 0 ? 2 * y[i] : 0.0f;
  }
}

MINIQAT_EVERY_CPU void descend_blocks(const Descent& descent, float* w, float* v, const float* g, std::int64_t begin,
                                      std::int64_t end) {
  const Descent by = descent;
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) {
    v[i] = by.momentum * v[i] + (g[i] + by.weight_decay * w[i]);
    w[i] -= by.rate * v[i];
  }
}

MINIQAT_EVERY_CPU void descend_masked_blocks(const Descent& descent, const Words* mask, float* w, float* v,
                                             const float* g, std::int64_t begin, std::int64_t end) {
  const Descent by = descent;
  for (std::int64_t block = begin; block < end; ++block) {
    const Words passes = mask[block];
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t at = block * kBlock + row * kLanes;
      auto& weights = *reinterpret_cast<Floats*>(w + at);
      auto& velocity = *reinterpret_cast<Floats*>(v + at);
      const Floats gradient = *reinterpret_cast<const Floats*>(g + at);
      const Floats passed = MINIQAT_PASSING(passes, row) ? gradient : Floats{};
      velocity = by.momentum * velocity + (passed + by.weight_decay * weights);
      weights -= by.rate * velocity;
    }
  }
}

MinMax min_max(const Buffer& x) {
  // A cache line each: neighbours in one would take it from one another.
  struct alignas(64) Part {
    MinMax seen;
  };
  constexpr int kMostThreads = 1024;
  static std::array<Part, kMostThreads> parts;
  const int threads = std::min(omp_get_max_threads(), kMostThreads);
  for (int t = 0; t < threads; ++t) parts[t].seen = {};
  spread(x.blocks(),
         [&](std::int64_t begin, std::int64_t end, int t) { parts[t].seen = min_max(x.data(), begin, end); });
  MinMax all;
  for (int t = 0; t < threads; ++t) {
    all.min = std::min(all.min, parts[t].seen.min);
    all.max = std::max(all.max, parts[t].seen.max);
  }
  return all;
}

}  // namespace

void Quantizer::observe(const Buffer& x) {
  const MinMax seen = min_max(x);
  double min = seen.min, max = seen.max;
  if (moving_average) {
    biased_min_ = decay * biased_min_ + (1 - decay) * min;
    biased_max_ = decay * biased_max_ + (1 - decay) * max;
    unseen_ *= decay;
    min = biased_min_ / (1 - unseen_);
    max = biased_max_ / (1 - unseen_);
  }
  quant_min = narrow_range ? 1 : 0;
  quant_max = static_cast<float>((1 << bits) - 1);
  const double levels = quant_max - quant_min;
  scale = max > min ? static_cast<float>((max - min) / levels) : 1;
  // A range [-m, m] is a tie whatever m, as in quantize/affine.cpp.
  const double steps_below_zero = max > min ? -min * levels / (max - min) : 0;
  zero_point = static_cast<float>(std::clamp<double>(std::round(quant_min + steps_below_zero), quant_min, quant_max));
  low = (quant_min - zero_point) * scale;
  high = max > min ? (quant_max - zero_point) * scale : low;
}

void quantize(const Quantizer& quantizer, bool after_relu, const Buffer& x, const Buffer& y, const Mask& mask) {
  const float smallest = after_relu ? FLT_MIN : quantizer.low;
  spread(x.blocks(), [&](std::int64_t begin, std::int64_t end, int) {
    quantize_blocks(quantizer, smallest, x.data(), y.data(), static_cast<Words*>(mask.data()), begin, end);
  });
}

void apply_mask(const Mask& mask, const Buffer& d) {
  spread(d.blocks(), [&](std::int64_t begin, std::int64_t end, int) {
    mask_blocks(static_cast<const Words*>(mask.data()), d.data(), begin, end);
  });
}

void apply_relu_gradient(const Buffer& y, const Buffer& d) {
  spread(d.blocks(),
         [&](std::int64_t begin, std::int64_t end, int) { relu_gradient_blocks(y.data(), d.data(), begin, end); });
}

void drop_half(std::uint32_t key, const Buffer& y) {
  spread(y.blocks(), [&](std::int64_t begin, std::int64_t end, int) { drop_blocks(key, y.data(), begin, end); });
}

void descend(const Descent& descent, const Mask* mask, const Buffer& w, const Buffer& v, const Buffer& g) {
  spread(w.blocks(), [&](std::int64_t begin, std::int64_t end, int) {
    if (mask != nullptr)
      descend_masked_blocks(descent, static_cast<const Words*>(mask->data()), w.data(), v.data(), g.data(), begin, end);
    else
      descend_blocks(descent, w.data(), v.data(), g.data(), begin, end);
  });
}

float softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                            float* d_logits) {
  double loss = 0;
  for (std::int64_t row = 0; row < batch; ++row) {
    const float* x = logits + row * classes;
    float* d = d_logits + row * classes;
    const float largest = *std::max_element(x, x + classes);
    float sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += d[c] = std::exp(x[c] - largest);
    loss += std::log(sum) - (x[labels[row]] - largest);
    for (std::int64_t c = 0; c < classes; ++c)
      d[c] = (d[c] / sum - (c == labels[row] ? 1.0f : 0.0f)) / static_cast<float>(batch);
  }
  return static_cast<float>(loss / static_cast<double>(batch));
}

}  // namespace miniqat::limit

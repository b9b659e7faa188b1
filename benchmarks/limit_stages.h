#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "benchmarks/limit_loops.h"
#include "benchmarks/limit_onednn.h"

namespace miniqat::limit {

/// Images [n, h, w, c]; after flattening h = w = 1.
struct Extents {
  std::int64_t n = 0, h = 1, w = 1, c = 0;
  std::int64_t elements() const { return n * h * w * c; }
};

/// The data between two stages: values, and the gradient from the next stage.
struct Flow {
  explicit Flow(const Extents& extents) : extents(extents), y(extents.elements()), d(extents.elements()) {}
  Extents extents;
  Buffer y;
  Buffer d;
};

/// A piece of the network, from `from` (whose values it reads and whose gradient it writes) to flow().
class Stage {
 public:
  virtual ~Stage() = default;
  virtual void forward() = 0;
  virtual void backward() = 0;
  virtual void update(const Descent&) {}
  virtual const Flow& flow() const = 0;
};

/// A layer's two variables in the plain layouts of our engine: [kh, kw, in, out] or [in, out], and [out].
struct Parameters {
  const float* weights = nullptr;
  const float* biases = nullptr;
};

struct LayerOptions {
  /// 0 is float; otherwise weights and what comes out are quantized.
  int bits = 0;
  bool relu = true;
  /// The gradient of what goes in is wanted.
  bool d_input = true;
};

struct ConvolutionShape {
  std::int64_t kernel = 5;
  std::int64_t channels = 0;
  /// SAME, or else VALID.
  bool same = true;
};

/// Convolution or matrix product, bias and relu in one primitive, then the quantizer in place.
std::unique_ptr<Stage> convolution(const Flow& from, const ConvolutionShape& shape, const LayerOptions& options,
                                   const Parameters& parameters);
/// Reads images as flat rows.
std::unique_ptr<Stage> dense(const Flow& from, std::int64_t outputs, const LayerOptions& options,
                             const Parameters& parameters);
/// 2x2 windows, stride 2.
std::unique_ptr<Stage> max_pool(const Flow& from);
/// Half of the values, in place.
std::unique_ptr<Stage> dropout(const Flow& from);

}  // namespace miniqat::limit

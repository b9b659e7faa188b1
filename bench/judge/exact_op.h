#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/op_interfaces.h"
#include "core/tensors/tensor.h"

namespace miniqat::bench {

/// float32 rounds by at most this much of a number.
inline constexpr double kRounding = 0x1p-24;
/// Numbers far below the least normal one, which the fast loops flush to zero, times what they may be added up to.
inline constexpr double kTiny = 1e-35;

inline double error_at(const Tensor& error, std::int64_t i) { return error.defined() ? error.data<double>()[i] : 0; }

/// |value| + error; undefined when value is.
Tensor magnitude_of(const Tensor& value, const Tensor& error);

/// A tensor as exact arithmetic has it, and how far float32's roundings may take a right kernel from it, element by
/// element.
struct Bounded {
  /// float64, or integers; undefined where there is no tensor.
  Tensor value;
  /// float64, like value; undefined: none.
  Tensor error;
  /// The part of the error that may change the order of two elements; undefined: all of it.
  Tensor disorder;

  bool is_exact() const { return !error.defined(); }
  const Tensor& order_error() const { return disorder.defined() ? disorder : error; }
};

/// One op on the reference loops in float64, with bounds for the same in float32.
///
/// Where the bounds come from. u = 2^-24 is float32's rounding.
/// - Sums of products (convolutions, MatMul, means, sums over broadcast axes): (n + 1) u sum|a||b| for any order of n
///   additions (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). The sum is the op itself on the
///   inputs' magnitudes.
///   A factor rounded to bfloat16 adds 2^-8 sum|a||b|. 3x3 convolutions of many channels may mix their taps, which
///   adds a multiple of u sum|a| sum|b|.
/// - An op that only moves or chooses elements makes no error, but errors of its inputs may change the choice. A Relu's
///   or a quantizer's gradient passes or does not, a maximum is another. Then both are right.
/// - Quantizers: within rounding distance of a tie, either neighbour. Ranges and scales round, too.
/// - Everything else: several times what changes when all inputs move by u at random, by as much as a rounding inside
///   the op may. It is the largest change in a tensor that counts, for it is only a handful of tries.
class ExactOp {
 public:
  struct Settings {
    Phase phase = {};
    std::uint64_t random_key = 0;
    /// The inputs that forward updates.
    std::vector<int> updated = {};
    /// The part of themselves by which a product's factors are rounded, together: to bfloat16, or not at all.
    double forward_rounding = 0;
    double backward_rounding = 0;
  };

  /// `updates` (by position in Settings::updated) and `state` are what ForwardContext has before forward, float64; `op`
  /// must outlive this.
  ExactOp(const Op& op, std::vector<Bounded> inputs, const Settings& settings, std::vector<Tensor> updates,
          std::vector<Tensor> state);

  const std::vector<Bounded>& outputs() const { return outputs_; }
  const std::vector<Bounded>& updates() const { return updates_; }
  const std::vector<Bounded>& state() const { return state_; }
  /// Gradients of the inputs that are wanted. `d_outputs` may have gaps.
  std::vector<Bounded> backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const;

 private:
  /// All tensors of one forward run.
  struct Run {
    std::vector<Tensor> inputs, outputs, updates, state;
  };

  Run forward(std::vector<Tensor> inputs) const;
  ForwardContext context_of(Run& run) const;
  std::vector<Tensor> backward(Run run, const std::vector<Tensor>& d_outputs, const std::vector<bool>& wanted) const;

  void bound_sums();
  void bound_choice();
  void bound_quantizer();
  void bound_by_trial();
  std::vector<Bounded> sums_backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const;
  std::vector<Bounded> choice_backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const;
  std::vector<Bounded> quantizer_backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const;
  std::vector<Bounded> trial_backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const;
  void add_probability_rounding(Bounded& d_logits, double arriving) const;
  void add_statistics_rounding(Bounded& d_x, const Bounded& d_y) const;
  void add_mixed_rounding(Bounded& result, const Tensor& mixed, double terms) const;
  std::vector<Tensor> magnitudes(bool with_errors) const;
  double relative_error(double terms, double factors_rounding) const;
  double terms_forward() const;
  double terms_inside() const;
  double terms_backward(std::size_t input) const;

  const Op& op_;
  Settings settings_;
  std::vector<Bounded> inputs_;
  std::vector<Tensor> updates_before_, state_before_;
  Run exact_;
  std::vector<Bounded> outputs_, updates_, state_;
  /// A quantizer's: by how much its input may seem to have moved, float64 like it.
  Tensor reach_;
};

}  // namespace miniqat::bench

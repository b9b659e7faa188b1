#include "quantize/fake_quant_in_chain.h"

#include "core/graph/op.h"
#include "core/tensors/dtype.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_training.h"

namespace miniqat::quantize {
namespace {

class QuantizerOfChain final : public layers::ChainQuantizer {
 public:
  explicit QuantizerOfChain(const FakeQuantAttributes& attributes) : attributes_(attributes) {}

  bool quantizes(const Phase& phase) const override { return attributes_.quantizes(phase.quantization_step); }
  bool observes_range() const override { return attributes_.observes_range(); }
  bool trains_range() const override { return attributes_.is_training && traits_of(attributes_.range).learned; }
  bool fits_bytes() const override { return attributes_.bits <= 8; }
  PackedForm packed_form() const override { return quantize::packed_form(attributes_.grid_options()); }

  layers::ChainGrid grid(const layers::ChainRange& range, const layers::ObservedRange* observed) const override {
    const Range<float> used =
        observed != nullptr ? range_of_step(range, *observed) : Range<float>{range.min, range.max};
    const Affine<float> grid = grid_of(used, attributes_.grid_options());
    return {.lowest = grid.empty() ? -kInfinity : grid.nudged_min,
            .highest = grid.empty() ? kInfinity : grid.nudged_max,
            .affine = grid};
  }

  void quantize_piece(const layers::ChainGrid& grid, const float* x, float* y, std::int64_t n) const override {
    fake_quant_piece(x, y, n, grid.affine);
  }

  std::pair<float, float> gradients_of_range(const layers::ChainRange& range,
                                             const layers::RoundingSums& sums) const override {
    const Range<float> used = {range.min, range.max};
    const double scale = grid_of(used, attributes_.grid_options()).scale;
    const RangeSums of_range = {.below = sums.below, .above = sums.above, .inside = sums.inside * scale};
    std::pair<float, float> gradients;
    range_gradients(attributes_, {&used, 1}, {&of_range, 1}, &gradients.first, &gradients.second);
    return gradients;
  }

 private:
  /// The range that a step makes of what it observed; it is stored, too.
  Range<float> range_of_step(const layers::ChainRange& range, const layers::ObservedRange& observed) const {
    Range<float> of_step = {observed.least, observed.largest};
    Observation<float> observation{std::span(&of_step, 1), observed.has_nan};
    update_ranges(attributes_, observation,
                  {.min = {range.new_min, 1}, .max = {range.new_max, 1}, .num_updates = range.state});
    return of_step;
  }

  FakeQuantAttributes attributes_;
};

}  // namespace

std::shared_ptr<const layers::ChainQuantizer> chain_quantizer(const FakeQuantAttributes& attributes) {
  return std::make_shared<QuantizerOfChain>(attributes);
}

}  // namespace miniqat::quantize

#include "quantize/fake_quant_in_chain.h"

#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_training.h"
#include "quantize/step_ranges.h"

namespace miniqat::quantize {
namespace {

class QuantizerOfChain final : public layers::ChainQuantizer {
 public:
  explicit QuantizerOfChain(const FakeQuantAttributes& attributes) : attributes_(attributes) {}

  bool observes_range() const override { return attributes_.observes_range(); }
  bool trains_range() const override { return attributes_.is_training && traits_of(attributes_.range).learned; }
  bool quantizes(const Phase& phase) const override { return attributes_.quantizes(phase.quantization_step); }
  std::optional<PackedForm> packed_form() const override { return quantize::packed_form(attributes_.grid_options()); }

  void stage_range(const ForwardContext& context, int range_input, Observation<float>& observed) const override {
    stage_ranges<FastRanges>(attributes_, context, range_input, observed);
  }
  Affine<float> grid(Range<float> range) const override { return grid_of(range, attributes_.grid_options()); }
  void quantize_piece(const Affine<float>& grid, const float* x, float* y, std::int64_t n) const override {
    fake_quant_piece(x, y, n, grid);
  }
  void range_gradients(Range<float> range, const RangeSums& sums, float* d_min, float* d_max) const override {
    quantize::range_gradients(attributes_, {&range, 1}, {&sums, 1}, d_min, d_max);
  }

 private:
  FakeQuantAttributes attributes_;
};

}  // namespace

std::shared_ptr<const layers::ChainQuantizer> chain_quantizer(const FakeQuantAttributes& attributes) {
  return std::make_shared<QuantizerOfChain>(attributes);
}

}  // namespace miniqat::quantize

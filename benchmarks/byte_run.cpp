#include "benchmarks/byte_run.h"

#include <algorithm>
#include <cstdint>

#include "core/kernels/onednn_bytes.h"
#include "core/tensors/packed.h"
#include "core/tensors/random.h"
#include "core/text/error.h"

namespace miniqat::benchmarks {

ByteRun::ByteRun(const Op& op, const std::vector<TensorSpec>& specs) : op_(op), y_(op.infer(specs)[0]) {
  const int middle = std::min(onednn::exact_byte(), 128);
  const std::array<PackedForm, 2> forms = {
      {{.elements = specs[0].shape.elements(), .lowest = 0, .highest = 255, .middle = 128},
       {.elements = specs[1].shape.elements(), .lowest = -middle, .highest = middle - 1, .middle = middle}}};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    bytes_[i] = Tensor(forms[i].spec());
    numbers_[i] = Tensor(TensorSpec{specs[i].shape, DType::kFloat64});
    Random random(i);
    const auto codes = static_cast<std::uint64_t>(forms[i].highest - forms[i].lowest + 1);
    for (std::int64_t k = 0; k < forms[i].elements; ++k) {
      const auto code = static_cast<std::uint8_t>(random.below(codes));
      bytes_[i].data<std::uint8_t>()[k] = code;
      numbers_[i].data<double>()[k] = code + forms[i].lowest;
    }
    packed_grids(forms[i], bytes_[i])[0] = {.scale = 1, .zero_point = static_cast<float>(-forms[i].lowest)};
    context_.inputs.push_back(&numbers_[i]);
    context_.packed_inputs.push_back(&bytes_[i]);
    context_.packed_forms.push_back(forms[i]);
  }
  context_.outputs = {&y_};
  run();
}

std::string ByteRun::fault() const {
  Tensor sums(TensorSpec{y_.shape(), DType::kFloat64});
  ForwardContext reference;
  reference.inputs = context_.inputs;
  reference.outputs = {&sums};
  op_.reference_forward(reference);
  for (std::int64_t i = 0; i < y_.elements(); ++i) {
    const float got = y_.data<float>()[i];
    const double wanted = sums.data<double>()[i];
    if (got != static_cast<float>(wanted)) return concat("element ", i, " is ", got, " instead of ", wanted);
  }
  return "";
}

}  // namespace miniqat::benchmarks

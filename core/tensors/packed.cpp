#include "core/tensors/packed.h"

namespace miniqat {
namespace {

std::int64_t grids_offset(const PackedForm& form) {
  constexpr std::int64_t kAlignment = alignof(CodeGrid);
  return (form.elements + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

TensorSpec PackedForm::spec() const {
  return {Shape{grids_offset(*this) + grids * static_cast<std::int64_t>(sizeof(CodeGrid))}, DType::kUInt8};
}

PackedTensor packed_tensor(const PackedForm& form, const Tensor& bytes) {
  const auto* codes = bytes.data<std::uint8_t>();
  return {codes, {reinterpret_cast<const CodeGrid*>(codes + grids_offset(form)), static_cast<std::size_t>(form.grids)}};
}

std::span<CodeGrid> packed_grids(const PackedForm& form, Tensor& bytes) {
  return {reinterpret_cast<CodeGrid*>(bytes.data<std::uint8_t>() + grids_offset(form)),
          static_cast<std::size_t>(form.grids)};
}

}  // namespace miniqat

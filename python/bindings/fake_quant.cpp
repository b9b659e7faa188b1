// FakeQuant as a function of arrays, with its gradient, and its grid.

#include "quantize/fake_quant.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/graph/op.h"
#include "core/graph/op_queries.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "python/bindings/handles.h"

namespace miniqat::python {

template <>
inline constexpr bool kIsBound<Affine<float>> = true;

namespace {

using Grid = Affine<float>;

struct GridKeywords {
  std::int64_t bits = 8;
  bool narrow_range = false;
  bool symmetric = false;
  bool power_of_two = false;
};

quantize::GridOptions grid_options(const GridKeywords& keywords) {
  return {static_cast<int>(keywords.bits), keywords.narrow_range, keywords.symmetric, keywords.power_of_two};
}

/// Throws ValueError, which names the channel if there are several, for a range that is none, or that no grid fits.
void require_range(std::span<const float> low, std::span<const float> high, const GridKeywords& keywords) {
  if (keywords.bits < 2 || keywords.bits > 16) fail("bits must be 2 to 16, is ", keywords.bits);
  for (std::size_t i = 0; i < std::min(low.size(), high.size()); ++i) {
    const bool is_range = std::isfinite(low[i]) && std::isfinite(high[i]) && low[i] <= high[i];
    if (is_range && std::isfinite(quantize::grid_of<float>({low[i], high[i]}, grid_options(keywords)).scale)) continue;
    const std::string where = low.size() > 1 ? concat(" of channel ", i) : "";
    const char* const what = is_range           ? "too wide: no grid of float32 numbers reaches over it"
                             : low[i] > high[i] ? "min is greater than max"
                                                : "min and max must be finite numbers";
    throw py::value_error(concat("the range", where, " is [", low[i], ", ", high[i], "]: ", what));
  }
}

/// The op without a graph, on arrays.
class Quantizer {
 public:
  Quantizer(const ArrayLike& x, const ArrayLike& min, const ArrayLike& max, const GridKeywords& keywords,
            const std::string& range)
      : arrays_{borrow(x, DType::kFloat32, "x"), borrow(min, DType::kFloat32, "min"),
                borrow(max, DType::kFloat32, "max")} {
    require_range(arrays_[1].tensor.values<float>(), arrays_[2].tensor.values<float>(), keywords);
    if (range != "fixed" && range != "learned") fail(wrong_choice("range", range, {"fixed", "learned"}));
    op_ = quantize::FakeQuant::make(
        {.bits = keywords.bits,
         .narrow_range = keywords.narrow_range,
         .symmetric = keywords.symmetric,
         .power_of_two = keywords.power_of_two,
         .per_channel = arrays_[1].tensor.shape().rank() > 0,
         .range = range == "fixed" ? quantize::RangeKind::kFixed : quantize::RangeKind::kLearned});
    for (const Borrowed& array : arrays_) {
      specs_.push_back(array.tensor.spec());
      forward_.inputs.push_back(&array.tensor);
    }
    y_ = Tensor(op_->infer(specs_).front());
    forward_.outputs = {&y_};
    forward_.training = true;
  }

  Tensor forward() {
    for (const TensorSpec& spec : saves_ ? saved_by(*op_, specs_) : std::vector<TensorSpec>())
      saved_.emplace_back(spec);
    for (Tensor& tensor : saved_) forward_.saved.push_back(&tensor);
    const ComputeScope computing;
    op_->forward(forward_);
    return y_;
  }

  /// d_x, d_min and d_max.
  std::vector<Tensor> backward(const Tensor& d_y) {
    if (d_y.shape() != y_.shape()) fail("d_y is ", d_y.shape(), ", x is ", y_.shape());
    saves_ = true;
    forward();
    std::vector<Tensor> gradients(specs_.begin(), specs_.end());
    BackwardContext backward{.forward = &forward_, .d_outputs = {&d_y}, .d_inputs = {}};
    for (Tensor& gradient : gradients) backward.d_inputs.push_back(&gradient);
    const ComputeScope computing;
    op_->backward(backward);
    return gradients;
  }

 private:
  std::vector<Borrowed> arrays_;
  std::vector<TensorSpec> specs_;
  std::shared_ptr<Op> op_;
  ForwardContext forward_;
  Tensor y_;
  bool saves_ = false;
  std::vector<Tensor> saved_;
};

py::array fake_quant(const ArrayLike& x, const ArrayLike& min, const ArrayLike& max, std::int64_t bits,
                     bool narrow_range, bool symmetric, bool power_of_two) {
  Quantizer quantizer(x, min, max, {bits, narrow_range, symmetric, power_of_two}, "fixed");
  const Tensor y = unlocked([&] { return quantizer.forward(); });
  return to_array(y);
}

py::tuple fake_quant_gradient(const ArrayLike& d_y, const ArrayLike& x, const ArrayLike& min, const ArrayLike& max,
                              std::int64_t bits, bool narrow_range, bool symmetric, bool power_of_two,
                              const std::string& range) {
  Quantizer quantizer(x, min, max, {bits, narrow_range, symmetric, power_of_two}, range);
  const Borrowed given = borrow(d_y, DType::kFloat32, "d_y");
  const std::vector<Tensor> gradients = unlocked([&] { return quantizer.backward(given.tensor); });
  return py::make_tuple(to_array(gradients[0]), to_array(gradients[1]), to_array(gradients[2]));
}

Grid grid(float min, float max, int bits, bool narrow_range, bool symmetric, bool power_of_two) {
  const GridKeywords keywords{bits, narrow_range, symmetric, power_of_two};
  require_range({&min, 1}, {&max, 1}, keywords);
  return quantize::grid_of<float>({min, max}, grid_options(keywords));
}

}  // namespace

void bind_fake_quant(py::module_& module) {
  py::class_<Grid>(module, "Grid", "real = scale * (integer - zero_point), for integers from quant_min to quant_max.")
      .def_readonly("scale", &Grid::scale, "The step.")
      .def_readonly("zero_point", &Grid::zero_point, "The integer of 0.")
      .def_readonly("quant_min", &Grid::quant_min, "The least integer.")
      .def_readonly("quant_max", &Grid::quant_max, "The greatest integer.")
      .def_readonly("min", &Grid::nudged_min, "The least number on the grid.")
      .def_readonly("max", &Grid::nudged_max, "The greatest number on the grid.")
      .def("__repr__", [](const Grid& self) {
        return concat("<miniqat.Grid scale=", self.scale, " zero_point=", self.zero_point, ">");
      });
  module.def("grid", &grid, py::arg("min"), py::arg("max"), py::arg("bits") = 8, py::arg("narrow_range") = false,
             py::arg("symmetric") = false, py::arg("power_of_two") = false,
             "The grid of a range: widened to contain 0, moved so that 0 is on it.");
  module.def(
      "fake_quant", &fake_quant, py::arg("x"), py::arg("min"), py::arg("max"), py::arg("bits") = 8,
      py::arg("narrow_range") = false, py::arg("symmetric") = false, py::arg("power_of_two") = false,
      "x rounded to the grid of a range, float32. One range for all if min and max are numbers, one per channel\n"
      "if they have the shape of x's last axis (or last two). Raises ValueError if min > max, if one is not\n"
      "finite, and for a range too wide for float32.");
  module.def(
      "fake_quant_gradient", &fake_quant_gradient, py::arg("d_y"), py::arg("x"), py::arg("min"), py::arg("max"),
      py::arg("bits") = 8, py::arg("narrow_range") = false, py::arg("symmetric") = false,
      py::arg("power_of_two") = false, py::arg("range") = "fixed",
      "(d_x, d_min, d_max) of fake_quant(), by the straight-through estimator. range=\"learned\" also counts what\n"
      "the width of the range does to the numbers inside (docs/low-bits.md).");
}

}  // namespace miniqat::python

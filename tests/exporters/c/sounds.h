#pragma once

#include <array>
#include <string>
#include <utility>

#include "exporters/c/front_end.h"
#include "tests/integer/random_model.h"

namespace miniqat::testing {

/// Front ends for exported C: the default one, one of bands of equal area with windows as long as their transform, and
/// raw samples.
inline const std::array<std::pair<std::string, exporters::CFrontEnd>, 3> kSounds = {
    {{"mfcc", {}},
     {"bands",
      {.rate = 8000,
       .window = 256,
       .stride = 100,
       .steps = 20,
       .bands = 12,
       .coefficients = 0,
       .low_hz = 100,
       .slaney = true}},
     {"raw", {.rate = 8000, .window = 1, .stride = 1, .steps = 400, .bands = 0, .coefficients = 0}}}};

/// A small network of classes over the front end's numbers, with weights as they come.
inline integer::Model sound_model(const exporters::CFrontEnd& options) {
  RandomModel net(4, {options.steps, options.numbers()});
  net.reshape({options.steps * options.numbers()});
  net.fully_connected(5);
  integer::Model model = net.finish();
  const integer::Grid grid = {.scale = 0.03f, .zero_point = 120, .bits = 8};
  for (integer::TensorInfo& tensor : model.tensors)
    if (tensor.shape.elements() == options.steps * options.numbers()) tensor.grid = grid;
  Standard standard;
  for (std::int64_t c = 0; c < options.numbers(); ++c) {
    standard.mean.push_back(c == 0 ? -20.0f : options.coefficients > 0 ? 0.3f : -5.0f);
    standard.deviation.push_back(c == 0 ? 12.5f : 3.0f / static_cast<float>(c));
  }
  if (options.is_raw()) standard = {.mean = {-0.0123f}, .deviation = {0.17f}};
  model.input_standard = standard;
  model.check();
  return model;
}

}  // namespace miniqat::testing

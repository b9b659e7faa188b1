#pragma once

#include "exporters/html/html.h"
#include "tests/integer/random_model.h"

namespace miniqat::testing {

/// A page with one model, whose input takes the pictures' bytes as they are.
inline exporters::HtmlPage one_page(const integer::Model& model) {
  return {.title = "page", .models = {{.model = model, .label = "model", .bytes = model.tensor(model.input).grid}}};
}

/// Pictures of 28x28, grey, 8 bits to 10 classes, with random weights.
inline integer::Model small_digit_model(std::uint64_t seed) {
  RandomModel net(seed, {28, 28, 1}, {.only_bits = 8});
  net.conv2d(4);
  net.max_pool();
  net.conv2d(8);
  net.average_pool();
  net.fully_connected(10);
  return net.finish();
}

}  // namespace miniqat::testing

#include "tests/quantize/convert/trained_integers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text/error.h"
#include "integer/engine.h"
#include "integer/reference/engine.h"
#include "layers/layers.h"
#include "quantize/convert/convert.h"
#include "tests/exporters/c/c_project.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::testing {

Output conv_bias(Graph& graph, const std::string& scope, Output x, std::int64_t size, std::int64_t channels) {
  const Output w = layers::variable(graph, scope + "/weights", {size, size, x.shape()[3], channels});
  const Output b = layers::variable(graph, scope + "/biases", {channels});
  return layers::bias_add(graph, scope + "/BiasAdd", layers::conv2d(graph, scope + "/Conv2D", x, w), b);
}

void expect_trained_integers(const Graph& graph, quantize::RewriteOptions options) {
  CProject project;
  std::vector<std::string> prefixes;
  for (const int bits : {8, 4})
    for (const bool per_channel : {false, true}) {
      if (options.bn_fold == quantize::BnFold::kLate && !per_channel) continue;
      options.weight_bits = options.activation_bits = bits;
      options.per_channel = per_channel;
      const TrainedNet net = train_briefly(graph, options);
      const integer::Model model = quantize::convert(net.evaluation, net.variables, {.input = kPictures});
      const Tensor images = images_for(net.evaluation, model, 1);
      // With 4 bits many sums of a small net are the same number: if it lies beside a tie, they all differ.
      if (bits == 8) expect_faithful(net.evaluation, net.variables, model, images);
      for (const OperationCheck& check : check_operations(net.evaluation, net.variables, model, images))
        EXPECT_LE(check.largest, 1) << bits << " bits, " << check.operation;
      EXPECT_LE(output_difference(net.evaluation, net.variables, model, images), 2);
      integer::Engine engine(model);
      const std::vector<Tensor> expected = integer::reference::run(model, images), found = engine.run_all(images);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(std::ranges::equal(expected[i].values<std::uint8_t>(), found[i].values<std::uint8_t>())) << i;
      prefixes.push_back(concat("bits", bits, per_channel ? "c" : "t"));
      project.add(prefixes.back(), model, images);
    }
  ASSERT_TRUE(project.compile(kStrict));
  for (const std::string& prefix : prefixes) EXPECT_EQ(project.self_test(prefix), 0) << prefix;
}

}  // namespace miniqat::testing

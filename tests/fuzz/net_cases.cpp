#include "core/graph/source_ops.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/fuzz/cases.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/random_net.h"

namespace miniqat::fuzz {
namespace {

bool chance(Random& random, std::uint64_t one_in) { return random.below(one_in) == 0; }

int random_bits(Random& random) {
  return static_cast<int>(chance(random, 8) ? 9 + random.below(8) : 2 + random.below(7));
}

quantize::RangeChoice random_ranges(Random& random) {
  return static_cast<quantize::RangeChoice>(random.below(names_of(quantize::RangeChoice()).size()));
}

/// Some layers otherwise than the rest, by the names that the random nets give them.
std::vector<quantize::LayerBits> random_layer_bits(Random& random) {
  std::vector<quantize::LayerBits> list;
  for (const char* pattern : {"net/stage0", "*/DepthwiseConv2d", "net/*1"}) {
    quantize::LayerBits bits{.pattern = pattern, .weight_bits = random_bits(random)};
    if (chance(random, 2)) bits.activation_bits = random_bits(random);
    if (chance(random, 2)) bits.per_channel = chance(random, 2);
    if (chance(random, 3)) bits.symmetric_weights = true;
    if (chance(random, 3)) bits.ema_decay = 0.5;
    if (chance(random, 3)) bits.ranges = random_ranges(random);
    list.push_back(bits);
  }
  return list;
}

quantize::RewriteOptions random_options(Random& random) {
  quantize::RewriteOptions options;
  options.weight_bits = random_bits(random);
  options.activation_bits = random_bits(random);
  options.symmetric = chance(random, 3);
  options.symmetric_weights = chance(random, 3);
  options.ranges = random_ranges(random);
  options.asymmetric_weights = chance(random, 3);
  if (chance(random, 4)) options.scales = quantize::ScaleChoice::kPowerOfTwo;
  options.per_channel = chance(random, 2);
  options.quant_delay = chance(random, 2) ? 0 : static_cast<std::int64_t>(1 + random.below(3));
  if (chance(random, 2)) options.freeze_bn_delay = static_cast<std::int64_t>(random.below(4));
  options.bn_fold = chance(random, 2) ? quantize::BnFold::kTf : quantize::BnFold::kSingle;
  options.ema_decay = chance(random, 2) ? 0.9 : 0.999;
  if (chance(random, 4)) options.scope = "net";
  options.quantize_input = chance(random, 2);
  options.float_pools = chance(random, 4);
  if (chance(random, 4)) options.layer_bits = random_layer_bits(random);
  return options;
}

/// By random numbers of their own, so that the other options of a seed are those of older fuzzers.
void draw_sums(quantize::RewriteOptions& options, std::uint64_t seed) {
  Random random(mix(seed, hash_text("sums")));
  const auto wider = [&](int bits) { return bits + static_cast<int>(random.below(17 - bits)); };
  if (chance(random, 3)) options.sums_bits = wider(options.activation_bits);
  for (quantize::LayerBits& bits : options.layer_bits)
    if (chance(random, 3)) bits.sums_bits = wider(bits.activation_bits.value_or(options.activation_bits));
}

/// Ranges as training leaves them: the first ones are so wide that few bits round all weights to 0.
void draw_ranges(GraphCase& test, Random& random) {
  for (const Node* node : test.graph.nodes()) {
    const bool min = node->name().ends_with("/min");
    if (node->as<Variable>() == nullptr || (!min && !node->name().ends_with("/max"))) continue;
    Tensor ends(node->output_specs()[0].shape);
    for (float& end : ends.values<float>()) end = (min ? -1.0f : 1.0f) * random.uniform(0.05f, 1.5f);
    test.values[node->name()] = ends;
  }
}

}  // namespace

GraphCase net_case(std::uint64_t seed) {
  Random random(mix(seed, hash_text("net")));
  // Enough for integers, in half of all nets.
  const bool wide = mix(seed, hash_text("channels")) % 2 == 0;
  const auto make = random.below(3) == 0 ? wide ? testing::wide_random_net : testing::random_net
                    : wide               ? testing::wide_well_formed_net
                                         : testing::well_formed_net;
  GraphCase test{.graph = make(seed), .seed = seed};
  quantize::RewriteOptions options = random_options(random);
  draw_sums(options, seed);
  testing::draw_late_folding(options, Random(mix(seed, hash_text("late"))));
  switch (random.below(8)) {
    case 0:
      test.training = chance(random, 2);
      break;
    case 1:
      // As a run is evaluated: what training has rewritten, or the graph itself.
      if (chance(random, 2)) quantize::create_training_graph(test.graph, options);
      quantize::create_eval_graph(test.graph, options);
      test.training = false;
      break;
    default:
      quantize::create_training_graph(test.graph, options);
  }
  if (chance(random, 2)) draw_ranges(test, random);
  test.threads = 1 + static_cast<int>(random.below(8));
  test.runs = test.training ? 1 + static_cast<int>(random.below(3)) : 1;
  test.quantization_step = static_cast<std::int64_t>(random.below(4));
  test.fetches_all = random.below(5) == 0;
  return test;
}

}  // namespace miniqat::fuzz

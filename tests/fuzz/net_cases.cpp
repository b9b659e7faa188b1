#include "quantize/quantize.h"
#include "quantize/rewrite.h"
#include "tests/fuzz/cases.h"
#include "tests/quantize/random_net.h"

namespace miniqat::fuzz {
namespace {

quantize::RewriteOptions random_options(Random& random) {
  const auto chance = [&](std::uint64_t one_in) { return random.below(one_in) == 0; };
  const auto bits = [&] { return chance(8) ? 16 : 2 + static_cast<int>(random.below(7)); };
  quantize::RewriteOptions options;
  options.weight_bits = bits();
  options.activation_bits = bits();
  options.symmetric = chance(3);
  options.symmetric_weights = chance(3);
  options.per_channel = chance(2);
  options.quant_delay = chance(2) ? 0 : 2;
  if (chance(2)) options.freeze_bn_delay = static_cast<std::int64_t>(random.below(4));
  options.bn_fold = chance(2) ? quantize::BnFold::kTf : quantize::BnFold::kSingle;
  options.ema_decay = 0.9;
  if (chance(4)) options.scope = "net";
  options.quantize_input = chance(2);
  options.float_pools = chance(4);
  return options;
}

}  // namespace

GraphCase net_case(std::uint64_t seed) {
  Random random(mix(seed, hash_text("net")));
  GraphCase test{.graph = random.below(3) == 0 ? testing::random_net(seed) : testing::well_formed_net(seed),
                 .seed = seed};
  const std::uint64_t kind = random.below(8);
  if (kind == 0) {
    test.training = random.below(2) == 0;
  } else if (kind == 1) {
    quantize::create_eval_graph(test.graph, random_options(random));
    test.training = false;
  } else {
    quantize::create_training_graph(test.graph, random_options(random));
  }
  test.threads = 1 + static_cast<int>(random.below(8));
  test.runs = test.training ? 1 + static_cast<int>(random.below(3)) : 1;
  test.quantization_step = static_cast<std::int64_t>(random.below(4));
  test.fetches_all = random.below(5) == 0;
  return test;
}

}  // namespace miniqat::fuzz

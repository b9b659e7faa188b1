#pragma once

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/random_net.h"

namespace miniqat::testing {

/// How many nets are tried.
inline std::uint64_t net_count() { return tries_all_cases() ? 200 : fewer(40); }

/// Options that vary with the seed; quantization starts after kNever steps.
inline quantize::RewriteOptions random_options(std::uint64_t seed) {
  Random random(mix(seed, 1));
  quantize::RewriteOptions options;
  options.quant_delay = kNever;
  if (random.below(3) == 0) options.scope = "net";
  options.quantize_input = random.below(2) == 0;
  options.float_pools = random.below(4) == 0;
  options.per_channel = random.below(2) == 0;
  options.symmetric = random.below(2) == 0;
  options.bn_fold = random.below(2) == 0 ? quantize::BnFold::kTf : quantize::BnFold::kSingle;
  if (random.below(2) == 0) options.freeze_bn_delay = 3;
  options.symmetric_weights = random.below(3) == 0;
  options.ranges = static_cast<quantize::RangeChoice>(random.below(3));
  options.asymmetric_weights = random.below(3) == 0;
  if (random.below(3) == 0) options.sums_bits = 12;
  draw_late_folding(options, Random(mix(seed, hash_text("late"))));
  return options;
}

/// Calls check(graph, options, seed) for the nets of `count` seeds, up to the first that fails.
template <class Check>
void for_random_nets(Graph (*make)(std::uint64_t seed), std::uint64_t count, const Check& check) {
  layers::register_ops();
  quantize::register_ops();
  for (std::uint64_t seed = 0; seed < count && !::testing::Test::HasFailure(); ++seed) {
    Graph graph = make(seed);
    SCOPED_TRACE(concat("seed ", seed, ", ", graph.size(), " nodes, ", graph_to_json(graph).size(), " bytes of JSON"));
    ASSERT_NO_THROW(check(graph, random_options(seed), seed));
  }
}

/// Of net_count() seeds.
template <class Check>
void for_random_nets(Graph (*make)(std::uint64_t seed), const Check& check) {
  for_random_nets(make, net_count(), check);
}

}  // namespace miniqat::testing

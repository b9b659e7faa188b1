#include "core/tensors/random.h"
#include "quantize/convert/convert.h"
#include "tests/fuzz/cases.h"
#include "tests/integer/random_model.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/random_net.h"

namespace miniqat::fuzz {
namespace {

using integer::Model;

std::int64_t any(Random& random, std::initializer_list<std::int64_t> list) {
  return list.begin()[random.below(list.size())];
}

Model random_model(std::uint64_t seed) {
  Random random(mix(seed, hash_text("model")));
  if (random.below(5) == 0) return testing::random_network(seed);
  const bool image = random.below(5) != 0;
  const Shape input = image ? Shape{any(random, {1, 2, 3, 5, 7, 8, 13, 17}), any(random, {1, 2, 3, 5, 7, 8, 11, 16}),
                                    any(random, {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 67})}
                            : Shape{any(random, {1, 2, 3, 7, 16, 31, 64, 65, 127, 300})};
  testing::RandomModel net(seed, input, {.only_bits = random.below(4) == 0 ? 8 : 0});
  for (std::uint64_t k = 1 + random.below(5); k > 0; --k) net.anything();
  if (random.below(4) == 0) net.mul(net.last(), net.last());
  if (random.below(4) == 0) net.add(net.last(), net.last());
  if (random.below(3) == 0) net.fully_connected(any(random, {1, 2, 5, 16, 17, 33}));
  return net.finish();
}

Model random_operation(std::uint64_t seed) {
  Random random(mix(seed, hash_text("operation")));
  const Shape input{any(random, {1, 3, 5, 8, 13}), any(random, {1, 2, 5, 7}), any(random, {1, 2, 3, 8, 17})};
  testing::RandomModel net(seed, input);
  net.anything();
  return net.finish();
}

quantize::RewriteOptions integer_options(Random& random) {
  quantize::RewriteOptions options;
  options.weight_bits = 2 + static_cast<int>(random.below(7));
  options.activation_bits = 2 + static_cast<int>(random.below(7));
  options.symmetric = random.below(3) == 0;
  options.symmetric_weights = random.below(3) == 0;
  options.per_channel = random.below(2) == 0;
  options.quantize_input = random.below(2) == 0;
  options.bn_fold = random.below(2) == 0 ? quantize::BnFold::kTf : quantize::BnFold::kSingle;
  if (random.below(2) == 0)
    options.sums_bits = options.activation_bits + static_cast<int>(random.below(9 - options.activation_bits));
  return options;
}

/// A net that was trained briefly, beside what it converts to.
IntegerCase trained_case(std::uint64_t seed) {
  Random random(mix(seed, hash_text("trained")));
  quantize::RewriteOptions options = integer_options(random);
  testing::draw_late_folding(options, Random(mix(seed, hash_text("late"))));
  auto net =
      std::make_shared<testing::TrainedNet>(testing::train_briefly(testing::well_formed_net(seed), options, seed));
  IntegerCase test{.model = quantize::convert(net->evaluation, net->variables, {.input = testing::kPictures}),
                   .images = {},
                   .against = Against::kSimulation};
  test.images = testing::images_for(net->evaluation, test.model, seed);
  test.net = std::move(net);
  return test;
}

IntegerCase without_net(IntegerCase test, Against against) {
  test.against = against;
  test.net = nullptr;
  return test;
}

/// Compilers and foreign runtimes take a second for so many.
constexpr std::uint64_t kExportedModels = 12, kExportedNets = 2;

std::uint64_t seed_of_net(std::uint64_t seed, std::uint64_t k) { return mix(mix(seed, hash_text("net")), k); }

}  // namespace

std::vector<IntegerCase> integer_cases(std::uint64_t seed) {
  Random random(seed);
  const int threads = 1 + static_cast<int>(random.below(8));
  if (random.below(8) != 0) {
    IntegerCase test{.model = random_model(seed), .images = {}, .threads = threads};
    test.images = testing::random_images(random, test.model, any(random, {1, 1, 2, 3, 5, 7}));
    return {test};
  }
  IntegerCase trained = trained_case(seed);
  trained.threads = threads;
  return {without_net(trained, Against::kEngine), trained};
}

std::vector<IntegerCase> c_cases(std::uint64_t seed) {
  Random random(seed);
  std::vector<IntegerCase> cases;
  for (std::uint64_t k = 0; k < kExportedModels; ++k) {
    const Model model = random_model(mix(seed, k));
    cases.push_back({.model = model, .images = testing::random_images(random, model, 3), .against = Against::kC});
  }
  for (std::uint64_t k = 0; k < kExportedNets; ++k)
    cases.push_back(without_net(trained_case(seed_of_net(seed, k)), Against::kC));
  return cases;
}

std::vector<IntegerCase> onnx_cases(std::uint64_t seed) {
  Random random(seed);
  std::vector<IntegerCase> cases;
  for (std::uint64_t k = 0; k < 2 * kExportedModels; ++k) {
    const Model model = random_operation(mix(seed, k));
    cases.push_back({.model = model, .images = testing::random_images(random, model, 3), .against = Against::kOnnx});
  }
  for (std::uint64_t k = 0; k < kExportedNets; ++k) {
    const IntegerCase net = without_net(trained_case(seed_of_net(seed, k)), Against::kOnnx);
    for (std::size_t i = 0; i < net.model.operations.size(); ++i)
      if (net.model.operations[i].inputs.size() == 1) cases.push_back(alone(net, i));
  }
  return cases;
}

}  // namespace miniqat::fuzz

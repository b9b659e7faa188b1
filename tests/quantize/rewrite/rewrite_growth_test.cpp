// What a rewrite costs grows with the graph, not with its square. Time says little on a busy machine; the memory that
// is asked for says as much: every walk through the graph, every list of it, asks operator new. What compares patterns
// with names asks fnmatch(3) instead, and those calls are counted, too.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

#include "core/text/error.h"
#include "layers/layers.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/fold/primitive_batch_norm.h"

namespace {

std::atomic<long> bytes = 0;
std::atomic<long> comparisons = 0;

[[gnu::noinline]] void* allocate(std::size_t size) {
  bytes += static_cast<long>(size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }

extern "C" int fnmatch(const char* pattern, const char* name, int flags) {
  static const auto real = reinterpret_cast<int (*)(const char*, const char*, int)>(::dlsym(RTLD_NEXT, "fnmatch"));
  ++comparisons;
  return real(pattern, name, flags);
}

namespace miniqat::quantize::rewrite_growth_test {
namespace {

/// Convolution, batch norm, Relu, over and over, each in a scope of its own or all in one.
Graph chain(int count, bool one_scope = false) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {1, 2, 2, 1});
  for (int i = 0; i < count; ++i) {
    const std::string scope = one_scope ? "net" : concat("block", i);
    const auto name = [&](const char* stem) { return graph.unique_name(concat(scope, "/", stem)); };
    const auto vector = [&](const char* stem, bool trainable) {
      return layers::variable(graph, name(stem), {1}, Initializer::constant(1), trainable);
    };
    x = layers::conv2d(graph, name("Conv2D"), x, layers::variable(graph, name("weights"), {1, 1, 1, 1}));
    const Output gamma = vector("gamma", true), beta = vector("beta", true);
    const Output mean = vector("moving_mean", false), variance = vector("moving_variance", false);
    x = layers::batch_norm(graph, name("BatchNorm"), x, gamma, beta, mean, variance);
    x = layers::relu(graph, name("Relu"), x);
  }
  graph.set_outputs({x});
  return graph;
}

/// Convolution and batch norm, spelled out in primitive ops, over and over. With a bias between they cannot be folded.
Graph spelled_out_chain(int count, testing::Statistics statistics, bool biased) {
  testing::PrimitiveOps p{.form = {.statistics = statistics}};
  Output x = p.images();
  for (int i = 0; i < count; ++i) {
    p.scope = concat("block", i);
    const Output weights = layers::variable(p.graph, p.name("weights"), {1, 1, 3, 3});
    x = layers::conv2d(p.graph, p.name("Conv2D"), x, weights);
    if (biased) x = layers::bias_add(p.graph, p.name("BiasAdd"), x, p.vector("bias", 0));
    x = p.batch_norm(x);
  }
  p.graph.set_outputs({x});
  return std::move(p.graph);
}

long bytes_of(const std::function<void()>& work) {
  const long before = bytes;
  work();
  return bytes - before;
}

/// Four times the layers may ask for five times the memory (tables double in steps), not for sixteen times.
void expect_linear(const std::function<long(int)>& cost) {
  const long small = cost(40), large = cost(160);
  EXPECT_GT(small, 100'000);
  EXPECT_LT(large, 6 * small) << "of 40 layers " << small;
}

TEST(RewriteGrowth, RewritesAreLinear) {
  for (const bool one_scope : {false, true})
    for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
      SCOPED_TRACE(concat(names_of(fold)[static_cast<std::size_t>(fold)], one_scope ? ", one scope" : ""));
      expect_linear([&](int count) {
        Graph graph = chain(count, one_scope);
        return bytes_of([&] { create_training_graph(graph, {.bn_fold = fold}).text(); });
      });
      expect_linear([&](int count) {
        Graph graph = chain(count, one_scope);
        create_training_graph(graph, {.bn_fold = fold});
        return bytes_of([&] { create_eval_graph(graph, {.bn_fold = fold}).text(); });
      });
    }
}

TEST(RewriteGrowth, BatchNormsInPrimitiveOpsAreLinear) {
  for (const testing::Statistics statistics : {testing::Statistics::kStored, testing::Statistics::kSquare})
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(concat(static_cast<int>(statistics), biased ? ", with biases" : ""));
      expect_linear([&](int count) {
        Graph graph = spelled_out_chain(count, statistics, biased);
        return bytes_of([&] { create_training_graph(graph).text(); });
      });
    }
}

/// "*block#/*", 7: "*block7/*".
std::string numbered(const std::string& kind, int i) {
  const std::size_t place = kind.find('#');
  return kind.substr(0, place) + std::to_string(i) + kind.substr(place + 1);
}

/// 25 patterns for each layer, most of which match none.
RewriteOptions patterns(const std::string& kind, int layers) {
  RewriteOptions options;
  for (int i = 0; i < 25 * layers; ++i) options.layer_bits.push_back({.pattern = numbered(kind, i), .weight_bits = 4});
  return options;
}

TEST(RewriteGrowth, ListsOfLayerBitsAreLinear) {
  for (const char* kind : {"block#/Conv2D", "*block#/*"}) {
    SCOPED_TRACE(kind);
    expect_linear([&](int count) {
      Graph graph = chain(count);
      create_training_graph(graph);
      const RewriteOptions options = patterns(kind, count);
      return bytes_of([&] { create_training_graph(graph, options); });
    });
  }
}

TEST(RewriteGrowth, APatternIsComparedWithFewLayers) {
  constexpr int kLayers = 100;
  Graph graph = chain(kLayers);
  create_training_graph(graph);
  for (const char* kind : {"block#/*", "*block#/*", "*/Conv2D#*", "block*#/Conv2D", "*/expand#/*", "*#/*", "block#*",
                           "*#", "[bc]lock#/*[!x]", "\\block#/?onv*"}) {
    const RewriteOptions options = patterns(kind, kLayers);
    comparisons = 0;
    create_training_graph(graph, options);
    // Some parts of a rewrite ask for the settings of each name of a layer; few patterns have a piece of it.
    EXPECT_LT(comparisons, 200 * kLayers) << kind;
  }
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_growth_test

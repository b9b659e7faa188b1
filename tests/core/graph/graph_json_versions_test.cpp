// What the versions of graph JSON mean.

#include <gtest/gtest.h>

#include <string>

#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "layers/layers.h"

namespace miniqat::graph_json_versions_test {
namespace {

TEST(GraphJsonVersions, SilenceOnTheDecayOfABatchNormMeansWhatTheVersionMeant) {
  std::string nodes = R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 3]}})";
  for (const char* name : {"gamma", "beta", "mean", "variance"})
    nodes += concat(R"(, {"name": ")", name, R"(", "op": "Variable", "attrs": {"shape": [3]}})");
  nodes += R"(, {"name": "norm", "op": "BatchNorm", "inputs": ["x", "gamma", "beta", "mean", "variance"]ATTRS})";
  layers::register_ops();
  const auto decay_of = [&](int version, const std::string& attributes) {
    std::string own = nodes;
    own.replace(own.find("ATTRS"), 5, attributes);
    const Graph graph = graph_from_json(
        concat(R"({"format": "miniqat.graph", "version": )", version, R"(, "nodes": [)", own, "]}"), "G.json");
    const double decay = graph.find("norm")->as<layers::BatchNorm>()->decay;
    // A writer leaves nothing to silence.
    EXPECT_NE(graph_to_json(graph).find(concat("\"decay\": ", decay)), std::string::npos) << graph_to_json(graph);
    EXPECT_EQ(graph_from_json(graph_to_json(graph)).find("norm")->as<layers::BatchNorm>()->decay, decay);
    return decay;
  };
  EXPECT_EQ(decay_of(1, ""), 0.999);
  EXPECT_EQ(decay_of(2, ""), 0.99);
  EXPECT_EQ(decay_of(1, R"(, "attrs": {"epsilon": 0.1})"), 0.999);
  for (const int version : {1, 2}) EXPECT_EQ(decay_of(version, R"(, "attrs": {"decay": 0.5})"), 0.5);
  EXPECT_EQ(layers::BatchNormAttributes().decay, 0.99);
}

}  // namespace
}  // namespace miniqat::graph_json_versions_test

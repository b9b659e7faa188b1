#include "training/picture_feeds.h"

#include <algorithm>

#include "core/graph/source_ops.h"
#include "datasets/loader.h"
#include "layers/softmax.h"
#include "training/model_source.h"

namespace miniqat::training {
namespace {

bool takes_labels(const Node& node, std::int64_t n) {
  const bool fits = node.as<Placeholder>() != nullptr && node.output_specs()[0].dtype == DType::kInt32 &&
                    node.output_specs()[0].shape == Shape{n};
  return fits && std::ranges::any_of(node.uses(), [](const Use& use) {
           return use.input == 1 && use.node->as<layers::SoftmaxCrossEntropy>() != nullptr;
         });
}

}  // namespace

Feeds picture_feeds(const Graph& graph, const Feeds& fed, const datasets::Dataset& pictures, std::int64_t first,
                    const std::string& source) {
  const Output images = find_images(graph, source);
  require_pictures_fit(images, pictures.example_shape(), pictures.name, source);
  const std::int64_t n = images.shape()[0];
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < n; ++i) indices.push_back(std::max(first, std::min(first + i, pictures.size() - 1)));
  Feeds feeds;
  const auto feed = [&](const Output& output, const Tensor& value) {
    if (std::ranges::find(fed, output, &Feeds::value_type::first) == fed.end())
      feeds.emplace_back(output, value.clone());
  };
  const datasets::Dataset batch_of_them = datasets::examples_at(pictures, indices);
  datasets::for_each_batch(batch_of_them, n, [&](const datasets::EvaluationBatch& batch) {
    feed(images, batch.images);
    for (const Node* node : graph.nodes())
      if (takes_labels(*node, n)) feed(node->output(), batch.labels);
  });
  return feeds;
}

}  // namespace miniqat::training

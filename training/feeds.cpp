#include "training/feeds.h"

#include <algorithm>
#include <optional>

#include "core/graph/losses.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "datasets/loader.h"
#include "training/model_source.h"

namespace miniqat::training {
namespace {

/// What a placeholder that a loss compares with is fed of a batch; undefined for any other.
Tensor answers_for(const Node& node, const datasets::Examples& batch) {
  if (node.as<Placeholder>() == nullptr) return {};
  const auto compares = [&](TargetValues values) { return !losses_with_target(node.output(), values).empty(); };
  const bool is_of_classes = compares(TargetValues::kClasses);
  if (!is_of_classes && !compares(TargetValues::kNumbers) && !compares(TargetValues::kProbabilities)) return {};
  const Tensor& answers = is_of_classes ? batch.labels : batch.targets;
  const TensorSpec& spec = node.output_specs()[0];
  const bool fits = answers.defined() && spec.dtype == answers.dtype() && spec.shape == answers.shape();
  return fits ? answers : Tensor();
}

/// The fewest classes that a loss with these labels tells apart; 1 where there is none.
std::uint64_t classes_of(const Node& labels) {
  std::optional<std::int64_t> fewest;
  for (const Node* loss : losses_with_target(labels.output(), TargetValues::kClasses)) {
    const std::int64_t classes = prediction_of(*loss).shape().channels();
    fewest = std::min(fewest.value_or(classes), classes);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(fewest.value_or(1), 1));
}

Tensor random_feed(const Node& placeholder, std::uint64_t seed) {
  const TensorSpec& spec = placeholder.output_specs()[0];
  // The text is part of what `run --seed` promises.
  Random random(mix(mix(hash_text("cli/random_feeds"), seed), hash_text(placeholder.name())));
  Tensor tensor(spec.shape, spec.dtype);
  if (!losses_with_target(placeholder.output(), TargetValues::kProbabilities).empty()) {
    for (float& value : tensor.values<float>()) value = static_cast<float>(random.below(2));
  } else if (spec.dtype == DType::kFloat32) {
    for (float& value : tensor.values<float>()) value = random.normal();
  } else if (spec.dtype == DType::kInt32) {
    const std::uint64_t classes = classes_of(placeholder);
    for (std::int32_t& value : tensor.values<std::int32_t>()) value = static_cast<std::int32_t>(random.below(classes));
  } else {
    fail(describe(placeholder), " is ", name_of(spec.dtype), ": random numbers are float32 or int32");
  }
  return tensor;
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
  const auto feed = [&](const Output& output, const CodedTensor& value) {
    if (std::ranges::find(fed, output, &Feeds::value_type::first) == fed.end())
      feeds.emplace_back(output, value.clone());
  };
  const datasets::Dataset batch_of_them = datasets::examples_at(pictures, indices);
  datasets::for_each_batch(batch_of_them, n, [&](const datasets::EvaluationBatch& batch) {
    feed(images, batch.images);
    for (const Node* node : graph.nodes())
      if (const Tensor answers = answers_for(*node, batch); answers.defined()) feed(node->output(), answers);
  });
  return feeds;
}

Feeds random_feeds(const Graph& graph, const Feeds& fed, std::uint64_t seed) {
  Feeds feeds;
  for (const Node* node : graph.nodes())
    if (node->as<Placeholder>() != nullptr &&
        std::ranges::find(fed, node->output(), &Feeds::value_type::first) == fed.end())
      feeds.emplace_back(node->output(), random_feed(*node, seed));
  return feeds;
}

}  // namespace miniqat::training

#include "training/train/shared_state.h"

#include <string>
#include <string_view>

#include "core/graph/graph_json.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

Json description(const Safetensors& content) {
  Json tensors = Json::array();
  for (const auto& [name, tensor] : content.tensors)
    tensors.push_back({name, static_cast<int>(tensor.dtype()), tensor.shape().to_vector()});
  return tensors;
}

std::span<std::byte> bytes_of(Tensor& tensor) { return {static_cast<std::byte*>(tensor.raw()), tensor.bytes()}; }

std::string_view text_of(const Tensor& tensor, std::size_t offset, std::size_t bytes) {
  return {static_cast<const char*>(tensor.raw()) + offset, bytes};
}

std::uint64_t hash_of(const datasets::Dataset& part) {
  constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
  const std::size_t bytes = part.images.bytes() / static_cast<std::size_t>(part.size());
  const std::int64_t stride = 1 + static_cast<std::int64_t>(part.images.bytes()) / kMostBytes;
  std::uint64_t hash = hash_text(concat(part.images.shape(), " ", part.classes, " ", part.scale, " ", part.zero_point));
  // Numbers to predict have no labels, and what reconstructs may have neither.
  for (const Tensor* answers : {&part.labels, &part.targets})
    if (answers->defined()) hash = mix(hash, hash_text(text_of(*answers, 0, answers->bytes())));
  for (std::int64_t i = 0; i < part.size(); i += stride)
    hash = mix(hash, hash_text(text_of(part.images, static_cast<std::size_t>(i) * bytes, bytes)));
  return hash;
}

}  // namespace

void require_same_task(TrainingTask& task) {
  const std::string& data = task.settings.dataset;
  const auto require_same = [&](const datasets::Dataset& part, const char* name) {
    task.ranks.require_same([&] { return hash_of(part); }, concat(name, " ", part.noun(), "s of ", data));
  };
  require_same(task.data.train, "training");
  require_same(task.data.test, "test");
  if (task.data.validation) require_same(*task.data.validation, "validation");
  task.ranks.require_same([&] { return hash_text(graph_to_json(task.training.graph)); },
                          concat("networks of ", task.settings.model));
}

void share_state(Session& session, distributed::RankExchange& ranks) {
  if (ranks.is_alone()) return;
  const Safetensors own = session.checkpoint();
  const Json tensors = Json::parse(ranks.share(ranks.leads() ? description(own).dump() : ""));
  Safetensors shared;
  shared.metadata = own.metadata;
  for (const Json& one : tensors) {
    const auto name = one[0].get<std::string>();
    const Shape shape(one[2].get<std::vector<std::int64_t>>());
    Tensor tensor = ranks.leads() ? own.tensors.at(name) : Tensor(shape, static_cast<DType>(one[1].get<int>()));
    ranks.share(bytes_of(tensor));
    shared.tensors.emplace(name, tensor);
  }
  if (!ranks.leads()) session.restore(shared, Session::Restore::kExact, "the state of rank 0");
}

void StateComparison::after_step(const TrainedStep& step) {
  constexpr std::int64_t kStepsBetween = 100;
  if (step.step % kStepsBetween != 0 && !step.is_last && !step.stops) return;
  const auto hash = [this] {
    std::uint64_t all = 0;
    for (const auto& [name, tensor] : session_.checkpoint().tensors)
      all = mix(all, hash_text(text_of(tensor, 0, tensor.bytes())));
    return all;
  };
  ranks_.require_same(hash, concat("variables after step ", step.step));
}

}  // namespace miniqat::training

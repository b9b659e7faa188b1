#include "training/train/shared_state.h"

#include <string>

#include "core/concat.h"
#include "core/random.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

Json description(const Safetensors& content) {
  Json tensors = Json::array();
  for (const auto& [name, tensor] : content.tensors)
    tensors.push_back({name, static_cast<int>(tensor.dtype()), tensor.shape().to_vector()});
  return tensors;
}

std::span<std::byte> bytes_of(const Tensor& tensor) { return {static_cast<std::byte*>(tensor.raw()), tensor.bytes()}; }

}  // namespace

void share_state(Session& session, distributed::RankExchange& ranks) {
  const Safetensors own = session.checkpoint();
  const Json tensors = Json::parse(ranks.share(ranks.leads() ? description(own).dump() : ""));
  Safetensors shared;
  shared.metadata = own.metadata;
  for (const Json& one : tensors) {
    const auto name = one[0].get<std::string>();
    const Shape shape(one[2].get<std::vector<std::int64_t>>());
    const Tensor tensor = ranks.leads() ? own.tensors.at(name) : Tensor(shape, static_cast<DType>(one[1].get<int>()));
    ranks.share(bytes_of(tensor));
    shared.tensors.emplace(name, tensor);
  }
  if (!ranks.leads()) session.restore(shared, Session::Restore::kExact, "the state of rank 0");
}

void require_same_state(Session& session, distributed::RankExchange& ranks) {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : session.checkpoint().tensors)
    hash = mix(hash, hash_text({static_cast<const char*>(tensor.raw()), tensor.bytes()}));
  ranks.require_same(hash, concat("variables after step ", session.step()));
}

}  // namespace miniqat::training

#include "exporters/c/memory.h"

#include <algorithm>
#include <numeric>

#include "core/arena.h"
#include "core/error.h"

namespace miniqat::exporters {

CMemory plan_c_memory(const integer::Model& model) {
  // The tensor whose memory each has: itself, or what a Reshape looks at.
  std::vector<int> owners(model.tensors.size());
  std::iota(owners.begin(), owners.end(), 0);
  std::vector<Lifetime> lifetimes(model.tensors.size());
  for (int step = 0; step < static_cast<int>(model.operations.size()); ++step) {
    const integer::Operation& operation = model.operations[step];
    for (const int i : operation.inputs) lifetimes[owners[i]].last = step;
    if (std::holds_alternative<integer::Reshape>(operation.action) && operation.output != model.output)
      owners[operation.output] = owners[operation.inputs[0]];
    else
      lifetimes[operation.output] = {
          .bytes = static_cast<std::size_t>(model.output_of(operation).shape.elements()), .first = step, .last = step};
  }

  std::vector<int> in_arena;
  for (int i = 0; i < static_cast<int>(owners.size()); ++i)
    if (owners[i] == i && i != model.input && i != model.output) in_arena.push_back(i);
  std::vector<Lifetime> placed;
  placed.reserve(in_arena.size());
  for (const int i : in_arena) placed.push_back(lifetimes[i]);
  const ArenaLayout layout = place_in_arena(placed);

  CMemory memory{.places = std::vector<std::string>(owners.size()), .arena_bytes = layout.bytes};
  memory.places[model.output] = "output";
  memory.places[model.input] = "input";
  for (std::size_t k = 0; k < in_arena.size(); ++k) memory.places[in_arena[k]] = concat("arena + ", layout.offsets[k]);
  for (std::size_t i = 0; i < owners.size(); ++i) memory.places[i] = memory.places[owners[i]];
  return memory;
}

}  // namespace miniqat::exporters

#include "core/files/safetensors.h"

#include <cstring>

#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::safetensors_reader {

namespace {

bool same(const Safetensors& a, const Safetensors& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, tensor] : a.tensors) {
    const auto found = b.tensors.find(name);
    if (found == b.tensors.end() || found->second.spec() != tensor.spec()) return false;
    if (tensor.bytes() > 0 && std::memcmp(tensor.raw(), found->second.raw(), tensor.bytes()) != 0) return false;
  }
  return true;
}

}  // namespace

MINIQAT_READER(safetensors)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const auto file = place.write("in", fuzz::text_of(data, size));
  Safetensors content;
  if (!fuzz::accepts([&] { content = read_safetensors(file); })) return 0;
  fuzz::accepts([&] { require_finite(content.tensors, "in"); });
  const auto copy = place / "out";
  fuzz::require(fuzz::accepts([&] { write_safetensors(copy, content); }), "what was read can be written");
  Safetensors again;
  fuzz::require(fuzz::accepts([&] { again = read_safetensors(copy); }), "what was written reads");
  fuzz::require(same(content, again), "tensors are read as they were written");
  return 0;
}

}  // namespace miniqat::fuzz::safetensors_reader

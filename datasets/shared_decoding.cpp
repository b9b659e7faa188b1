#include "datasets/shared_decoding.h"

namespace miniqat::datasets {
namespace {

SharedDecoding* decoders = nullptr;

}  // namespace

void share_decoding(SharedDecoding* with) { decoders = with; }

SharedDecoding* shared_decoding() { return decoders; }

std::int64_t first_of_part(const SharedDecoding& with, int part, std::int64_t count) {
  return count * part / with.parts();
}

void put_together(SharedDecoding& with, Tensor& images) {
  const std::int64_t count = images.shape()[0];
  const std::size_t bytes = images.bytes() / static_cast<std::size_t>(count);
  for (int part = 0; part < with.parts(); ++part) {
    const std::int64_t first = first_of_part(with, part, count), end = first_of_part(with, part + 1, count);
    with.spread(part, {static_cast<std::byte*>(images.raw()) + bytes * static_cast<std::size_t>(first),
                       bytes * static_cast<std::size_t>(end - first)});
  }
}

}  // namespace miniqat::datasets

#pragma once

#include <cstdint>
#include <span>

#include "core/tensors/tensor.h"

namespace miniqat::datasets {

/// Processes that read the same folder of pictures at the same time, and decode a part of it each. All make the same
/// calls in the same order.
class SharedDecoding {
 public:
  virtual ~SharedDecoding() = default;

  /// 0 <= part() < parts().
  virtual int parts() const = 0;
  virtual int part() const = 0;
  /// Whether all processes have the same number.
  virtual bool same(std::uint64_t number) = 0;
  /// The bytes of process `part` take the place of all others'.
  virtual void spread(int part, std::span<std::byte> bytes) = 0;
};

/// With whom all loading shares its work from now on; null: with nobody. `with` must stay. Not to be changed while
/// something loads.
void share_decoding(SharedDecoding* with);

/// What share_decoding() was given last, or null.
SharedDecoding* shared_decoding();

/// The first picture of a part, of `count` pictures: parts follow one another, and `part` may be parts(), the end.
std::int64_t first_of_part(const SharedDecoding& with, int part, std::int64_t count);

/// `images` [n, ...] of which each process has decoded the pictures of its part: all get all.
void put_together(SharedDecoding& with, Tensor& images);

}  // namespace miniqat::datasets

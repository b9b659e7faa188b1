#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace miniqat::integer {

/// Layers whose windows reach over so much padding that they would need more working memory than this, bytes a thread,
/// are left to the reference loops.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 28;

/// An operation made ready to run on this CPU.
class Step {
 public:
  virtual ~Step() = default;
  /// On n examples: `inputs` in the operation's order, each [n, shape...], to `output` [n, shape...], which overlaps
  /// none of them. Uses our threads.
  virtual void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const = 0;
};

}  // namespace miniqat::integer

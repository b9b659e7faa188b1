#pragma once

#include <cstdint>
#include <span>

namespace miniqat::integer {

/// Layers whose windows reach over so much padding that they would need more working memory than this, bytes a thread,
/// are left to the plain loops.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 28;

/// An operation of a model that has passed Model::check(), made ready to run on this CPU. Steps rely on that check:
/// their constructors look for nothing to refuse, and throw only where there is no room (std::bad_alloc; Error for
/// weights that, brought to whole vectors, exceed Shape::kMaxElements). A step keeps copies of what it needs of the
/// model, except for a layer that is left to the plain loops (Layer::make_step): that one needs the model to stay.
class Step {
 public:
  virtual ~Step() = default;
  /// On n >= 1 examples: `inputs` in the operation's order, each [n, shape...] of bytes, row-major, to `output`
  /// [n, shape...], which overlaps none of them; shapes and grids are those of the operation's tensors. Uses our
  /// threads (core/threads/parallel.h). Without working memory it throws std::bad_alloc or, in one of several threads,
  /// ends the program.
  virtual void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const = 0;
};

}  // namespace miniqat::integer

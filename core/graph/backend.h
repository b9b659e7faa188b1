#pragma once

namespace miniqat {

/// How a session computes: kFast is float32 with oneDNN and vectorised loops; kReference is the naive loops of
/// layers/reference, in float32 or float64, which are the specification of every op.
enum class Backend { kFast, kReference };

}  // namespace miniqat

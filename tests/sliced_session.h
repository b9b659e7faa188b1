#pragma once

#include "core/engine/session.h"

namespace miniqat::testing {

/// Its training steps are fed so many slices, and this process computes them all; one slice: a session like any other.
class SlicedSession : public Session {
 public:
  SlicedSession(Graph& graph, int slices, int at_once = 1, const SessionOptions& options = {})
      : Session(graph, options), exchange_(slices) {
    set_shards({.exchange = exchange_, .at_once = at_once});
  }

 private:
  LoneExchange exchange_;
};

}  // namespace miniqat::testing

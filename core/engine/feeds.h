#pragma once

#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/coded.h"

namespace miniqat {

struct Plan;

/// Values for placeholders. Each must have the placeholder's shape and dtype exactly; in the place of float32 numbers
/// bytes that stand for them will do, with the same results to the bit. Of two values for one placeholder the first
/// counts.
using Feeds = std::vector<std::pair<Output, CodedTensor>>;

/// Throws Error unless each value is for a Placeholder of the graph, and as above. With `slices` > 0 it is to be so
/// many of them, one after the other along the first axis.
void require_feeds(const Graph& graph, const Feeds& feeds, int slices = 0);

/// Slice `k` of each, shared, of feeds that are several.
Feeds slice_of(const Feeds& feeds, int k);

/// The placeholders that are fed bytes in the place of numbers, for which a plan is compiled (PlanRequest::coded).
std::vector<Output> coded_placeholders(const Graph& graph, const Feeds& feeds);
/// Whether `placeholders` are coded_placeholders(), found without memory for a list.
bool are_coded(const Graph& graph, const Feeds& feeds, const std::vector<Output>& placeholders);

/// Gives a plan that was compiled for such feeds its inputs. Bytes are copied, all else is shared. Throws Error for a
/// placeholder without a value.
void bind_feeds(Plan& plan, const Feeds& feeds, DType precision);

}  // namespace miniqat

#include "layers/reshape.h"

#include <algorithm>

#include "layers/view_op.h"

namespace miniqat::layers {
namespace {

class ReshapeOp final : public ViewOp<Reshape> {
 public:
  using ViewOp::ViewOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    const Shape& from = inputs[0].shape;
    std::vector<std::int64_t> extents = attributes_.shape;
    const auto open = std::find(extents.begin(), extents.end(), -1);
    if (open == extents.end()) {
      const Shape to(extents);
      if (to.elements() != from.elements())
        fail("shape ", to, " has ", to.elements(), " elements, input ", from, " has ", from.elements());
      return {{to, inputs[0].dtype}};
    }
    if (std::find(open + 1, extents.end(), -1) != extents.end()) fail("only one extent of the new shape may be -1");
    *open = 1;
    const std::int64_t others = Shape(extents).elements();
    if (others == 0 || from.elements() % others != 0)
      fail("no extent for -1 fits: the others of the new shape make ", others, " elements, input ", from, " has ",
           from.elements());
    *open = from.elements() / others;
    return {{Shape(extents), inputs[0].dtype}};
  }
};

}  // namespace

void ReshapeAttributes::visit(AttributeVisitor& visitor) { visitor.field("shape", shape); }

std::shared_ptr<Op> Reshape::make(const Attributes& attributes) { return std::make_shared<ReshapeOp>(attributes); }

Output reshape(Graph& graph, const std::string& name, Output x, const ReshapeAttributes& attributes) {
  return graph.add(name, Reshape::make(attributes), {x}).output();
}

}  // namespace miniqat::layers

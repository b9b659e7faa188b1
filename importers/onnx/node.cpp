#include "importers/onnx/node.h"

#include "core/text/quote.h"

namespace miniqat::importers {

const std::string& OnnxNode::input(int i) const {
  static const std::string none;
  return i < inputs() ? node_->input(i) : none;
}

std::string OnnxNode::who() const { return concat("[", printable(shortened(type())), " ", quote(name()), "]"); }

const pb::Attribute* OnnxNode::find(const std::string& name) const {
  known_.insert(name);
  for (const pb::Attribute& attribute : node_->attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

const pb::Attribute* OnnxNode::typed(const std::string& name, pb::Attribute::Type type) const {
  const pb::Attribute* attribute = find(name);
  if (attribute != nullptr && attribute->type() != type)
    refuse("has the attribute ", name, " of another type than ONNX gives it");
  return attribute;
}

std::int64_t OnnxNode::integer(const std::string& name, std::int64_t otherwise) const {
  const pb::Attribute* attribute = typed(name, pb::Attribute::INT);
  return attribute == nullptr ? otherwise : attribute->i();
}

double OnnxNode::number(const std::string& name, double otherwise) const {
  const pb::Attribute* attribute = typed(name, pb::Attribute::FLOAT);
  return attribute == nullptr ? otherwise : static_cast<double>(attribute->f());
}

std::string OnnxNode::text(const std::string& name, const std::string& otherwise) const {
  const pb::Attribute* attribute = typed(name, pb::Attribute::STRING);
  return attribute == nullptr ? otherwise : attribute->s();
}

std::vector<float> OnnxNode::numbers(const std::string& name) const {
  const pb::Attribute* attribute = typed(name, pb::Attribute::FLOATS);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::int64_t> OnnxNode::integers(const std::string& name, std::vector<std::int64_t> otherwise) const {
  const pb::Attribute* attribute = typed(name, pb::Attribute::INTS);
  if (attribute == nullptr) return otherwise;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<std::int64_t> OnnxNode::integers(const std::string& name, std::size_t count,
                                             std::vector<std::int64_t> otherwise) const {
  std::vector<std::int64_t> list = integers(name, std::move(otherwise));
  if (list.size() != count)
    refuse("has ", counted(list.size(), "number"), " as ", name, ", needs ", count, " for its input");
  return list;
}

const pb::Constant* OnnxNode::constant(const std::string& name) const {
  const pb::Attribute* attribute = typed(name, pb::Attribute::TENSOR);
  return attribute == nullptr ? nullptr : &attribute->t();
}

void OnnxNode::require_all_known() const {
  for (const pb::Attribute& attribute : node_->attribute())
    if (!known_.contains(attribute.name()))
      refuse("has the attribute ", quote(attribute.name()), ", which miniqat does not know of this op");
}

}  // namespace miniqat::importers

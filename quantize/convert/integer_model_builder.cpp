#include "quantize/convert/integer_model_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat::quantize {
namespace {

/// What no name of the graph holds.
constexpr const char* kAhead = ":ahead";
constexpr const char* kAsImage = ":image";
constexpr const char* kBack = ":back";
constexpr const char* kFiner = ":finer";
constexpr const char* kNegated = ":negated";
constexpr const char* kUnits = ":units";
constexpr const char* kBias = ":bias";

std::string unique(std::set<std::string>& taken, const std::string& name) {
  std::string candidate = name;
  for (int i = 1; !taken.insert(candidate).second; ++i) candidate = concat(name, ":again", i);
  return candidate;
}

integer::Multiplier multiplier(double real) { return integer::multiplier_for(multiplier_in_range(real)); }

void mark_ahead(std::string& name) {
  if (!name.ends_with(kAhead)) name += kAhead;
}

}  // namespace

void Pending::absorb(const std::string& name) {
  if (rearrangements.empty()) {
    tensor = name;
    return;
  }
  mark_ahead(tensor);
  for (Rearrangement& rearrangement : rearrangements) mark_ahead(rearrangement.tensor);
}

int IntegerModelBuilder::add_input(const std::string& name, const Shape& shape, const integer::Grid& grid) {
  model_.tensors.push_back({.name = unique(tensor_names_, name), .shape = shape, .grid = grid});
  zero_.push_back(false);
  model_.input = static_cast<int>(model_.tensors.size()) - 1;
  return model_.input;
}

/// Whether all that comes out is 0, but for a clamp, because of what goes in. (A layer adds its bias; a function may be
/// anything at 0.)
bool IntegerModelBuilder::gives_zero(const integer::Action& action, const std::vector<int>& inputs) const {
  if (std::holds_alternative<integer::Layer>(action) || std::holds_alternative<integer::Lookup>(action)) return false;
  const auto is_zero = [&](int input) { return zero_[input]; };
  return std::holds_alternative<integer::Mul>(action) ? std::ranges::any_of(inputs, is_zero)
                                                      : std::ranges::all_of(inputs, is_zero);
}

int IntegerModelBuilder::append(const std::string& operation, integer::Action action, std::vector<int> inputs,
                                integer::TensorInfo output, const integer::Clamp& clamp) {
  const std::int32_t zero_point = output.grid.zero_point;
  const bool clamps_zero = clamp.min > zero_point || clamp.max < zero_point;
  zero_.push_back((gives_zero(action, inputs) && !clamps_zero) || clamp == integer::Clamp{zero_point, zero_point});
  output.name = unique(tensor_names_, output.name);
  model_.tensors.push_back(std::move(output));
  const int made = static_cast<int>(model_.tensors.size()) - 1;
  model_.operations.push_back({.name = unique(operation_names_, operation),
                               .action = std::move(action),
                               .inputs = std::move(inputs),
                               .output = made,
                               .clamp = clamp});
  return made;
}

int IntegerModelBuilder::add(const Pending& pending, const Target& target, const std::string& name) {
  if (!pending.scale_shift.empty()) return add_scale_shift(pending, target, name);
  if (pending.is_layer()) return add_layer(pending, target, name);
  integer::Action action = pending.action;
  const Target within = narrowed(target, pending.range);
  set_scales(action, pending, within);
  return append(pending, std::move(action), within, name);
}

int IntegerModelBuilder::append(const Pending& pending, integer::Action action, const Target& within,
                                const std::string& name) {
  const bool last = pending.rearrangements.empty();
  const int input = pending.inputs.front();
  // A clamp beyond the ends of the grid that is there.
  const bool changes_nothing =
      std::holds_alternative<integer::Rescale>(action) && tensor(input).grid == within.grid && within.is_whole();
  int made =
      changes_nothing
          ? input
          : append(pending.operation, std::move(action), pending.inputs,
                   {.name = last ? name : pending.tensor, .shape = pending.shape, .grid = within.grid}, within.clamp);
  for (std::size_t i = 0; i < pending.rearrangements.size(); ++i) {
    Rearrangement rearrangement = pending.rearrangements[i];
    if (i + 1 == pending.rearrangements.size()) rearrangement.tensor = name;
    made = add(rearrangement, made);
  }
  return made;
}

int IntegerModelBuilder::add_layer(Pending pending, const Target& target, const std::string& name) {
  auto layer = std::get<integer::Layer>(pending.action);
  int& input = pending.inputs.front();
  const BiasHelp help = finish_layer(layer, pending.bias, tensor(input).grid, target.grid, zero_[input]);
  if (help.input_shift > 0) input = finer(input, help.input_shift);
  if (help.scale_shift.empty()) return append(pending, std::move(layer), narrowed(target, pending.range), name);
  const integer::Grid units = units_grid(target.grid);
  Pending rest = pending;
  rest.operation += kBias;
  rest.scale_shift = help.scale_shift;
  rest.inputs = {append(pending.operation, std::move(layer), pending.inputs,
                        {.name = pending.tensor + kUnits, .shape = pending.shape, .grid = units}, whole(units).clamp)};
  return add_scale_shift(rest, target, name);
}

/// A tensor's numbers in 8 bits, each of its steps 2^shift.
int IntegerModelBuilder::finer(int input, int shift) {
  const auto [found, is_new] = finer_.try_emplace(input, 0);
  if (!is_new) return found->second;
  const integer::TensorInfo& from = tensor(input);
  integer::TensorInfo to = {
      .name = from.name + kFiner,
      .shape = from.shape,
      .grid = {.scale = std::ldexp(from.grid.scale, -shift), .zero_point = from.grid.zero_point << shift}};
  found->second = append(to.name, integer::Rescale{.multiplier = multiplier(std::ldexp(1.0, shift))}, {input}, to,
                         whole(to.grid).clamp);
  return found->second;
}

int IntegerModelBuilder::negated(int input) {
  const auto [found, is_new] = negated_.try_emplace(input, 0);
  if (!is_new) return found->second;
  const integer::TensorInfo& from = tensor(input);
  const std::int32_t last = from.grid.quant_max();
  integer::TensorInfo to = {
      .name = from.name + kNegated,
      .shape = from.shape,
      .grid = {.scale = from.grid.scale, .zero_point = last - from.grid.zero_point, .bits = from.grid.bits}};
  integer::Lookup mirror = {.function = "Line"};
  for (std::int32_t q = 0; q <= last; ++q) mirror.table.push_back(static_cast<std::uint8_t>(last - q));
  found->second = append(to.name, std::move(mirror), {input}, to, whole(to.grid).clamp);
  zero_[found->second] = zero_[input];
  return found->second;
}

int IntegerModelBuilder::add_scale_shift(Pending pending, const Target& target, const std::string& name) {
  const ScaleShift scale_shift = std::exchange(pending.scale_shift, {});
  const int input = pending.inputs.front();
  if (!scale_shift.by_channel()) {
    pending.action = integer::Lookup{.function = "Line"};
    pending.values = scale_shift_values(scale_shift, tensor(input).grid);
    return add(pending, target, name);
  }
  if (pending.shape.rank() != 3) {
    const Shape image = {pending.shape.elements() / pending.shape.channels(), 1, pending.shape.channels()};
    pending.inputs = {add({.operation = pending.operation + kAsImage,
                           .tensor = tensor(input).name + kAsImage,
                           .action = integer::Reshape{},
                           .shape = image},
                          input)};
    pending.rearrangements.insert(pending.rearrangements.begin(), {.operation = pending.operation + kBack,
                                                                   .tensor = pending.tensor,
                                                                   .action = integer::Reshape{},
                                                                   .shape = pending.shape});
    pending.tensor += kAsImage;
    pending.shape = image;
  }
  pending.bias = scale_shift.offsets;
  try {
    pending.action = scale_shift_layer(scale_shift, pending.shape);
  } catch (const Error& error) {
    fail(quote(pending.operation), ": ", error.what());
  }
  return add(pending, target, name);
}

int IntegerModelBuilder::add(const Rearrangement& rearrangement, int input) {
  const integer::Grid grid = tensor(input).grid;
  return append(rearrangement.operation, rearrangement.action, {input},
                {.name = rearrangement.tensor, .shape = rearrangement.shape, .grid = grid}, whole(grid).clamp);
}

void IntegerModelBuilder::set_scales(integer::Action& action, const Pending& pending, const Target& target) const {
  const int input = pending.inputs.front();
  const float output_scale = target.grid.scale;
  if (auto* sum = std::get_if<integer::Add>(&action)) {
    // They share a shift: a ratio that means nothing would cost the other its precision.
    sum->multipliers = integer::shared_multipliers_for(std::array{
        multiplier_in_range(ratio(input, output_scale)), multiplier_in_range(ratio(pending.inputs[1], output_scale))});
  } else if (auto* product = std::get_if<integer::Mul>(&action)) {
    const bool zero = zero_[input] || zero_[pending.inputs[1]];
    product->multiplier = multiplier(zero ? 0 : scale_ratio(scale(input), scale(pending.inputs[1]), output_scale));
  } else if (auto* rescale = std::get_if<integer::Rescale>(&action)) {
    rescale->multiplier = multiplier(ratio(input, output_scale));
  } else if (auto* joined = std::get_if<integer::Concat>(&action)) {
    for (const int each : pending.inputs) joined->multipliers.push_back(multiplier(ratio(each, output_scale)));
  } else if (auto* pool = std::get_if<integer::AveragePool>(&action)) {
    const std::int64_t most = pool->window.rows.window * pool->window.columns.window;
    for (std::int64_t count = 1; count <= most; ++count)
      pool->multipliers.push_back(multiplier(double{ratio(input, output_scale)} / static_cast<double>(count)));
  } else if (auto* lookup = std::get_if<integer::Lookup>(&action)) {
    lookup->table = lookup_table(pending.values, target);
  }
}

integer::Model IntegerModelBuilder::finish(int output) {
  model_.output = output;
  model_.check();
  return std::move(model_);
}

}  // namespace miniqat::quantize

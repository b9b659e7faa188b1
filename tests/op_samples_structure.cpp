#include "tests/op_samples.h"

namespace miniqat::testing {
namespace {

TensorSpec integers(const Shape& shape) { return {shape, DType::kInt32}; }

void add_reshape_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& shape) {
    samples.push_back(
        {.type = "Reshape", .label = label, .attributes = R"({"shape": )" + shape + "}", .inputs = {floats(x)}});
  };
  add("flatten", {2, 3, 5}, "[2, -1]");
  add("all open", {2, 3, 5}, "[-1]");
  add("no open extent", {4, 6}, "[2, 3, 4]");
  add("to scalar", {1, 1}, "[]");
  add("from scalar", {}, "[1, -1, 1]");
  add("large", {129, 2, 130}, "[-1, 129]");
  samples.push_back({.type = "Reshape",
                     .label = "integers",
                     .attributes = R"({"shape": [2, 3]})",
                     .inputs = {integers({6})},
                     .low = -9,
                     .high = 9});
}

void add_concat_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, std::vector<TensorSpec> inputs, const std::string& attributes) {
    samples.push_back({.type = "Concat", .label = label, .attributes = attributes, .inputs = std::move(inputs)});
  };
  add("last axis by default", {floats({2, 3, 4}), floats({2, 3, 1}), floats({2, 3, 2})}, "{}");
  add("first axis", {floats({1, 3}), floats({4, 3})}, R"({"axis": 0})");
  add("middle axis", {floats({2, 3, 4}), floats({2, 1, 4})}, R"({"axis": 1})");
  add("negative axis", {floats({2, 3, 4}), floats({2, 2, 4})}, R"({"axis": -2})");
  add("one input", {floats({3, 2})}, R"({"axis": 1})");
  add("an empty input", {floats({2, 3}), floats({2, 0})}, R"({"axis": 1})");
  add("large", {floats({400, 33}), floats({400, 64})}, R"({"axis": 1})");
}

void add_pad_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& paddings) {
    samples.push_back(
        {.type = "Pad", .label = label, .attributes = R"({"paddings": )" + paddings + "}", .inputs = {floats(x)}});
  };
  add("image", {2, 3, 5, 4}, "[[0, 0], [1, 2], [3, 0], [0, 0]]");
  add("channels", {2, 3}, "[[0, 1], [2, 1]]");
  add("vector", {1}, "[[2, 3]]");
  add("nothing", {3, 2}, "[[0, 0], [0, 0]]");
  add("scalar", {}, "[]");
  add("large", {31, 9, 9, 17}, "[[1, 0], [1, 1], [0, 2], [0, 0]]");
}

void add_slice_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& attributes) {
    samples.push_back({.type = "Slice", .label = label, .attributes = attributes, .inputs = {floats(x)}});
  };
  add("channels", {2, 3, 5, 4}, R"({"axes": [3], "starts": [1], "ends": [3]})");
  add("last channels", {2, 3, 5, 4}, R"({"axes": [-1], "starts": [2], "ends": [4]})");
  add("rows", {2, 7, 3, 2}, R"({"axes": [1], "starts": [2], "ends": [6]})");
  add("image and channels", {2, 4, 5, 6}, R"({"axes": [3, 1, 2], "starts": [1, 0, 3], "ends": [5, 3, 5]})");
  add("steps", {2, 7, 5, 6}, R"({"axes": [1, 3], "starts": [1, 0], "ends": [6, 6], "steps": [2, 4]})");
  add("a step beyond the end", {5, 3}, R"({"axes": [0], "starts": [1], "ends": [5], "steps": [9]})");
  add("batch", {5, 3}, R"({"axes": [0], "starts": [3], "ends": [5]})");
  add("all", {3, 2}, R"({"axes": [1], "starts": [0], "ends": [2]})");
  add("nothing", {3, 2}, "{}");
  add("scalar", {}, "{}");
  add("large", {63, 9, 9, 17}, R"({"axes": [3], "starts": [8], "ends": [15]})");
  add("large, steps", {31, 19, 9, 17}, R"({"axes": [1, 3], "starts": [1, 0], "ends": [18, 17], "steps": [2, 3]})");
}

void add_space_to_batch_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& attributes) {
    samples.push_back({.type = "SpaceToBatchND", .label = label, .attributes = attributes, .inputs = {floats(x)}});
  };
  add("no paddings", {2, 4, 6, 3}, R"({"block_shape": [2, 3]})");
  add("paddings", {2, 3, 5, 4}, R"({"block_shape": [2, 4], "paddings": [[1, 2], [3, 0]]})");
  add("a block of padding only", {1, 1, 2, 2}, R"({"block_shape": [2, 1], "paddings": [[3, 4], [0, 0]]})");
  add("blocks of one", {2, 3, 2, 2}, R"({"block_shape": [1, 1], "paddings": [[0, 0], [1, 0]]})");
  add("sequence", {3, 5, 4}, R"({"block_shape": [3], "paddings": [[0, 1]]})");
  add("nothing behind the spatial axes", {2, 4, 3}, R"({"block_shape": [2, 3]})");
  add("volume", {1, 2, 3, 4, 2}, R"({"block_shape": [2, 3, 2], "paddings": [[0, 0], [1, 2], [0, 0]]})");
  add("large", {3, 33, 31, 17}, R"({"block_shape": [2, 4], "paddings": [[2, 3], [0, 1]]})");
}

void add_batch_to_space_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& attributes) {
    samples.push_back({.type = "BatchToSpaceND", .label = label, .attributes = attributes, .inputs = {floats(x)}});
  };
  add("no crops", {12, 2, 3, 3}, R"({"block_shape": [2, 3]})");
  add("crops", {16, 3, 2, 4}, R"({"block_shape": [2, 4], "crops": [[1, 2], [3, 0]]})");
  add("crops beyond a block", {4, 4, 4, 2}, R"({"block_shape": [2, 2], "crops": [[3, 2], [0, 5]]})");
  add("blocks of one", {2, 3, 2, 2}, R"({"block_shape": [1, 1], "crops": [[0, 0], [1, 0]]})");
  add("sequence", {6, 5, 4}, R"({"block_shape": [3], "crops": [[0, 1]]})");
  add("nothing behind the spatial axes", {6, 2, 3}, R"({"block_shape": [2, 3]})");
  add("volume", {12, 2, 3, 4, 2}, R"({"block_shape": [2, 3, 2], "crops": [[0, 0], [1, 2], [0, 0]]})");
  add("large", {24, 17, 9, 17}, R"({"block_shape": [2, 4], "crops": [[2, 3], [0, 1]]})");
}

void add_mean_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& attributes) {
    // Not around 0, where the mean of all would cancel to nothing.
    samples.push_back(
        {.type = "Mean", .label = label, .attributes = attributes, .inputs = {floats(x)}, .low = -1, .high = 2});
  };
  add("all axes", {3, 5}, "{}");
  add("all axes kept", {3, 5}, R"({"keep_dims": true})");
  add("scalar", {}, "{}");
  add("height and width", {2, 3, 4, 5}, R"({"axes": [1, 2]})");
  add("height and width kept", {2, 3, 4, 5}, R"({"axes": [1, 2], "keep_dims": true})");
  add("all but the last", {2, 3, 4, 5}, R"({"axes": [0, 1, 2]})");
  add("last, negative", {4, 7}, R"({"axes": [-1]})");
  add("apart", {2, 3, 4, 5}, R"({"axes": [-1, 1]})");
  add("axes of extent 1", {1, 6, 1}, R"({"axes": [0, 2]})");
  add("large, all axes", {131, 129}, "{}");
  add("large, height and width", {17, 7, 7, 32}, R"({"axes": [1, 2]})");
  add("large, last", {257, 65}, R"({"axes": [1]})");
}

void add_loss_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, std::int64_t rows, std::int64_t classes, double magnitude,
                       const std::string& attributes = "{}") {
    std::vector<double> labels(rows);
    for (std::int64_t r = 0; r < rows; ++r) labels[r] = static_cast<double>((r * 7 + 1) % classes);
    samples.push_back({.type = "SoftmaxCrossEntropy",
                       .label = label,
                       .attributes = attributes,
                       .inputs = {floats({rows, classes}), integers({rows})},
                       .low = -magnitude,
                       .high = magnitude,
                       .values = {{}, labels}});
  };
  add("ten classes", 5, 10, 3);
  add("one row", 1, 4, 3);
  add("one class", 3, 1, 3);
  add("two classes", 7, 2, 8);
  add("large", 601, 31, 3);
  add("smoothed", 5, 10, 3, R"({"label_smoothing": 0.1})");
  add("smoothed, one class", 3, 1, 3, R"({"label_smoothing": 0.5})");
  add("smoothed, large", 601, 31, 3, R"({"label_smoothing": 0.9})");
  add("weighted", 7, 4, 3, R"({"class_weights": [0.5, 0, 3, 1]})");
  add("weighted and smoothed", 9, 3, 3, R"({"label_smoothing": 0.2, "class_weights": [2, 0.25, 1]})");
}

void add_source_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& type, const std::string& label, const std::string& attributes) {
    samples.push_back({.type = type, .label = label, .attributes = attributes, .inputs = {}, .low = -5, .high = 5});
  };
  add("Placeholder", "floats", R"({"shape": [2, 3]})");
  add("Placeholder", "scalar", R"({"shape": []})");
  add("Placeholder", "integers", R"({"shape": [4], "dtype": "int32"})");
  add("Variable", "defaults", R"({"shape": [3, 3, 2, 4]})");
  add("Variable", "initializer",
      R"({"shape": [7], "trainable": false, "initializer": {"type": "truncated_normal", "stddev": 0.5}})");
  add("Constant", "one number", R"({"shape": [2, 3], "value": 0.1})");
  add("Constant", "list", R"({"shape": [2, 2], "value": [1, -2.5, 3e-9, 0.1]})");
}

void add_bad_space_to_batch_samples(std::vector<BadOpSample>& samples) {
  const auto add = [&](const std::string& type, const std::string& label, const Shape& x, const std::string& attributes,
                       const std::string& message) {
    samples.push_back({type, label, attributes, {floats(x)}, message});
  };
  for (const std::string type : {"SpaceToBatchND", "BatchToSpaceND"}) {
    const std::string around = type == "SpaceToBatchND" ? "paddings" : "crops";
    const auto attributes = [&](const std::string& pairs) {
      return R"({"block_shape": [2, 2], ")" + around + "\": " + pairs + "}";
    };
    add(type, "no block_shape", {4, 4, 4, 1}, "{}", "needs an entry for each spatial axis");
    add(type, "too many blocks", {4, 4}, R"({"block_shape": [2, 2]})", "has 2; x [4,4]");
    add(type, "scalar", {}, R"({"block_shape": [2]})", "has 1; x []");
    add(type, "block of 0", {4, 4, 4, 1}, R"({"block_shape": [2, 0]})", "block_shape entry 0");
    add(type, "negative block", {4, 4, 4, 1}, R"({"block_shape": [-2, 2]})", "block_shape entry -2");
    add(type, "absurd block", {4, 4, 4, 1}, R"({"block_shape": [2, 9000000000000000000]})", "9000000000000000000");
    add(type, "too few pairs", {4, 4, 4, 1}, attributes("[[0, 0]]"), around + " needs one [before, after]");
    add(type, "negative pair", {4, 4, 4, 1}, attributes("[[0, 0], [2, -2]]"), around + " of axis 2 hold -2");
    add(type, "absurd pair", {4, 4, 4, 1}, attributes("[[9000000000000000000, 0], [0, 0]]"), "9000000000000000000");
    samples.push_back({type, "integers", R"({"block_shape": [2]})", {integers({4, 4, 1})}, "must be float32"});
  }
  add("SpaceToBatchND", "does not divide", {1, 4, 5, 1}, R"({"block_shape": [2, 2], "paddings": [[1, 1], [2, 2]]})",
      "block_shape entry 2 does not divide axis 2, padded to 9; x [1,4,5,1]");
  add("SpaceToBatchND", "absurd batch", {2, 0, 0, 0, 3}, R"({"block_shape": [2000000000, 2000000000, 2000000000]})",
      "make a batch of more than");
  add("BatchToSpaceND", "batch does not divide", {6, 2, 2, 1}, R"({"block_shape": [2, 2]})",
      "do not divide the batch 6; x [6,2,2,1]");
  add("BatchToSpaceND", "crops too large", {4, 2, 2, 1}, R"({"block_shape": [2, 2], "crops": [[0, 4], [3, 2]]})",
      "crops 3 and 2 exceed axis 2 of the result, 4; x [4,2,2,1]");
}

void add_bad_source_samples(std::vector<BadOpSample>& samples) {
  samples.push_back({"Placeholder", "absurd size", R"({"shape": [1000000, 1000000]})", {}, "elements"});
  samples.push_back({"Placeholder", "negative extent", R"({"shape": [-1, 2]})", {}, "-1"});
  samples.push_back({"Placeholder", "unknown dtype", R"({"shape": [2], "dtype": "float7"})", {}, "float7"});
  samples.push_back({"Placeholder", "dtype that cannot be fed", R"({"shape": [2], "dtype": "int8"})", {}, "int8"});
  samples.push_back({"Placeholder", "an input", R"({"shape": [2]})", {floats({2})}, "takes 0 inputs, 1 is given"});
  samples.push_back({"Variable", "absurd size", R"({"shape": [1000000, 1000000]})", {}, "elements"});
  samples.push_back({"Variable",
                     "negative stddev",
                     R"({"shape": [2], "initializer": {"type": "truncated_normal", "stddev": -1}})",
                     {},
                     "stddev"});
  samples.push_back(
      {"Variable", "unknown initializer", R"({"shape": [2], "initializer": {"type": "guess"}})", {}, "guess"});
  samples.push_back({"Constant", "wrong count", R"({"shape": [2, 2], "value": [1, 2, 3]})", {}, "got 3"});
  samples.push_back({"Constant", "rank 9", R"({"shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]})", {}, "rank"});
}

/// Losses whose targets are float32; those of SigmoidCrossEntropy lie between 0 and 1, both included.
void add_float_loss_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& type, const std::string& label, const Shape& shape, double magnitude,
                       const std::string& attributes = "{}") {
    std::vector<double> targets(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<double>(i * 7 % 5) / 4;
    samples.push_back({.type = type,
                       .label = label,
                       .attributes = attributes,
                       .inputs = {floats(shape), floats(shape)},
                       .low = -magnitude,
                       .high = magnitude,
                       .values = {{}, targets}});
  };
  for (const std::string type : {"MeanSquaredError", "Huber", "SigmoidCrossEntropy"}) {
    add(type, "rows", {5, 3}, 4);
    add(type, "one number", {1, 1}, 4);
    add(type, "one column", {7, 1}, 8);
    // More than a block of the sum, and enough for two threads.
    add(type, "large", {601, 67}, 3);
    add(type, "a block and one", {683, 3}, 3);
  }
  for (const std::string type : {"MeanSquaredError", "Huber"}) {
    add(type, "vector", {9}, 2);
    add(type, "images", {2, 3, 4, 5}, 2);
  }
  add("Huber", "narrow", {5, 3}, 4, R"({"delta": 0.25})");
  add("Huber", "wide", {5, 3}, 4, R"({"delta": 100})");
}

void add_bad_float_loss_samples(std::vector<BadOpSample>& samples) {
  for (const std::string type : {"MeanSquaredError", "Huber", "SigmoidCrossEntropy"}) {
    const bool of_logits = type == "SigmoidCrossEntropy";
    const std::string prediction = of_logits ? "logits" : "prediction", target = of_logits ? "targets" : "target";
    const auto add = [&](const std::string& label, std::vector<TensorSpec> inputs, const std::string& message) {
      samples.push_back({type, label, "{}", std::move(inputs), message});
    };
    add("shapes differ", {floats({4, 3}), floats({4, 2})}, prediction + " [4,3], " + target + " [4,2]");
    add("a column for a vector", {floats({4, 1}), floats({4})}, prediction + " [4,1], " + target + " [4]");
    add("integer targets", {floats({4, 3}), integers({4, 3})}, target + " must be float32, is int32");
    add("integer predictions", {integers({4, 3}), floats({4, 3})}, prediction + " must be float32, is int32");
    add("no rows", {floats({0, 3}), floats({0, 3})}, "input 0 is empty");
    add("one input", {floats({4, 3})}, "takes 2 inputs, 1 is given");
    add("scalar", {floats({}), floats({})}, of_logits ? "logits must have rank 2" : "prediction needs an axis");
  }
  samples.push_back({"SigmoidCrossEntropy", "vector", "{}", {floats({4}), floats({4})}, "logits must have rank 2"});
  for (const std::string delta : {"0", "-1", "1e60"})
    samples.push_back({"Huber",
                       "delta " + delta,
                       R"({"delta": )" + delta + "}",
                       {floats({4, 3}), floats({4, 3})},
                       "delta must be above 0 and finite, got"});
}

}  // namespace

std::vector<OpSample> structure_samples() {
  std::vector<OpSample> samples;
  add_reshape_samples(samples);
  add_concat_samples(samples);
  add_pad_samples(samples);
  add_slice_samples(samples);
  add_space_to_batch_samples(samples);
  add_batch_to_space_samples(samples);
  add_mean_samples(samples);
  add_loss_samples(samples);
  add_float_loss_samples(samples);
  add_source_samples(samples);
  return samples;
}

std::vector<BadOpSample> bad_structure_samples() {
  std::vector<BadOpSample> samples;
  const auto add = [&](const std::string& type, const std::string& label, std::vector<TensorSpec> inputs,
                       const std::string& attributes, const std::string& message) {
    samples.push_back({type, label, attributes, std::move(inputs), message});
  };
  add("Reshape", "other count", {floats({2, 3})}, R"({"shape": [4]})", "shape [4] has 4 elements, input [2,3] has 6");
  add("Reshape", "no open extent fits", {floats({2, 3})}, R"({"shape": [4, -1]})", "input [2,3] has 6");
  add("Reshape", "two open extents", {floats({2, 3})}, R"({"shape": [-1, -1]})", "only one extent");
  add("Reshape", "open beside 0", {floats({0, 3})}, R"({"shape": [0, -1]})", "no extent for -1 fits");
  add("Reshape", "extent -2", {floats({2, 3})}, R"({"shape": [-2, 3]})", "negative extent -2");
  add("Reshape", "absurd", {floats({2, 3})}, R"({"shape": [9000000000000000000, 9, -1]})", "elements");
  add("Concat", "no inputs", {}, "{}", "takes at least one input");
  add("Concat", "ranks differ", {floats({2, 3}), floats({2})}, "{}", "input 0 [2,3], input 1 [2]");
  add("Concat", "extents differ", {floats({2, 3}), floats({4, 3})}, R"({"axis": 1})", "input 0 [2,3], input 1 [4,3]");
  add("Concat", "no such axis", {floats({2, 3})}, R"({"axis": 2})", "axis 2 does not exist in input 0 [2,3]");
  add("Concat", "no such negative axis", {floats({2, 3})}, R"({"axis": -3})", "axis -3 does not exist");
  add("Concat", "scalars", {floats({}), floats({})}, "{}", "axis -1 does not exist in input 0 []");
  add("Concat", "integers", {floats({2}), integers({2})}, "{}", "input 1 must be float32");
  add("Pad", "too few paddings", {floats({2, 3})}, R"({"paddings": [[1, 1]]})", "each of the 2 axes, has 1; x [2,3]");
  add("Pad", "negative", {floats({2})}, R"({"paddings": [[1, -1]]})", "padding -1 of axis 0");
  add("Pad", "absurd", {floats({2})}, R"({"paddings": [[9000000000000000000, 1]]})", "padding 9000000000000000000");
  add("Pad", "absurd in sum", {floats({2})}, R"({"paddings": [[2000000000, 2000000000]]})", "elements");
  add("Pad", "integers", {integers({2})}, R"({"paddings": [[0, 1]]})", "must be float32");
  add("Slice", "fewer starts", {floats({2, 3})}, R"({"axes": [1], "ends": [2]})", "1 axis, 0 starts, 1 end");
  add("Slice", "no such axis", {floats({2, 3})}, R"({"axes": [2], "starts": [0], "ends": [1]})",
      "axis 2 does not exist");
  add("Slice", "axis twice", {floats({2, 3})}, R"({"axes": [1, -1], "starts": [0, 0], "ends": [1, 1]})",
      "axis 1 twice");
  add("Slice", "nothing left", {floats({2, 3})}, R"({"axes": [1], "starts": [1], "ends": [1]})", "1 to 1 of axis 1");
  add("Slice", "beyond", {floats({2, 3})}, R"({"axes": [1], "starts": [1], "ends": [4]})", "1 to 4 of axis 1; x [2,3]");
  add("Slice", "before", {floats({2, 3})}, R"({"axes": [1], "starts": [-1], "ends": [3]})", "-1 to 3 of axis 1");
  add("Slice", "step", {floats({2, 3})}, R"({"axes": [1], "starts": [0], "ends": [3], "steps": [0]})", "a step of 0");
  add("Slice", "integers", {integers({2})}, R"({"axes": [0], "starts": [0], "ends": [1]})", "must be float32");
  add("Mean", "no such axis", {floats({2, 3})}, R"({"axes": [2]})", "axis 2 does not exist in x [2,3]");
  add("Mean", "axis twice", {floats({2, 3})}, R"({"axes": [1, -1]})", "axis -1 is named twice");
  add("Mean", "no elements", {floats({0, 3})}, "{}", "the mean of no elements is undefined; x [0,3]");
  add("Mean", "integers", {integers({2})}, "{}", "must be float32");
  const std::string loss = "SoftmaxCrossEntropy";
  add(loss, "rows differ", {floats({4, 3}), integers({5})}, "{}",
      "logits have 4 rows, labels 5; logits [4,3], labels [5]");
  add(loss, "float labels", {floats({4, 3}), floats({4})}, "{}", "labels must be int32, are float32");
  add(loss, "integer logits", {integers({4, 3}), integers({4})}, "{}", "logits must be float32");
  add(loss, "rank 1 logits", {floats({4}), integers({4})}, "{}", "logits must have rank 2");
  add(loss, "one-hot labels", {floats({4, 3}), integers({4, 3})}, "{}", "labels must have rank 1");
  add(loss, "smoothed away", {floats({4, 3}), integers({4})}, R"({"label_smoothing": 1})",
      "label_smoothing must be in [0, 1), got 1");
  add(loss, "a weight too few", {floats({4, 3}), integers({4})}, R"({"class_weights": [1, 2]})",
      "class_weights has 2 numbers for 3 classes");
  add(loss, "negative weight", {floats({4, 3}), integers({4})}, R"({"class_weights": [1, 2, -3]})",
      "class_weights must be finite and not negative, got -3");
  add(loss, "no weight", {floats({4, 2}), integers({4})}, R"({"class_weights": [0, 0]})", "class_weights are all 0");
  add(loss, "negative smoothing", {floats({4, 3}), integers({4})}, R"({"label_smoothing": -0.1})",
      "label_smoothing must be in [0, 1), got -0.1");
  add(loss, "no rows", {floats({0, 3}), integers({0})}, "{}", "at least one row");
  add_bad_float_loss_samples(samples);
  add_bad_space_to_batch_samples(samples);
  add_bad_source_samples(samples);
  return samples;
}

}  // namespace miniqat::testing

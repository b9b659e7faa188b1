#pragma once

#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/arrays/npy.h"
#include "datasets/number_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// Numbers out of [n, features], [n, steps, channels] or [n, h, w, c] integers, bools or floats, as float32. Throws
/// Error in one line that names `source`: another shape, a number that is none (with its place) or does not fit into
/// float32. Puts a note behind `notes` where the rounding to float32 loses much of a feature's or channel's range.
Tensor numbers_of(const NumpyArray& array, const std::string& source, std::vector<std::string>& notes);

/// What the examples are to be answered with, into `part`. Integers [n] or [n, 1] are classes by their numbers, texts
/// are classes by name; floats [n] or [n, k] are targets, and so are integers [n, k] if all are 0 or 1: labels of which
/// several may hold. `answers` asks for one of both: then whole floats are classes, or integers targets. Throws Error
/// that names `source`; targets get a note as numbers do.
void put_answers(const NumpyArray& array, const std::string& source, Answers answers, PartData& part,
                 std::vector<std::string>& notes);

/// Labels [n] int32 as numbers to predict, [n, 1] float32.
Tensor targets_of(const Tensor& labels);

}  // namespace miniqat::datasets

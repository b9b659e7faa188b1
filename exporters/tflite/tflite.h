#pragma once

#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

struct TfliteOptions {
  /// Input and output as float32, with QUANTIZE and DEQUANTIZE inside the model; otherwise they are the integers.
  bool float_io = false;
  /// int8 also where uint8 would do, for runtimes that know nothing else. Its weights have zero point 0, so those of
  /// asymmetric ranges rarely fit.
  bool int8 = false;
  /// Weights of at most 4 bits as INT4, two in a byte, activations as int8. They must have their zero points in the
  /// middle, as int8 wants it. Biases are rounded to the scale input's * weight's, which is 8 times coarser than ours
  /// (at 4 bits).
  bool int4 = false;
};

/// The bytes of a fully quantized TensorFlow Lite flatbuffer, batch size 1. It is uint8 throughout if every weight
/// tensor has one scale, and int8 (activations and zero points 128 less) if one has a scale for each channel.
/// docs/exports-tflite.md lists the operators, and the cases that LiteRT rounds in another way. Throws Error naming the
/// operation and the limit for models that the format cannot hold: activations of fewer than 8 bits; with `int4` no
/// weights of at most 4 bits, or such that lie beyond -7..7 from their zero point; int8 weights more than 127 from
/// their zero point (the error says whether scales per channel or `int8` made them int8); paddings of average pooling
/// other than SAME and VALID.
std::string tflite(const integer::Model& model, const TfliteOptions& options = {});

/// Whether the file is int8, its activations and zero points 128 less than the model's. Throws as tflite() does for
/// `int4` without a layer for it.
bool is_int8(const integer::Model& model, const TfliteOptions& options = {});

}  // namespace miniqat::exporters

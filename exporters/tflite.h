#pragma once

#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

struct TfliteOptions {
  /// Input and output as float32, with QUANTIZE and DEQUANTIZE inside the model; otherwise they are the integers.
  bool float_io = false;
  /// int8 also where uint8 would do, for runtimes that know nothing else.
  bool int8 = false;
};

/// The bytes of a fully quantized TensorFlow Lite flatbuffer, batch size 1: uint8 throughout where every weight tensor
/// has one scale, int8 (zero points 128 less) with weights per channel where one has several. Throws Error naming the
/// operation and the limit for what the format cannot hold: bits other than 8, zero points off the middle in weights
/// per channel.
std::string tflite(const integer::Model& model, const TfliteOptions& options = {});

}  // namespace miniqat::exporters

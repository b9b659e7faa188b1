#include "training/report/layers_json.h"

#include "quantize/quantizers.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

Json to_json(const Bins& bins) {
  return {{"first", bins.first},
          {"width", bins.width},
          {"counts", bins.counts},
          {"below", bins.below},
          {"above", bins.above}};
}

/// Bits, range and grid, as of a training: what else there is to say is for all quantizers the same.
std::string text_of(quantize::FakeQuantAttributes attributes) {
  attributes.is_training = true;
  attributes.delay = 0;
  return quantize::quantizer_text(attributes);
}

Json to_json(const TensorFigures& figures) {
  const quantize::QuantizerRange& quantizer = figures.quantizer;
  const std::vector<quantize::Affine<float>> grids = quantizer.grids();
  const double values = static_cast<double>(figures.values);
  Json json = {{"quantizer", quantizer.quantizer},
               {"text", text_of(quantizer.attributes)},
               {"bits", quantizer.attributes.bits},
               {"grids", grids.size()},
               {"scale", nullptr},
               {"zero_point", nullptr},
               {"quant_min", figures.quant_min},
               {"quant_max", figures.quant_max},
               {"values", figures.values},
               {"nan", figures.nan},
               {"min", figures.min},
               {"max", figures.max},
               {"clipped", figures.clipped},
               {"clipped_share", values > 0 ? static_cast<double>(figures.clipped) / values : 0},
               {"unused", figures.unused},
               {"snr_db", field_to_json(figures.noise.decibels())},
               {"integers", figures.integers},
               {"integers_per_count", figures.integers_per_count},
               {"floats", to_json(figures.floats)}};
  if (grids.size() == 1) {
    json["scale"] = grids[0].scale;
    json["zero_point"] = static_cast<std::int64_t>(grids[0].zero_point);
  }
  return json;
}

Json to_json(const FloatFigures& figures) {
  return {{"values", figures.values}, {"min", figures.min}, {"max", figures.max}, {"floats", to_json(figures.floats)}};
}

Json to_json(const LayerFigures& layer) {
  const auto noise = [](const std::optional<NoiseSum>& sum) {
    return sum ? field_to_json(sum->decibels()) : Json(nullptr);
  };
  Json json = {{"name", layer.name},
               {"type", layer.type},
               {"weight_shape", layer.weight_shape},
               {"output_shape", layer.output_shape},
               {"output_bits", field_to_json(layer.output_bits)},
               {"cost", nullptr},
               {"weights", layer.weights ? to_json(*layer.weights) : Json(nullptr)},
               {"float_weights", layer.float_weights ? to_json(*layer.float_weights) : Json(nullptr)},
               {"output", layer.output ? to_json(*layer.output) : Json(nullptr)},
               {"samples", Json::array()},
               {"snr_alone_db", noise(layer.alone)},
               {"snr_from_picture_db", noise(layer.from_picture)}};
  if (layer.cost)
    json["cost"] = {{"weight_bits", layer.cost->weight_bits},
                    {"input_bits", layer.cost->input_bits},
                    {"multiply_adds", layer.cost->multiply_adds},
                    {"parameter_bytes", layer.cost->cost.parameter_bytes},
                    {"bit_operations", layer.cost->cost.bit_operations}};
  for (const WeightSample& sample : layer.samples)
    json["samples"].push_back({sample.index, sample.value, sample.integer, sample.rounded});
  return json;
}

}  // namespace

Json layers_to_json(const std::vector<LayerFigures>& layers) {
  Json json = Json::array();
  for (const LayerFigures& layer : layers) json.push_back(to_json(layer));
  return json;
}

}  // namespace miniqat::training

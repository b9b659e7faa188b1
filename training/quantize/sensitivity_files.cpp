#include "training/quantize/sensitivity_files.h"

#include <system_error>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "training/run/run_directory.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

Json to_json(const Evaluation& evaluation) {
  Json json = {{"loss", evaluation.loss}};
  json[evaluation.main().kind->key] = evaluation.main().value;
  return json;
}

Json to_json(const Measurement& measurement) {
  Json json = measurement.bits == 0 ? Json::object() : Json{{"bits", measurement.bits}};
  json.update(to_json(measurement.evaluation));
  json["loss_increase"] = measurement.loss_increase;
  json["snr_db"] = field_to_json(measurement.snr_db);
  return json;
}

Json list_of(const std::vector<Measurement>& measurements) {
  Json list = Json::array();
  for (const Measurement& measurement : measurements) list.push_back(to_json(measurement));
  return list;
}

Json to_json(const QuantizerSensitivity& one) {
  return {{"layer", one.layer},
          {"kind", one.kind()},
          {"quantizers", one.quantizers},
          {"elements", one.elements},
          {"fixed_bits", field_to_json(one.fixed_bits)},
          {"alone", list_of(one.alone)}};
}

Json list_of(const std::vector<QuantizerSensitivity>& quantizers) {
  Json list = Json::array();
  for (const QuantizerSensitivity& one : quantizers) list.push_back(to_json(one));
  return list;
}

/// The front of weights or of outputs.
Json front_to_json(const std::vector<FrontPoint>& front, const Sensitivity& sensitivity, bool weights) {
  std::vector<const QuantizerSensitivity*> quantizers;
  std::int64_t elements = 0;
  for (const QuantizerSensitivity& one : sensitivity.quantizers) {
    if (one.is_weights != weights || one.fixed_bits) continue;
    quantizers.push_back(&one);
    elements += one.elements;
  }
  Json list = Json::array();
  if (quantizers.empty()) return list;
  for (const FrontPoint& point : front) {
    Json json = {{"layer", point.quantizer ? Json(quantizers[*point.quantizer]->layer) : Json(nullptr)},
                 {"bits", point.bits}};
    if (weights) json["bytes"] = point.bytes;
    json["average_bits"] = static_cast<double>(point.total_bits) / static_cast<double>(elements);
    json["loss_increase"] = point.loss_increase;
    list.push_back(std::move(json));
  }
  return list;
}

/// The networks that keep to the budget, with a width for each layer (null) or one for all.
Json list_of(const std::vector<ChosenBits>& candidates) {
  Json list = Json::array();
  for (const ChosenBits& one : candidates) {
    Json json = {{"uniform_bits", field_to_json(one.uniform_bits)}};
    json.update(to_json(one.measured));
    list.push_back(std::move(json));
  }
  return list;
}

Json to_json(const ChosenBits& choice, const std::vector<ChosenBits>& candidates, const BitBudget& budget) {
  return {{"budget",
           {{"average_bits", field_to_json(budget.average_bits)},
            {"bytes", field_to_json(budget.bytes)},
            {"activation_bits", field_to_json(budget.activation_bits)}}},
          {"bits_config", quantize::layer_bits_to_json(choice.layers)},
          {"weight_bytes", choice.weight_bytes},
          {"average_weight_bits", field_to_json(choice.average_weight_bits)},
          {"average_activation_bits", field_to_json(choice.average_activation_bits)},
          {"predicted_loss_increase", choice.predicted_loss_increase},
          {"measured", to_json(choice.measured)},
          {"uniform_bits", field_to_json(choice.uniform_bits)},
          {"candidates", list_of(candidates)}};
}

}  // namespace

Json sensitivity_to_json(const Sensitivity& sensitivity, const SensitivityRequest& request) {
  return {{"run", request.model ? Json(nullptr) : Json(request.run)},
          {"model", sensitivity.model},
          {"dataset", sensitivity.dataset},
          {"pictures", sensitivity.pictures},
          {"batches", sensitivity.batches},
          {"batch_size", sensitivity.batch_size},
          {"seed", request.settings.seed},
          {"bits", sensitivity.bits},
          {"logits_bits", request.logits_bits},
          {"per_channel", request.rewrite.per_channel},
          {"symmetric", request.rewrite.symmetric},
          {"symmetric_weights", request.rewrite.symmetric_weights},
          {"full_range_weights", request.rewrite.full_range_weights},
          {"ranges", field_to_json(request.rewrite.ranges)},
          {"asymmetric_weights", request.rewrite.asymmetric_weights},
          {"scales", field_to_json(request.rewrite.scales)},
          {"scope", request.rewrite.scope},
          {"float", to_json(sensitivity.in_float)},
          {"quantizers", list_of(sensitivity.quantizers)},
          {"together", list_of(sensitivity.together)},
          {"not_measured", sensitivity.others},
          {"front", front_to_json(sensitivity.weight_front, sensitivity, true)},
          {"activation_front", front_to_json(sensitivity.activation_front, sensitivity, false)},
          {"choice",
           sensitivity.choice ? to_json(*sensitivity.choice, sensitivity.candidates, request.budget) : Json(nullptr)},
          {"seconds", sensitivity.seconds}};
}

SensitivityFiles::SensitivityFiles(const std::filesystem::path& path, bool overwrite)
    : lock_(require_name(path), RunLock::Directory::kMake),
      table_(path / "sensitivity.json"),
      bits_(path / "bits.json") {
  if (is_there(path / "config.json")) fail(path.string(), " holds a run (config.json): give another --out");
  for (const std::filesystem::path& file : {table_, bits_}) {
    require_no_link(file);
    if (!overwrite && is_there(file))
      fail(file.string(), " is there already: give another --out, or --overwrite to replace it");
  }
}

void SensitivityFiles::write(const Sensitivity& sensitivity, const SensitivityRequest& request) const {
  // Widths of an earlier measurement must not stay beside this one.
  std::error_code failure;
  std::filesystem::remove(bits_, failure);
  write_json(table_, sensitivity_to_json(sensitivity, request));
  if (sensitivity.choice) write_json(bits_, quantize::layer_bits_to_json(sensitivity.choice->layers));
}

}  // namespace miniqat::training

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "training/report/answers_report.h"
#include "training/report/curves.h"
#include "training/report/layer_figures.h"
#include "training/report/outputs_report.h"
#include "training/task/task.h"

namespace miniqat::training {

/// Everything about one run. What is empty, null or without a value could not be had, and `notes` say why.
struct RunReport {
  std::string name;
  std::string path;
  /// ListedRun::json()
  nlohmann::ordered_json listed = {};
  /// ListedRun::command
  std::string command = {};
  nlohmann::ordered_json config = {};
  /// Null before the end of the run.
  nlohmann::ordered_json summary = {};
  /// machine_to_json() of the program that trained last.
  nlohmann::ordered_json machine = {};
  std::vector<std::string> notes = {};
  /// skipped_files.json, null without one.
  nlohmann::ordered_json skipped_files = {};
  /// result_rows()
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  Curves curves = {};
  std::vector<LayerFigures> layers = {};
  /// Pictures behind the layers' figures.
  std::int64_t layer_examples = 0;
  /// The network without and with its quantizers; the second for evaluation.
  nlohmann::ordered_json before = {}, after = {};
  /// What the run learns.
  const Task* task = &classification();
  /// An example in words: "picture" or "example".
  const char* noun = "picture";
  /// "test", or "validation" of an unfinished run with such a part: nobody shall choose by the test pictures.
  std::string part = {};
  /// The part's pictures. Networks of very many layers answer the first of them only (AnswersOf, `examples`).
  std::int64_t part_examples = 0;
  std::vector<std::string> class_names = {};
  /// In float, simulated, as integers: those there are.
  std::vector<AnswersOf> answers = {};
  /// Where the network in float is from: the path of a run, "" for the run's own variables without quantizers.
  std::string float_run = {};
  /// outputs_to_json()
  nlohmann::ordered_json outputs = {};
  /// Float beside integers or, without these, beside the simulation; of classes.
  std::optional<Comparison> comparison = {};
  /// verify.json, null without one, and whether its variables are still the run's.
  nlohmann::ordered_json verification = {};
  bool verification_is_current = false;
};

}  // namespace miniqat::training

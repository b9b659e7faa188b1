#include "training/run/evaluation_session.h"

namespace miniqat::training {
namespace {

Classifier fitting_classifier(const std::string& source, const datasets::Dataset& pictures) {
  Classifier classifier = find_classifier(read_network(source), source);
  require_fit(classifier, pictures, source);
  return classifier;
}

}  // namespace

EvaluationSession::EvaluationSession(const RunSource& run, const datasets::Dataset& pictures)
    : classifier(fitting_classifier(run.directory.eval_graph().string(), pictures)), session(classifier.graph) {
  session.restore(read_safetensors(run.checkpoint), Session::Restore::kVariables, run.checkpoint);
}

}  // namespace miniqat::training

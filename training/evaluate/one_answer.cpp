#include "training/evaluate/one_answer.h"

#include <cmath>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/user_files.h"
#include "training/percent.h"

namespace miniqat::training {
namespace {

constexpr double kAlmostAll = 0.9, kMostLabels = 0.75;
/// Fewer may well be of one class.
constexpr std::int64_t kFewestPictures = 50;
/// Far above guessing is a loss of so many times ln(classes): weights without training are seldom so far off.
constexpr double kFarAbove = 2;

/// What makes the pixels what they were in another program's training.
std::string how_to_give_values(const std::string& dataset) {
  if (datasets::is_path(dataset)) return "--mean and --std make pixels (byte / 255 - mean) / std";
  return "another mean and deviation belong into the network, or to your own files (--mean, --std)";
}

std::string two_digits(double number) {
  char text[32];
  classic_snprintf(text, sizeof text, "%.2f", number);
  return text;
}

std::string shares(const OneAnswer& one, const datasets::Dataset& pictures, const std::string& subject) {
  return concat("warning: ", subject, " answers ", printable(pictures.class_name(one.number)), " for ",
                percent(one.of_answers), " of the pictures, of which ", percent(one.of_labels), " are that");
}

}  // namespace

std::optional<OneAnswer> one_answer(const Evaluation& evaluation) {
  if (evaluation.examples < kFewestPictures) return {};
  const auto all = static_cast<double>(evaluation.examples);
  for (std::size_t k = 0; k < evaluation.by_class.size(); ++k) {
    const OneAnswer one{.number = static_cast<std::int64_t>(k),
                        .of_answers = static_cast<double>(evaluation.by_class[k].answers) / all,
                        .of_labels = static_cast<double>(evaluation.by_class[k].labels) / all};
    if (one.of_answers >= kAlmostAll && one.of_labels < kMostLabels) return one;
  }
  return {};
}

std::string warning_of_one_answer(const Evaluation& evaluation, const datasets::Dataset& pictures,
                                  const std::string& subject, const std::string& dataset) {
  const std::optional<OneAnswer> one = one_answer(evaluation);
  if (!one) return "";
  return concat(shares(*one, pictures, subject), ": it tells nothing apart yet, or was trained on other pixel values",
                datasets::is_path(dataset) ? " (--mean, --std)" : "");
}

std::string warning_before_training(const Evaluation& evaluation, const datasets::Dataset& pictures,
                                    const std::string& subject, const std::string& dataset) {
  const std::string if_trained =
      concat("; if it was trained before, it saw other pixel values then: ", how_to_give_values(dataset));
  if (const std::optional<OneAnswer> one = one_answer(evaluation))
    return concat(shares(*one, pictures, subject), if_trained);
  const double chance = std::log(static_cast<double>(pictures.classes));
  if (!(evaluation.loss > kFarAbove * chance)) return "";
  return concat("warning: ", subject, " has a loss of ", two_digits(evaluation.loss), " before training, guessing has ",
                two_digits(chance), if_trained);
}

}  // namespace miniqat::training

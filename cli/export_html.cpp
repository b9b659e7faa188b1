#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "cli/export.h"
#include "cli/notes.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "exporters/html/html.h"
#include "training/run/integer_source.h"

namespace miniqat::cli {

using namespace training;

namespace {

/// "lenet5": a model that is a file goes by its name.
std::string name_of(const RunSource& run) { return std::filesystem::path(run.settings.model).stem().string(); }

/// "lenet5 W4A4-8": name and widths.
std::string label_of(const RunSource& run) {
  const std::string quantization = quantization_of(run.directory).label();
  return concat(name_of(run), " ", quantization.substr(0, quantization.find(' ')));
}

[[noreturn]] void refuse_numbers(const std::string& run) {
  fail(run, ": a page classifies pictures, and this run's data are numbers");
}

void require_classes(const std::string& run, const integer::Model& model) {
  if (!model.task.empty()) fail(run, ": a page classifies pictures, and this run's task is ", model.task);
}

exporters::HtmlModel compared_model(const std::string& path) {
  const RunSource run = open_run(path, "");
  print_note(run.note);
  const std::optional<integer::Grid> recorded = recorded_input(run);
  if (!recorded) refuse_numbers(path);
  const integer::Grid bytes = *recorded;
  integer::Model model = convert_run(run.directory, run.checkpoint, bytes);
  require_classes(path, model);
  return {.model = std::move(model), .label = label_of(run), .bytes = bytes, .accuracy = recorded_accuracy(run)};
}

/// The examples in the order in which they come onto the page: the first of every class, the second, ...
std::vector<std::int64_t> by_turns(const datasets::Dataset& dataset) {
  const auto labels = dataset.labels.values<std::int32_t>();
  std::map<std::int32_t, std::int64_t> seen;
  std::vector<std::int64_t> turn, order(labels.size());
  for (const std::int32_t label : labels) turn.push_back(seen[label]++);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return std::pair(turn[i], labels[i]); });
  return order;
}

std::string class_of(const datasets::Dataset& dataset, std::int64_t i) {
  const std::int32_t label = dataset.labels.values<std::int32_t>()[i];
  return dataset.class_names.empty() ? std::to_string(label) : dataset.class_names[label];
}

void add_pictures(const ExportedRun& exported, exporters::HtmlPage& page) {
  try {
    const datasets::Dataset test =
        load_data(exported.run, exported.arguments.dataset, exported.arguments.data_dir).test;
    require_pictures_fit(exported.model, test, exported.run.directory.eval_graph().string());
    print_file_notes(test);
    std::vector<std::int64_t> chosen = by_turns(test);
    chosen.resize(std::min<std::size_t>(chosen.size(), exported.arguments.test_vectors.value_or(kPicturesOfHtml)));
    page.pictures = datasets::examples_at(test, chosen).images;
    for (const std::int64_t i : chosen) page.picture_names.push_back(class_of(test, i));
  } catch (const Error& error) {
    if (!exported.arguments.dataset.empty() || !exported.arguments.data_dir.empty()) throw;
    std::fprintf(stderr, "miniqat export: no test pictures on the page (%s)\n", printable(error.what()).c_str());
  }
}

}  // namespace

OutFiles html_file(const ExportedRun& exported) {
  if (!recorded_input(exported.run)) refuse_numbers(exported.arguments.run);
  require_classes(exported.arguments.run, exported.model);
  exporters::HtmlPage page;
  page.title = concat(name_of(exported.run), " in integers");
  page.models.push_back({.model = exported.model,
                         .label = label_of(exported.run),
                         .bytes = exported.bytes,
                         .accuracy = recorded_accuracy(exported.run)});
  for (const std::string& path : exported.arguments.compare) page.models.push_back(compared_model(path));
  add_pictures(exported, page);
  std::int64_t weights = 0;
  for (const exporters::HtmlModel& entry : page.models) weights += entry.model.weight_bytes();
  return {.files = {{exported.arguments.out, exporters::html(page)}},
          .words = concat("weights: ", counted(weights, "byte"), " of ", counted(page.models.size(), "model"), "; ",
                          counted(page.picture_names.size(), "test picture"),
                          "\nopen the file in a browser; it loads nothing else\n")};
}

}  // namespace miniqat::cli

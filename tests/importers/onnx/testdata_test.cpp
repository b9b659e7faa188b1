// ONNX's own test models with their inputs and outputs, as Debian's libonnx-testdata has them. What miniqat imports
// must compute the expected numbers; every other model stands in testdata.txt with the reason.
// `scripts/import-against-onnx-testdata --update` writes that list anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "core/files/files.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "tests/fewer_cases.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/source_dir.h"

namespace miniqat::importers::testdata_test {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";
const fs::path kList = source_dir() / "tests/importers/onnx/testdata.txt";

/// Of the largest expected number of a tensor.
constexpr double kTolerance = 1e-5;

struct Numbers {
  std::vector<std::int64_t> extents;
  std::vector<float> values;
};

/// Read without the importer's help. Nothing where the file holds no float32 tensor.
std::optional<Numbers> read_numbers(const fs::path& path) {
  pb::Constant tensor;
  if (!tensor.ParseFromString(read_file(path)) || tensor.data_type() != pb::FLOAT) return std::nullopt;
  Numbers numbers{{tensor.dims().begin(), tensor.dims().end()},
                  {tensor.float_data().begin(), tensor.float_data().end()}};
  if (tensor.has_raw_data()) {
    numbers.values.resize(tensor.raw_data().size() / sizeof(float));
    std::memcpy(numbers.values.data(), tensor.raw_data().data(), numbers.values.size() * sizeof(float));
  }
  return numbers;
}

/// Numbers [n, c, h, w] as [n, h, w, c], [n, c, steps] as [n, steps, c].
Numbers channels_last(const Numbers& images) {
  const bool is_sequence = images.extents.size() == 3;
  const std::int64_t n = images.extents[0], c = images.extents[1];
  const std::int64_t pixels = images.extents[2] * (is_sequence ? 1 : images.extents[3]);
  Numbers turned{images.extents, std::vector<float>(images.values.size())};
  turned.extents.erase(turned.extents.begin() + 1);
  turned.extents.push_back(c);
  for (std::int64_t image = 0; image < n; ++image)
    for (std::int64_t channel = 0; channel < c; ++channel)
      for (std::int64_t p = 0; p < pixels; ++p)
        turned.values[static_cast<std::size_t>((image * pixels + p) * c + channel)] =
            images.values[static_cast<std::size_t>((image * c + channel) * pixels + p)];
  return turned;
}

Tensor tensor_of(const Numbers& numbers, const Shape& shape) {
  if (shape.rank() < 3) return Tensor::from<float>(shape, numbers.values);
  const Numbers turned = channels_last(numbers);
  return Tensor::from<float>(shape, turned.extents == shape.to_vector() ? turned.values : numbers.values);
}

class TestModel {
 public:
  explicit TestModel(fs::path folder) : folder_(std::move(folder)) {
    if (!model_.ParseFromString(read_file(folder_ / "model.onnx"))) ADD_FAILURE() << folder_ << " is not read";
  }

  int inputs() const { return model_.graph().input_size(); }

  /// With all inputs but one as parameters: ONNX's models of single nodes take those as inputs.
  pb::Model with_parameters(int input) const {
    pb::Model model = model_;
    pb::Graph& graph = *model.mutable_graph();
    graph.clear_input();
    for (int i = 0; i < inputs(); ++i) {
      pb::Constant constant;
      const fs::path file = data("input", i);
      if (i == input || !fs::exists(file) || !constant.ParseFromString(read_file(file))) {
        *graph.add_input() = model_.graph().input(i);
        continue;
      }
      constant.set_name(model_.graph().input(i).name());
      *graph.add_initializer() = constant;
    }
    return model;
  }
  const pb::Model& as_it_is() const { return model_; }

  /// What is wrong with the results; "" if nothing is.
  std::string check(ImportedModel& model, int only_input) const {
    Session session(model.graph);
    session.restore({.tensors = model.variables, .metadata = {}}, Session::Restore::kByName, "import");
    const std::vector<Output>& outputs = model.graph.outputs();
    const std::vector<Tensor> results =
        session.run({.fetches = {outputs.begin(), outputs.end()}}, feeds(model, only_input)).fetched;
    for (int i = 0; i < std::ssize(results); ++i) {
      const std::string wrong = difference(model.report.notes, results[static_cast<std::size_t>(i)], i);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  fs::path data(const std::string& kind, int i) const {
    return folder_ / "test_data_set_0" / (kind + "_" + std::to_string(i) + ".pb");
  }

  Feeds feeds(const ImportedModel& model, int only_input) const {
    std::vector<int> fed;
    const auto& constants = model_.graph().initializer();
    for (int i = 0; i < inputs(); ++i) {
      const auto names_it = [&](const pb::Constant& c) { return c.name() == model_.graph().input(i).name(); };
      if ((only_input < 0 || i == only_input) && std::ranges::none_of(constants, names_it)) fed.push_back(i);
    }
    Feeds feeds;
    for (Node* node : model.graph.nodes())
      if (node->as<Placeholder>() != nullptr)
        feeds.emplace_back(node->output(), tensor_of(read_numbers(data("input", fed.at(feeds.size()))).value(),
                                                     node->output().shape()));
    return feeds;
  }

  std::string difference(const std::vector<std::string>& notes, const Tensor& result, int output) const {
    const std::string name = '"' + model_.graph().output(output).name() + '"';
    const auto notes_that = [&](const std::string& text) {
      return std::ranges::any_of(notes, [&](const std::string& note) { return note.starts_with(text); });
    };
    const Numbers expected = read_numbers(data("output", output)).value();
    const bool is_turned =
        notes_that("the output " + name + " is [n, h, w, c]") || notes_that("the output " + name + " is [n, steps, c]");
    const Numbers laid = is_turned ? channels_last(expected) : expected;
    if (result.shape().to_vector() != laid.extents) return concat(name, " has the shape ", result.shape());
    std::vector<float> values(result.data<float>(), result.data<float>() + result.elements());
    if (notes_that("the final ")) finish(values, result.shape().channels(), notes_that("the final LogSoftmax"));
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(double{laid.values[i]}));
      const double d = std::abs(double{values[i]} - double{laid.values[i]});
      // NaN is a difference, too.
      if (!(d <= apart)) apart = d;
    }
    if (apart <= kTolerance * largest) return "";
    return name + " is " + std::to_string(apart) + " apart, its largest number is " + std::to_string(largest);
  }

  /// The Softmax that the importer leaves out.
  static void finish(std::vector<float>& values, std::int64_t classes, bool is_logarithm) {
    for (auto row = values.begin(); row != values.end(); row += classes) {
      const double most = *std::max_element(row, row + classes);
      double sum = 0;
      std::for_each(row, row + classes, [&](float x) { sum += std::exp(double{x} - most); });
      std::for_each(row, row + classes, [&](float& x) {
        const double logarithm = double{x} - most - std::log(sum);
        x = static_cast<float>(is_logarithm ? logarithm : std::exp(logarithm));
      });
    }
  }

  fs::path folder_;
  pb::Model model_;
};

/// The importer's words without the file's name and without its advice.
std::string shortened_reason(std::string reason, const fs::path& file) {
  const std::string start = file.string() + ": ";
  if (reason.starts_with(start)) reason = reason.substr(start.size());
  return reason.substr(0, reason.find(';'));
}

/// "passes", or why the model is refused; "WRONG ..." where it is imported and computes something else.
std::string verdict(const TestModel& model, const fs::path& file) {
  std::string refusal;
  bool passes = false;
  for (int input = -1; input < (model.inputs() > 1 ? model.inputs() : 0); ++input) {
    const pb::Model tried = input < 0 ? model.as_it_is() : model.with_parameters(input);
    std::ofstream(file, std::ios::binary) << tried.SerializeAsString();
    std::optional<ImportedModel> imported;
    const std::string error = testing::error_of([&] { imported = import_onnx(file); });
    // Of several inputs, the first is usually the network's.
    if (!error.empty() && input < 1) refusal = shortened_reason(error, file);
    if (!imported) continue;
    const std::string wrong = model.check(*imported, input);
    if (!wrong.empty()) return "WRONG, input " + std::to_string(input) + ": " + wrong;
    passes = true;
  }
  return passes ? "passes" : refusal;
}

/// Which models are refused, and why.
struct RefusalList {
  /// As the first line counts them: of another release of the data there are more.
  std::size_t models = 0;
  std::map<std::string, std::string> reasons;
};

RefusalList listed() {
  RefusalList list;
  std::ifstream file(kList);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# Of the ")) list.models = std::stoul(line.substr(9));
    if (const std::size_t colon = line.find(": "); !line.starts_with('#') && colon != std::string::npos)
      list.reasons[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return list;
}

std::vector<std::string> names_of_models() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kData))
    if (entry.path().filename() == "model.onnx")
      names.push_back(entry.path().parent_path().lexically_relative(kData).string());
  std::ranges::sort(names);
  return names;
}

TEST(OnnxTestdata, ModelsComputeWhatTheyShouldOrAreListed) {
  if (!fs::exists(kData)) GTEST_SKIP() << "libonnx-testdata is not installed (scripts/install-deps --ci)";
  const bool updates = std::getenv("MINIQAT_UPDATE_TESTDATA") != nullptr;
  const testing::TempDir place;
  const RefusalList refused = listed();
  const std::vector<std::string> names = names_of_models();
  testing::OneIn chosen(1);
  std::size_t passing = 0, tried = 0;
  std::string list;
  for (const std::string& name : names) {
    if (!updates && !chosen()) continue;
    ++tried;
    const std::string found = verdict(TestModel(kData / name), place.path() / "model.onnx");
    EXPECT_FALSE(found.starts_with("WRONG")) << name << ": " << found;
    passing += found == "passes";
    if (found != "passes") list += name + ": " + found + "\n";
    const auto reason = refused.reasons.find(name);
    if (updates || names.size() != refused.models) continue;
    EXPECT_EQ(found, reason == refused.reasons.end() ? "passes" : reason->second) << name;
  }
  if (!updates && tried == names.size()) {
    EXPECT_GE(passing, refused.models - refused.reasons.size());
  }
  if (!updates || ::testing::Test::HasFailure()) return;
  const std::string head =
      concat("# Of the ", names.size(), " models of Debian's libonnx-testdata miniqat imports ", passing,
             ", and they compute what they should.\n# It refuses these, with the reason that it gives. ",
             "scripts/import-against-onnx-testdata --update wrote the list.\n");
  write_file_atomically(kList, head + list);
}

}  // namespace
}  // namespace miniqat::importers::testdata_test

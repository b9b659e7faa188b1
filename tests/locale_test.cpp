// Text for machines under other locales: every writer gives the same bytes, and readers take them.

#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <map>
#include <sstream>

#include "core/engine/profile.h"
#include "core/files/files.h"
#include "core/graph/graph_json.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "datasets/arrays/csv.h"
#include "datasets/known_datasets.h"
#include "exporters/c/source.h"
#include "exporters/html/html.h"
#include "exporters/json.h"
#include "exporters/onnx/onnx.h"
#include "exporters/onnx/onnx_float.h"
#include "exporters/tflite/tflite.h"
#include "importers/onnx/import.h"
#include "integer/format/model_file.h"
#include "quantize/inspect/graph_diff.h"
#include "quantize/inspect/graph_dot.h"
#include "tests/training/run_fixture.h"
#include "training/figures.h"
#include "training/quantize/sensitivity_files.h"
#include "training/report/page.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"

namespace miniqat::locale_test {
namespace {

namespace fs = std::filesystem;

/// 1234.5 is 1.2.3.4,5.
class Commas : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
};

/// The global locale of C++ with Commas, as long as it lives.
class CommasEverywhere {
 public:
  CommasEverywhere() : before_(std::locale::global(std::locale(std::locale::classic(), new Commas))) {}
  ~CommasEverywhere() { std::locale::global(before_); }
  CommasEverywhere(const CommasEverywhere&) = delete;

 private:
  std::locale before_;
};

/// A locale of C, which Debian's package "locales" has the sources of, as long as it lives.
class CLocale {
 public:
  explicit CLocale(const std::string& language) {
    const std::string name = language + ".UTF-8", file = (folder_.path() / name).string();
    const std::string command = concat("localedef -i ", language, " -f UTF-8 ", file, " > /dev/null 2>&1");
    if (std::system(command.c_str()) != 0) return;
    setenv("LOCPATH", folder_.path().c_str(), 1);
    is_set_ = std::setlocale(LC_ALL, name.c_str()) != nullptr;
  }
  ~CLocale() {
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }
  CLocale(const CLocale&) = delete;
  bool is_set() const { return is_set_; }

 private:
  testing::TempDir folder_;
  bool is_set_ = false;
};

/// The same text for other times, dates and speeds: every number is '#'.
std::string without_numbers(const std::string& text) {
  std::string rest;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_ascii_digit(text[i])) {
      rest += text[i++];
      continue;
    }
    while (i < text.size() && is_ascii_digit(text[i])) ++i;
    if (i + 1 < text.size() && text[i] == '.' && is_ascii_digit(text[i + 1]))
      while (++i < text.size() && is_ascii_digit(text[i])) {
      }
    if (i + 1 < text.size() && text[i] == 'e')
      for (i += 2; i < text.size() && is_ascii_digit(text[i]);) ++i;
    rest += '#';
  }
  return rest;
}

using Texts = std::map<std::string, std::string>;

/// What a run says.
struct Listener : training::RunObserver {
  void say(const std::string& text) override { heard += text + "\n"; }
  void warn(const std::string& text) override { heard += text + "\n"; }
  std::string heard;
};

class LocaleTest : public training::RunFixture {
 protected:
  /// By kind, of one and the same training.
  Texts all_texts() const {
    for (const char* folder : {"float", "run", "sensitivity"}) fs::remove_all(path(folder));
    Texts texts;
    Listener listener;
    training::TrainSettings wanted = settings();
    wanted.float_only = true;
    train_new("float", wanted, listener);
    wanted = settings();
    training::settings_from_json(
        parse_json(R"({"weight_bits": 4, "activation_bits": 8, "per_channel": true, "learning_rate": 0.05,
                       "validation": 8})"),
        wanted, "settings");
    wanted.init_checkpoint = path("float").string();
    train_new("run", wanted, listener);
    add_measurement(texts, listener);
    texts["report"] = without_numbers(training::report_page(training::gather_report(
        {.runs = {path("run").string()}, .sensitivity = path("sensitivity").string(), .threads = 1},
        [](const std::string&) {})));
    texts["said"] = without_numbers(listener.heard);
    for (const char* folder : {"float", "run", "sensitivity"})
      for (const fs::directory_entry& file : fs::directory_iterator(path(folder)))
        texts[file.path().string()] = file.path().extension() == ".safetensors"
                                          ? read_file(file.path())
                                          : without_numbers(read_file(file.path()));
    add_exports(texts);
    add_graphs(texts);
    add_small_ones(texts);
    return texts;
  }

  void expect_same_under(const Texts& before) const {
    const Texts now = all_texts();
    EXPECT_EQ(now.size(), before.size());
    for (const auto& [name, text] : before) {
      const auto found = now.find(name);
      ASSERT_NE(found, now.end()) << name;
      const std::size_t same = std::ranges::mismatch(found->second, text).in1 - found->second.begin();
      EXPECT_TRUE(found->second == text) << name << " differs at " << same << ":\n"
                                         << found->second.substr(same > 40 ? same - 40 : 0, 100) << "\nnot\n"
                                         << text.substr(same > 40 ? same - 40 : 0, 100);
    }
  }

 private:
  void add_measurement(Texts& texts, Listener& listener) const {
    const training::SensitivityRequest request{.run = path("float").string(),
                                               .bits = {3, 8},
                                               .settings = {.pictures = 14, .batches = 4},
                                               .budget = {.average_bits = 4.5},
                                               .threads = 1};
    const training::SensitivityFiles files(path("sensitivity"), true);
    files.write(training::measure_sensitivity(request, listener), request);
    texts["bits"] = read_file(files.bits());
  }

  void add_exports(Texts& texts) const {
    const training::RunSource run = training::open_run(path("run").string(), "");
    const datasets::Dataset data = training::load_data(run, "", "").test;
    const integer::Model model = training::convert_run(run.directory, run.checkpoint, training::grid_of(data));
    const Tensor pictures = datasets::first_examples(data, 2).images;
    const exporters::CSource code = exporters::c_source(model, "net", "net.h", pictures, {}, "0.5");
    texts["C"] = code.header + code.source;
    texts["JSON"] = exporters::json(model);
    texts["TensorFlow Lite"] = exporters::tflite(model, {});
    texts["ONNX"] = exporters::onnx(model, {});
    texts["HTML"] = exporters::html(
        {.title = "net",
         .models = {{.model = model, .label = "4 bits", .bytes = model.tensor(model.input).grid, .accuracy = 0.625}},
         .pictures = pictures,
         .picture_names = {"a", "b"}});
    texts["model.miniqat"] = integer::to_bytes(integer::from_bytes(integer::to_bytes(model), "model"));
  }

  void add_graphs(Texts& texts) const {
    const Graph graph = graph_from_json(read_file(path("run") / "train_graph.json"));
    const Graph in_float = graph_from_json(read_file(path("float") / "eval_graph.json"));
    texts["graph"] = graph_to_json(graph);
    texts["dot"] = quantize::graph_to_dot(graph);
    texts["diff"] = quantize::graph_diff(in_float, graph);
    const NamedTensors variables = read_safetensors(path("float") / "checkpoint.safetensors").tensors;
    texts["ONNX float"] = exporters::onnx_float(in_float, variables, {.pictures = integer::Grid{.scale = 0.25F}});
    place_.write("float.onnx", texts["ONNX float"]);
    const importers::ImportedModel imported = importers::import_onnx(path("float.onnx"), {.batch_size = 4});
    texts["imported"] = graph_to_json(imported.graph) + imported.report.json().dump();
  }

  void add_small_ones(Texts& texts) const {
    const auto after = [](int microseconds) { return Profile::Time(std::chrono::microseconds(microseconds)); };
    Profile profile;
    profile.record(ProfilePhase::kForward, "conv", "Conv2D", after(1500), after(3750), {.multiply_adds = 1e6});
    profile.end_step(1, after(1000), after(9000));
    const MachineRates rates{.operations_per_second = 1e9, .bytes_per_second = 1.5e9};
    texts["profile"] = profile_table(profile, rates) + profile_trace(profile, rates);
    texts["numbers"] = concat(0.5, " ", 1234567, " ", exact(0.1), " ", std::size_t{10000}, " ", Shape{1000, 20});
    place_.write("some.csv", "LABEL,a,b,c,d\n1,2.0,3,255,1e1\n0,1,2,3,4\n1,0,0,0,1\n0,1,1,1,1\n1,1,1,1,1\n0,0,0,0,0\n");
    const datasets::CsvPictures table = datasets::read_csv_pictures(path("some.csv"), {0, 0});
    texts["table"] = concat(int{table.images.values<std::uint8_t>()[2]}, " of ", table.images.shape());
  }
};

/// Of C++ and, where it can be made, of C.
TEST_F(LocaleTest, WritersGiveTheSameBytesUnderLocalesOfBothLanguages) {
  const Texts before = all_texts();
  const CLocale german("de_DE");
  const CommasEverywhere commas;
  std::ostringstream own;
  own << 1234.5;
  ASSERT_EQ(own.str(), "1.2.3.4,5");
  if (german.is_set()) {
    char c_own[16];
    std::snprintf(c_own, sizeof c_own, "%.1f", 0.5);
    ASSERT_STREQ(c_own, "0,5");
  }
  expect_same_under(before);
  if (!german.is_set()) GTEST_SKIP() << "localedef makes no de_DE (Debian's package locales): C++'s locale alone";
}

/// There std::tolower('I') is 'I'.
TEST_F(LocaleTest, CapitalsOfFilesAreReadUnderATurkishLocale) {
  const CLocale turkish("tr_TR");
  if (!turkish.is_set()) GTEST_SKIP() << "localedef makes no tr_TR (Debian's package locales)";
  ASSERT_EQ(std::tolower('I'), 'I');
  fs::create_directory(path("tables"));
  place_.write("tables/TRAIN.CSV", "1,2,3,4,5\n0,1,2,3,4\n");
  place_.write("tables/VALIDATION.CSV", "1,2,3,4,5\n0,1,2,3,4\n");
  EXPECT_EQ(datasets::load(path("tables").string()).train.size(), 2);
}

}  // namespace
}  // namespace miniqat::locale_test

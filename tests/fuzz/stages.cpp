#include "tests/fuzz/stages.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/kernels/instruction_set.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "tests/fuzz/cases.h"
#include "tests/runtimes/judge.h"

namespace miniqat::fuzz {
namespace {

/// Compilers and foreign runtimes take seconds: one case in so many goes there.
constexpr std::int64_t kExportsEvery = 400;

std::uint64_t seed_of(const Arguments& arguments, const std::string& stage, std::int64_t number) {
  return mix(mix(arguments.seed, hash_text(stage)), static_cast<std::uint64_t>(number));
}

std::string file_name(const Arguments& arguments, const std::string& stage, std::int64_t number,
                      std::string_view isa = name_of(isa_level())) {
  return concat(stage, "-", arguments.seed, "-", number, "-", isa);
}

void say(const Arguments& arguments, const std::string& stage, std::int64_t number, const std::string& wrong,
         std::string_view isa = name_of(isa_level())) {
  std::fprintf(stderr, "%s: %s\n",
               concat("seed ", arguments.seed, ", stage ", stage, ", case ", number, ", ", isa).c_str(), wrong.c_str());
}

void say_shrunk(const std::string& small, const std::string& command, const std::string& path) {
  std::fprintf(stderr, "  shrunk to %s\n%s  miniqat_differential --replay %s\n", small.c_str(),
               command.empty() ? "" : ("  " + command + "\n").c_str(), path.c_str());
}

std::string path_of(const Arguments& arguments, const std::string& name, const char* end) {
  return (std::filesystem::path(arguments.out) / (name + end)).string();
}

GraphCase graph_case(const std::string& stage, std::uint64_t seed) {
  if (stage == "convolutions") return convolution_case(seed);
  if (stage == "ops") return op_case(seed);
  return net_case(seed);
}

std::string judged(const GraphCase& test, Counts* counts = nullptr, std::optional<Finding>* finding = nullptr) {
  try {
    const std::optional<Finding> found = judge(test, counts);
    if (finding != nullptr) *finding = found;
    return found ? found->text : "";
  } catch (const std::exception& error) {
    if (finding != nullptr) *finding = Finding{concat("throws ", error.what()), "throws", {}};
    return concat("throws ", error.what());
  }
}

bool run_graph(const Arguments& arguments, const std::string& stage, std::int64_t number, Counts& counts) {
  const GraphCase test = graph_case(stage, seed_of(arguments, stage, number));
  std::optional<Finding> finding;
  const std::string wrong = judged(test, &counts, &finding);
  if (wrong.empty()) return false;
  say(arguments, stage, number, concat(test.text(), ": ", wrong));
  const Fails fails = [&](const GraphCase& smaller) {
    std::optional<Finding> found;
    const std::string text = judged(smaller, nullptr, &found);
    return found && found->kind == finding->kind && (found->kind != "throws" || text == wrong);
  };
  const GraphCase small = shrink(test, *finding, fails, arguments.shrink);
  const std::string name = file_name(arguments, stage, number);
  const std::string command = save(small, arguments.out, name);
  say_shrunk(concat(small.text(), ": ", judged(small)), command, path_of(arguments, name, ".json"));
  return true;
}

bool throws(const std::string& wrong) { return wrong.starts_with("throws"); }

/// Whether one of these is wrong.
bool run_integers(const Arguments& arguments, std::int64_t number, const std::vector<IntegerCase>& cases,
                  Counts& counts) {
  std::vector<std::string> wrong;
  try {
    if (!cases.empty() && (cases[0].against == Against::kC || cases[0].against == Against::kOnnx)) wrong = judge(cases);
  } catch (const std::exception&) {
    // Which of them throws shows when each is judged alone.
  }
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const IntegerCase& test = cases[k];
    const std::string text = wrong.empty() ? judge(test) : wrong[k];
    counts.compared += test.images.shape()[0] * test.model.tensor(test.model.output).shape.elements();
    if (text.empty()) continue;
    say(arguments, "integers", number,
        concat(test.model.name, ", ", test.model.operations.size(), " operations: ", text));
    const IntegerFails fails = [&](const IntegerCase& smaller) {
      const std::string found = judge(smaller);
      return !found.empty() && throws(found) == throws(text);
    };
    const IntegerCase small = shrink(test, fails, arguments.shrink);
    const std::string path = save(small, arguments.out, file_name(arguments, "integers", number));
    say_shrunk(concat(small.model.operations.size(), " operations: ", judge(small)), "", path);
    return true;
  }
  return false;
}

bool run_integers(const Arguments& arguments, std::int64_t number, Counts& counts) {
  const std::uint64_t seed = seed_of(arguments, "integers", number);
  try {
    if (run_integers(arguments, number, integer_cases(seed), counts)) return true;
    if (number % kExportsEvery != 0) return false;
    if (run_integers(arguments, number, c_cases(seed), counts)) return true;
    return left_out("integers").empty() && run_integers(arguments, number, onnx_cases(seed), counts);
  } catch (const std::exception& error) {
    say(arguments, "integers", number, concat("the case cannot be made: ", error.what()));
    return true;
  }
}

bool run_optimizer(const Arguments& arguments, std::int64_t number, Counts& counts) {
  const std::string wrong = judge_optimizer(seed_of(arguments, "optimizers", number), counts.compared);
  if (!wrong.empty()) say(arguments, "optimizers", number, wrong);
  return !wrong.empty();
}

}  // namespace

const std::vector<std::string>& all_stages() {
  static const std::vector<std::string> all = {"ops", "convolutions", "graphs", "integers", "optimizers"};
  return all;
}

bool run_case(const Arguments& arguments, const std::string& stage, std::int64_t number, Counts& counts) {
  if (stage == "integers") return run_integers(arguments, number, counts);
  if (stage == "optimizers") return run_optimizer(arguments, number, counts);
  return run_graph(arguments, stage, number, counts);
}

void report_death(const Arguments& arguments, const std::string& isa, const std::string& stage, std::int64_t number,
                  const std::string& what, const Dies& dies) {
  say(arguments, stage, number, what, isa);
  if (stage == "optimizers") return;
  const std::uint64_t seed = seed_of(arguments, stage, number);
  const std::string trial = concat("trial", getpid()), name = file_name(arguments, stage, number, isa);
  if (stage == "integers") {
    // Exports run in processes of their own: what died ran the engine.
    const IntegerFails fails = [&](const IntegerCase& test) { return dies(save(test, arguments.out, trial)); };
    const IntegerCase small = shrink(integer_cases(seed).front(), fails, arguments.shrink);
    say_shrunk(concat(small.model.operations.size(), " operations"), "", save(small, arguments.out, name));
  } else {
    const Fails fails = [&](const GraphCase& test) {
      save(test, arguments.out, trial);
      return dies(path_of(arguments, trial, ".json"));
    };
    const GraphCase small = shrink(graph_case(stage, seed), {what, "signal", {}}, fails, arguments.shrink);
    say_shrunk(small.text(), save(small, arguments.out, name), path_of(arguments, name, ".json"));
  }
  for (const char* end : {".json", ".feeds.safetensors", ".variables.safetensors", ".miniqat", ".images.safetensors"})
    std::filesystem::remove(path_of(arguments, trial, end));
}

std::string replay(const std::string& path) {
  return path.ends_with(".miniqat") ? judge(load_integers(path)) : judged(load(path));
}

std::string left_out(const std::string& stage) {
  if (stage != "integers" || testing::why_no_runtimes().empty()) return "";
  return "ONNX Runtime: not installed, left out";
}

}  // namespace miniqat::fuzz

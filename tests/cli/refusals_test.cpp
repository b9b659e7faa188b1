// Command lines that are refused before anything is computed or written: tables with a line each, and what the error
// says. `''` is an empty word, `a|b` stands for either, in the error `$` for the one that was taken, and ` ... ` for
// any text. (arguments_test.cpp starts the program for some.)

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::refusals_test {
namespace {

std::vector<std::string> split(const std::string& text, std::string_view mark) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(mark, begin)) != std::string::npos; begin = end + mark.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// Words and their error.
using Case = std::pair<std::string, std::string>;

/// Those of a line of a table: one for each alternative.
std::vector<Case> cases_of(const std::string& line) {
  const std::vector<std::string> sides = split(line, " => ");
  if (sides.size() != 2) throw Error("not WORDS => ERROR: " + line);
  const std::size_t bar = std::min(sides[0].find('|'), sides[0].size());
  const std::size_t begin = sides[0].rfind(' ', bar) + 1, end = std::min(sides[0].find(' ', bar), sides[0].size());
  if (bar == sides[0].size()) return {{sides[0], sides[1]}};
  std::vector<Case> cases;
  for (const std::string& word : split(sides[0].substr(begin, end - begin), "|")) {
    std::string error;
    for (const char c : sides[1]) error += c == '$' ? word : std::string(1, c);
    for (const Case& one : cases_of(sides[0].substr(0, begin) + word + sides[0].substr(end) + " => " + error))
      cases.push_back(one);
  }
  return cases;
}

class RefusalsTest : public TinyTaskTest {
 protected:
  /// All lines of the table, with `before` in front of their words.
  void refuses(const std::string& before, const std::string& table) const {
    const Files files = all_files();
    for (const std::string& line : split(table, "\n")) {
      if (line.empty()) continue;
      for (const auto& [words_of_case, error] : cases_of(line)) {
        SCOPED_TRACE(before + " " + words_of_case);
        Arguments words = before + " " + words_of_case;
        for (std::string& word : words)
          if (word == "''") word.clear();
        const Outcome outcome = program(words);
        expect_error(outcome, 2, split(error, " ... "));
        EXPECT_EQ(outcome.out, "") << "nothing is announced that does not come";
        ASSERT_EQ(all_files(), files);
      }
    }
  }
  /// Of `train --config c.json` with each line's JSON in the file.
  void refuses_config(const std::string& table) const {
    for (const std::string& line : split(table, "\n")) {
      if (line.empty()) continue;
      SCOPED_TRACE(line);
      const std::size_t arrow = line.find(" => ");
      place_.write("c.json", line.substr(0, arrow));
      refuses("train --config c.json", line.substr(arrow));
    }
  }

 private:
  /// When each was written; directories have no time, as a lock comes into them and goes.
  using Files = std::map<std::filesystem::path, std::filesystem::file_time_type>;
  Files all_files() const {
    Files files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.path()))
      files[entry.path()] = entry.is_directory() ? std::filesystem::file_time_type() : entry.last_write_time();
    return files;
  }
};

TEST_F(RefusalsTest, Words) {
  refuses("", R"(
trian => miniqat: unknown command "trian"; did you mean "train"?
--verbos => --verbos
'' => miniqat: an argument must not be empty
help trian => "trian" ... did you mean "train"
train --weight-bit 4 => --weight-bit ... did you mean "--weight-bits"
train surplus => surplus
train --steps => --steps needs a value
train --model lenet6 => lenet6 ... lenet5
train --dataset mnits => mnits ... fashion-mnist
train --optimizer sdg => sdg ... adam
train --schedule cosin => exponential ... "cosin"
train --ranges lerned => --ranges must be observed, learned, auto, all-values or by-task, got "lerned"; did you mean "learned"?
train --out '' => --out must not be empty
train --resume --out '' => --out must not be empty
train --resume => --out names the run to go on with ... (see miniqat train --help)
train --overwrite --resume --out run => --overwrite ... --resume
models --model alexnet => alexnet ... lenet5
models --out g.json => --model
models --image-size 32 => --model
models --width|--classes|--batch-size 5 => $ ... --model
models --model lenet5 --width nan => --width
models --model lenet5 --batch-size 0 => --batch-size
models --model resnet20 --image-size 0 => --image-size
models --model resnet20 --image-size 4097 => --image-size
models --model lenet5 --image-size 8 => [Conv2D "conv2/Conv2D"]
models --model wake_word --image-size 8 => --image-size is for pictures; the input of wake_word is [30,40]
models --model autoencoder --classes 8 => --classes has no effect on autoencoder
models --model lenet5 --out g.onnx => --out ... g.onnx ... must end in .json
models --count --model lenet5 --out|--batch-size 5 => $ ... --count
completion => SHELL
completion csh => bash, zsh or fish ... csh
eval --threads 1 => --run ... (see miniqat eval --help)
eval --json => give one of --run and --model
eval --model m.miniqat => --dataset
eval --model net.onnx --dataset synthetic => net.onnx is an ONNX model ... calibrate --model
eval --model m.miniqat --run run => one of --run and --model
eval|verify --run run --threads -1|1025|99999999999|two => --threads
eval --run run --checkpoint '' => --checkpoint must not be empty
predict --threads 1 => --run is required
verify --run run --no-runtimes --runtimes|--runtime-timeout|--min-runtime-agreement 5 => $ ... --no-runtimes
verify --run run --no-runtimes --min-agreement 101 => --min-agreement
verify --run run --no-runtimes --int4 => --int4 ... --no-runtimes
verify --run run --runtime-timeout -1 => --runtime-timeout
export --out m.c => --run is required: RUN or --run RUN (see miniqat export --help)
report --out report.html => RUN
report run => --out
report run --out report.pdf => --out ... report.pdf ... must end in .html
inspect --dot=- => GRAPH
inspect '' => an argument must not be empty
inspect --diff tiny.json => --diff ... two graphs ... tiny.json
inspect --diff => GRAPH
inspect tiny.json norm.json => norm.json ... --diff
inspect --diff tiny.json tiny.json norm.json => 2 ... 3
inspect --diff tiny.json tiny.json --dot x.dot => --diff ... --dot
reestimate --threads 1 => --run
)");
}

// The text of the range, as a user needs it; config files below go through the same checks. Each limit:
// tests/training/settings/train_settings_test.cpp.
// NOLINTNEXTLINE(readability-function-size): a table
TEST_F(RefusalsTest, SettingsOutOfRange) {
  refuses("train", R"(
--weight-bits 1|17|-4 => --weight-bits must be 2 to 16, not $
--weight-bits abc => --weight-bits must be a number, got "abc"
--weight-bits 8.5 => --weight-bits must be a whole number, got "8.5"
--weight-bits 99999999999 => --weight-bits
--activation-bits 1 => --activation-bits must be
--learning-rate -0.1|nan|inf|-inf|1e300 => --learning-rate
--learning-rate 1e-50|1e-39 => --learning-rate is $, which is 0 in float32: give 0 or at least 1.17549e-38
--weight-decay 1e-50 => --weight-decay is 1e-50, which is 0 in float32
--momentum|--label-smoothing|--dampening 1e-50 => $ is 1e-50, which is 0 in float32
--dampening 1e50 => --dampening is 1e+50, which is infinite in float32
--ranges learned --range-learning-rate 1e-50 => --range-learning-rate is 1e-50, which is 0 in float32
--learning-rate fast => --learning-rate must be a number, got "fast"
--weight-decay nan => --weight-decay
--momentum 1 => --momentum must
--momentum 0.999999999 => is 0.999999999
--ema-decay 1.5 => --ema-decay must
--quant-delay -1 => --quant-delay must
--epochs 0 => --epochs must be in 1..1000000, got 0
--batch-size 0 => --batch-size must be in 1..65536, got 0
--threads -1|1025 => --threads must be in 0..1024, got $
--threads 99999999999 => --threads
--threads two => --threads must be a number, got "two"
--width nan => --width must be in (0, 16]
--label-smoothing 1.0000001 => --label-smoothing must be in [0, 1), got 1.0000001
--shards 3 => --shards must be a power of two, got 3
--shards 8 --batch-size 12 => --shards 8 must divide --batch-size 12
--augment cutout => --augment must be auto, none, shift or crop-flip, got "cutout"
--save-every 0|0s|-1|s|5m|1e3|nans|infs|99999999999999999999 => --save-every must be a number of steps
--ranges learned --range-learning-rate -1|nan|inf|1e39 => --range-learning-rate must be a finite number >= 0
--ranges learned --range-learning-rate 10 => --range-learning-rate must be at most 1, got 10 ... (0.003 is 0.3%)
--ranges learned --range-learning-rate fast => --range-learning-rate ... "fast"
--dataset synthetic --image-size 8 => --image-size has no effect with --dataset synthetic ... it is for folders of pictures
--dataset mnist --std 0.5 => --std ... it is for folders of pictures
--dataset ./x --image-size 0|8x|x8|8x8x8|-8|8.5|4097 => --image-size must be HxW ... got "$"
--dataset ./x --colour gray => --colour must be auto, grey or rgb, got "gray"
--dataset ./x --mean 2 => --mean must be in [0, 1]
--dataset ./x --mean 1.0000001 => --mean must be in [0, 1], got 1.0000001
--dataset ./x --std 0 => --std must be in
--dataset ./x --std 1000.00001 => got 1000.00001
)");
  refuses("rewrite --graph tiny.json", R"(
--out g.onnx => --out ... g.onnx ... must end in .json
--weight-bits 1 => --weight-bits must be 2 to 16, not 1
--activation-bits 17 => --activation-bits must be
--weight-bits eight => --weight-bits
--ema-decay nan => --ema-decay must be
--quant-delay -1 => --quant-delay must be
--mode test => --mode
--scope conv2 => --scope "conv2" ... did you mean "conv1"?
--scope conv1/Conv2D|nosuch => --scope "$" ... no node of tiny.json is in that scope
--scope nosuch --strict => --scope "nosuch" ... no node of tiny.json is in that scope
)");
  refuses("train --model tiny.json --dataset mnist --data-dir digits", R"(
--scope conv2 => --scope "conv2" ... did you mean "conv1"?
--scope conv1/Conv2D|nosuch => --scope "$" ... no node of tiny.json is in that scope
--stop-at 13 --steps 12 => --stop-at 13 ... the run ends at step 12 already
--stop-at 0|-1 => --stop-at must be in 1..1099511627776, got "$"
--reestimate 3 => --reestimate: tiny.json has no batch norm
--profile nowhere/trace.json|digits => --profile: 
)");
}

TEST_F(RefusalsTest, ConfigFiles) {
  refuses_config(R"(
{"weight_bit": 4} => c.json ... weight_bit ... did you mean "weight_bits"
{"weight_bits": "4"} => c.json ... weight_bits ... "4"
{"weight_bits": 4294967300} => weight_bits ... 4294967300
{"steps": 18446744073709551615} => steps ... 18446744073709551615
{"momentum": null} => momentum ... null
{"float": 1} => float
{"ranges": "some"} => c.json ... "ranges" ... "some"
{"freeze_bn_delay": -1} => --freeze-bn-delay must be
{"learning_rate": 1e-50} => --learning-rate is 1e-50, which is 0 in float32
{"momentum": 1e-50} => --momentum is 1e-50, which is 0 in float32
{"label_smoothing": 1} => --label-smoothing must be in [0, 1), got 1
{"schedule": "step", "schedule_every": 0} => --schedule-every must be
{"schedule": "step", "schedule_factor": 2} => --schedule-factor must be
{"warmup_steps": 6, "steps": 6} => --warmup-steps must be less than the run's 6 steps
{"nesterov": true, "momentum": 0} => --nesterov needs momentum
{"save_every": ""} => --save-every must be
{"scope": "conv9"} => --scope "conv9" ... did you mean "conv1"?
{"augment": "flip"} => --augment ... "flip"
{"model": ""} => ""
{"optimizer": ""} => ""
[] => c.json ... object
)");
  place_.write("adam.json", R"({"optimizer": "adam", "momentum": 0.9})");
  refuses("", "train --config adam.json --momentum 0.5 => --momentum ... --optimizer adam");
}

// A flag without effect beside another, or beside what settings say already: the error names both.
TEST_F(RefusalsTest, FlagsWithoutEffect) {
  refuses("train", R"(
--float --weight-bits|--activation-bits|--quant-delay|--freeze-bn-delay 4 => $ ... --float
--float --bits-config|--ema-decay|--scope|--range-learning-rate|--dampening 0.5 => $ ... --float
--float --per-channel|--symmetric|--symmetric-weights|--asymmetric-weights|--strict => $ ... --float
--float --quantize-input|--float-pools => $ ... --float
--float --ranges learned => --ranges ... --float
--float --bn-fold single => --bn-fold ... --float
--optimizer adam --momentum 0.5 => --momentum ... --optimizer adam
--optimizer adam --nesterov => --nesterov ... --optimizer adam
--schedule constant|cosine --schedule-every 1 => --schedule-every ... --schedule $
--schedule constant|cosine --schedule-factor 1 => --schedule-factor ... --schedule $
--schedule-every 5 => --schedule-every ... --schedule cosine
--epochs 2 --steps 5 => --epochs ... --steps 5
--model tiny.json --width 0.5 => --width ... --model tiny.json
--model lenet --output fc => --output ... --model lenet
--data-dir digits => --data-dir ... --dataset synthetic
--dataset ./x --data-dir y => --data-dir ... a path as --dataset
--skip-broken => --skip-broken has no effect with --dataset synthetic
--threads-per-shard 2 => --threads-per-shard has no effect with --shards 1
--validation-method stride => --validation-method ... --validation 0
--weight-decay 0 --decay-all => --decay-all ... --weight-decay 0
--asymmetric-weights => --asymmetric-weights has no effect with --ranges auto --weight-bits 8
--ranges auto --asymmetric-weights --symmetric-weights => --asymmetric-weights ... --symmetric-weights
--range-learning-rate 0.1 => --range-learning-rate has no effect with --ranges auto and more than 4 bits
--ranges auto --range-learning-rate 0.1 => --range-learning-rate ... --ranges auto and more than 4 bits
--ranges observed|all-values --range-learning-rate 0.1 => --range-learning-rate has no effect with --ranges $
--ranges learned|all-values --ema-decay 0.9 => --ema-decay has no effect with --ranges $
--ranges auto --activation-bits 3 --ema-decay 0.9 => --ema-decay has no effect with --ranges auto --activation-bits 3
)");
  for (const char* command : {"train", "rewrite --graph tiny.json --mode train",
                              "rewrite --graph tiny.json --mode eval", "calibrate --run run --out ptq"})
    refuses(command, R"(
--symmetric --symmetric-weights => --symmetric-weights ... --symmetric, which includes
--ranges auto --asymmetric-weights => --asymmetric-weights has no effect with --ranges auto --weight-bits 8
--ranges observed|all-values --asymmetric-weights => has no effect with --ranges $, whose weights are asymmetric
--ranges learned --symmetric --asymmetric-weights => --asymmetric-weights has no effect with --symmetric
--ranges learned --symmetric-weights --asymmetric-weights => --asymmetric-weights ... with --symmetric-weights
--ranges lerned => --ranges must be observed, learned, auto, all-values or by-task, got "lerned"; did you mean "learned"?
)");
  refuses("rewrite --graph tiny.json --mode eval", R"(
--quant-delay|--freeze-bn-delay 3 => $ ... --mode eval
--bn-fold single => --bn-fold ... --mode eval
--ema-decay 0.5 => --ema-decay ... --mode eval
)");
  refuses("run --graph tiny.json --out o", R"(
--random-feeds --fetch pool1 --step 5 => --step 5 ... --graph tiny.json, in which nothing counts steps
--random-feeds --fetch pool1 --backend reference --threads 2 => --threads 2 ... --backend reference
--random-feeds --fetch pool1 --backend reference --arithmetic integer => --arithmetic integer ... --backend reference
--random-feeds --by-name --train => --by-name ... --checkpoint
--random-feeds --fetch pool1 --precision float64 => --precision ... --backend reference
--fetch pool1 --step -1 => --step
--threads 1025 => --threads
--index 0 --fetch pool1 => --index needs a run or --dataset
--index 0 --dataset mnits --fetch pool1 => mnits
--index -1 => --index
)");
}

TEST_F(RefusalsTest, OfBench) {
  refuses("bench", R"(
--models lenet5,lenet6 => "lenet6" ... lenet5
--kernels-only --steps-only => --kernels-only ... --steps-only
--kernels-only --models lenet => --kernels-only ... --models
--kernels-only --batch-size 8 => --kernels-only ... --batch-size
--steps-only --elements 8 => --steps-only ... --elements
--loaded --batch-size 8 => --loaded ... --batch-size
--loaded --threads 1,2 => --threads
--loaded --threads 1 => --threads ... above 1
--loaded --models lenet5,lenet6 => lenet6
--threads -1 => --threads
--threads two => --threads ... two
--threads 1,2000 => --threads ... 2000
--elements 0 => --elements
--elements ten => --elements
--elements 1,,2 => --elements: an entry of "1,,2" is empty
--bits=8, => --bits: an entry of "8," is empty
--bits 1|17 => --bits
--bits 4 --models lenet => --bits ... --models
--channels 1 => --channels
--kernel ,forward => --kernel: an entry of ",forward" is empty
--kernel forwrd => forwrd
--kernel forward --steps-only => --kernel ... --steps-only
--plugin none.so => none.so
--plot p.png => --plot ... p.png ... must end in .svg
--plot p.svg --elements 1000 => --plot ... two sizes
--plot p.svg --out ./p.svg => --plot and --out ... p.svg
--csv --json => --csv ... --json
--per-tensor --per-channel|--steps-only => --per-tensor ... $
--per-tensor --channels 3 => --per-tensor ... --channels
--compare a.json b.json c.json => --compare takes one file, or as many of A as of B; there are 3
--compare a.json b.json --out c.json => --compare ... --out
--compare a.json b.json --quick => --compare ... --quick
--fail-if-slower => --fail-if-slower ... --compare
)");
}

// NOLINTNEXTLINE(readability-function-size): a table
TEST_F(RefusalsTest, OfCommandsOnARun) {
  expect_success(train("run"));
  expect_success(train("float", "--float"));
  for (const char* file : {"net.onnx", "own.csv", "float/given_arrays.npz", "own_TRAIN.ts", "own_TEST.ts"})
    place_.write(file, "");
  expect_success(train("norm", "--model norm.json"));
  // As of pictures that miniqat draws.
  std::filesystem::copy(path("float"), path("drawn"));
  nlohmann::json config = json_of(path("float/config.json"));
  config["dataset"] = "synthetic";
  config["data_dir"] = "";
  place_.write("drawn/config.json", config.dump());
  // As of a file of one's own.
  std::filesystem::copy(path("float"), path("owned"));
  config["dataset"] = path("own.csv").string();
  place_.write("owned/config.json", config.dump());
  std::filesystem::copy(path("float"), path("series"));
  config["dataset"] = path("own_TRAIN.ts").string();
  place_.write("series/config.json", config.dump());
  for (const char* command :
       {"eval --threads 1", "run --fetch a,b --out o", "verify --threads 1", "export --out m.json",
        "calibrate --out ptq", "quantize --out qat", "reestimate --threads 1", "sensitivity --out table --bits 2,4"})
    refuses(command, R"(
nowhere --run elsewhere => two runs are given: "nowhere" and --run "elsewhere"
nowhere elsewhere => unknown argument "elsewhere"
 => --run
)");
  place_.write("bits.json", R"({"conv1": 4})");
  refuses("", R"(
eval drawn --data-dir digits => --data-dir ... --dataset synthetic
eval drawn --dataset synthetic --data-dir digits => --data-dir ... synthetic
verify drawn --data-dir digits => --data-dir ... --dataset synthetic
calibrate drawn --out ptq --data-dir digits => --data-dir ... --dataset synthetic
calibrate float --out '' => --out must not be empty
calibrate float --out ptq --ema-decay 0.5 => --ema-decay ... --method
calibrate float --out float --overwrite => --overwrite ... --run
calibrate float --out ptq --skip-broken => --skip-broken goes with --model
calibrate float --out ptq --output scores => --output ... --model
eval run --dataset imagenet => imagenet ... synthetic
eval run --split dev => --split ... dev
eval run --examples -1 => --examples
eval run --profile --json => --profile ... --json
eval run --profile --integer => --profile ... --integer
predict run 0 --skip-broken => --skip-broken goes with --dataset
eval --run run --skip-broken => --skip-broken goes with --dataset
predict run => no picture is given
predict run cat.gif => "cat.gif" is neither the number of a picture
predict run 1.5 => 1.5
predict run 20 => mnist ... there is no picture 20, only 0 to 19
run run --graph tiny.json --out o => give one of --run and --graph
run --fetch x --out o => give one of --run and --graph
run run --dataset mnist --out o => --dataset goes with --index
run run --split train --out o => --split goes with --index
run run --index 20 --out o => there is no picture 20
rewrite --graph tiny.json --bits-config bits.json --out ./bits.json => --out would replace ./bits.json
run --graph tiny.json --out tiny.json => --out would replace tiny.json, which the command reads
run run --out run/checkpoint.safetensors|run/eval_graph.json|run/config.json => --out would replace $
run run --index 0 --checkpoint float --out float/checkpoint.safetensors|float/config.json => --out would replace $
run run --index 0 --dataset own.csv --out own.csv => --out would replace own.csv, which the command reads
run owned --index 0 --out own.csv => --out would replace own.csv, which the command reads: give another --out
run float --out float/given_arrays.npz => --out would replace float/given_arrays.npz
run run --fetch x --out o --seed -1 => --seed must be in 0..9223372036854775807, got "-1"
inspect tiny.json --dot ./tiny.json => --dot would replace ./tiny.json
inspect run --dot run/eval_graph.json => --dot would replace run/eval_graph.json
verify run --out run/config.json|run/checkpoint.safetensors => --out would replace $
verify run --checkpoint float --out float/checkpoint.safetensors|float/config.json => --out would replace $
verify run --dataset own.csv --out own.csv => --out would replace own.csv
verify owned --out own.csv => --out would replace own.csv
verify owned --out ./own.csv --dataset digits => --out would replace ./own.csv
verify run --dataset ./own_TRAIN.ts --out own_TEST.ts|own_TRAIN.ts => --out would replace $
inspect series --dot own_TEST.ts => --dot would replace own_TEST.ts, which the command reads
verify run --out digits/train-images-idx3-ubyte|digits/t10k-labels-idx1-ubyte => --out would replace $
verify owned --dataset ./digits --out digits/t10k-labels-idx1-ubyte => --out would replace digits/t10k-labels-idx1-ubyte
report run --out digits/t10k-labels-idx1-ubyte => --out would replace digits/t10k-labels-idx1-ubyte
train --dataset ./own.csv --model tiny.json --out new --profile own.csv => --profile would replace own.csv
train --dataset ./own_TRAIN.ts --model tiny.json --out new --profile own_TEST.ts => --profile would replace own_TEST.ts
train --init-checkpoint float --model tiny.json --out new --profile float/config.json => --profile would replace float
train --model tiny.json --out new --profile tiny.json => --profile would replace tiny.json
train --resume --out run --profile run/checkpoint.safetensors => --profile would replace run/checkpoint.safetensors
export run --out run/config.json|run/eval_graph.json => --out would replace $
export run --format json --checkpoint float/checkpoint.safetensors --out float/checkpoint.safetensors => --out would replace
export run --checkpoint float --out float/config.json => --out would replace float/config.json
export run --format c --dataset own.csv --out own.csv => --out would replace own.csv
export --format onnx-float --graph net.onnx --out ./net.onnx => --out would replace ./net.onnx
run run --image-size 9 --out o => --image-size ... a run, which has its sizes
export run --compare small --out m.c => --compare is for --format html
export run --test-vectors 3 --out m.json => --test-vectors is for --format c or html
export run --format tflite --out m.onnx => --format tflite contradicts --out "m.onnx", which names the format onnx
export run --out model|m.pb|onnx => --format is required ... $ ... .miniqat, .tflite, .onnx, .c, .json or .html
export run --out m.c --float-io => --float-io is for --format tflite
export run --out m.c --format pdf => --format ... pdf
export run --out m.c --8-bit-weights => --8-bit-weights is for --format onnx
export run --out m.c --opset 13 => --opset is for --format onnx or onnx-float
export run --out m.onnx --prefix|--test-vectors|--dataset|--data-dir 3 => $ is for --format
export run --out m.onnx --int8|--int4|--float-io => $ is for --format
export run --out m.json --input-scale 0|-1|nan|inf|1e-42 => --input-scale
export run --out m.html --input-scale 1 => --input-scale is not for --format html
export run --out m.json --input-zero-point 128 => goes with --input-scale
export run --out m.json --input-scale 1 --input-zero-point 256 => 256
export run --format onnx-float --image-size 9 --out x.onnx => --image-size goes with --graph
export float --format onnx-float --opset 12|22|latest --out x.onnx => --opset ... $
export float --format onnx-float --graph tiny.json --out x.onnx => not both
export float --format onnx-float --input-scale 1 --out x.onnx => --input-scale is for formats of integers
export --format onnx-float --out x.onnx => give a run, or --graph
export --format onnx-float --graph tiny.json --out x.onnx => --graph needs --checkpoint
export --graph tiny.json --out x.onnx => --graph is for --format onnx-float
inspect tiny.json --image-size 9 => --image-size ... not an ONNX model
reestimate norm --batches 0 => --batches must be at least 1, got 0
reestimate norm --seed -1 => --seed must not be negative, got -1
reestimate norm --overwrite => --overwrite is for --out
reestimate norm --out norm --overwrite => --overwrite would delete the run in --run
train --resume --out run --learning-rate 0.5 => --learning-rate ... 0.05
train --resume --out run --config run/config.json => --config
train --resume --out run --validation 8 => --validation differs from the run's own
train --resume --out run --reestimate 4 => --reestimate differs from the run's own
quantize --out none => --run is required
quantize --run float => --out is required
)");
  for (const char* command : {"calibrate --out x", "quantize --out x", "sensitivity --out x"})
    refuses(command, R"(
 => --run is required ... --model MODEL.onnx with --dataset
--model net.onnx => --model needs --dataset
float --model net.onnx => give a float run or --model, not both
float --image-size 8 => --image-size goes with --model
--model lenet --dataset mnist => --model lenet has no weights ... train --float
float --scope conv => --scope "conv" ... did you mean "conv1"?
float --batches 0 => --batches must be at least 1, got 0
)");
  refuses("calibrate float --out no", R"(
--dataset cifar => unknown data set "cifar"
--batch-size 8 => --batch-size goes with --model
--method guess => --method ... guess
--rounding up => --rounding ... up
--percentile 99 => --percentile goes with --method percentile
--method percentile --percentile 40 => --percentile must be ... 40
--quant-delay|--freeze-bn-delay 5 => unknown argument "$"
--weight-bits 17 => --weight-bits must be 2 to 16, not 17
)");
  refuses("quantize float --out no", R"(
--dataset mnist => --dataset goes with --model: a float run has its own
--epochs 0 => --epochs must be in 1..1000000, got 0
--percentile 99 => --percentile goes with --method percentile
--validation 0|-3 => --validation must be at least 1
--weight-bits 1 => --weight-bits must be 2 to 16
--learning-rate -1 => --learning-rate
--quant-delay 3 => unknown argument "--quant-delay"
--reestimate 3 => --reestimate ... has no batch norm
--validation 1000 => --validation 1000 leaves
)");
  refuses("sensitivity float --out no", R"(
--dataset cifar => unknown data set "cifar"
--batch-size 8 => --batch-size goes with --model
--bits 1,4 => --bits must be 2 to 16 each, not 1
--bits 4,17 => --bits must be 2 to 16 each, not 17
--bits 4,8,4 => --bits names 4 twice
--bits 3.5 => --bits ... 3.5
--bits '' => --bits must not be empty
--logits-bits 17 => --logits-bits must be 2 to 16, not 17
--pictures 0 => --pictures must be at least 1, got 0
--seed -1 => --seed must not be negative, got -1
--average-bits 4 --bytes 500 => one of --average-bits and --bytes
--bits 2,3,8 --average-bits 1.9|nan|-3 => --average-bits ...  is impossible: the fewest of --bits is 2
--bits 2,3,8 --bytes 168|0|-5 => --bytes ...  is impossible: with 2 bits ... the weights take 169 bytes
--activation-bits 8 => --activation-bits goes with --bytes
--bits 2,3,8 --bytes 500 --activation-bits 4 => --activation-bits 4 is not among --bits
--symmetric --symmetric-weights => --symmetric-weights has no effect
--bits 5,8 --asymmetric-weights => --asymmetric-weights has no effect ... --bits 5
--weight-bits|--bits-config|--ema-decay|--quant-delay|--method 4 => unknown argument "$"
)");
}

}  // namespace
}  // namespace miniqat::testing::refusals_test

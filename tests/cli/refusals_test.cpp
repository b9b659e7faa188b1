// Command lines that are refused before anything is computed or written (tables as in tests/cli/refusals.h).
// arguments_test.cpp starts the program for some, to see that it ends with status 2.

#include "tests/cli/refusals.h"

namespace miniqat::testing::refusals_test {
namespace {

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
train --ranges lerned => --ranges must be observed, learned, auto or all-values, got "lerned"; did you mean "learned"?
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

// The text of the range, as a user needs it; config files below go through the same checks.
// NOLINTNEXTLINE(readability-function-size): a table
TEST_F(RefusalsTest, SettingsOutOfRange) {
  refuses("train", R"(
--weight-bits 1|17|-4 => --weight-bits must be 2 to 16, not $
--weight-bits abc => --weight-bits must be a number, got "abc"
--weight-bits 8.5 => --weight-bits must be a whole number, got "8.5"
--weight-bits 99999999999 => --weight-bits
--activation-bits 1 => --activation-bits must be
--learning-rate -0.1|nan|inf|-inf|1e300 => --learning-rate
--learning-rate fast => --learning-rate must be a number, got "fast"
--weight-decay nan => --weight-decay
--momentum 1 => --momentum must
--momentum 0.999999999 => is 0.999999999
--ema-decay 1.5 => --ema-decay must
--quant-delay -1 => --quant-delay must
--epochs 0 => --epochs must be in 1..1000000, got 0
--epochs 9000000000000000000 => --epochs
--steps -1 => --steps must be in
--warmup-steps 9223372036854775807 => --warmup-steps must be at most
--batch-size 0 => --batch-size must be in 1..65536, got 0
--threads -1|1025 => --threads must be in 0..1024, got $
--threads 99999999999 => --threads
--threads two => --threads must be a number, got "two"
--seed -1 => --seed must be in
--width nan => --width must be in (0, 16]
--label-smoothing 1.0000001 => --label-smoothing must be in [0, 1), got 1.0000001
--log-every 0 => --log-every must be at least 1, got 0
--shards 3 => --shards must be a power of two, got 3
--shards 8 --batch-size 12 => --shards 8 must divide --batch-size 12
--shards 2 --threads-per-shard 0 => --threads-per-shard must be in 1..1024, got 0
--validation -1 => --validation must not be negative, got -1
--reestimate -1 => --reestimate must not be negative, got -1
--dampening -1 => --dampening must be at least 0, got -1
--augment cutout => --augment must be auto, none, shift or crop-flip, got "cutout"
--save-every 0|0s|-1|s|5m|1e3|nans|infs|99999999999999999999 => --save-every must be a number of steps
--ranges learned --range-learning-rate -1|nan|inf|1e39 => --range-learning-rate must be a finite number >= 0
--ranges learned --range-learning-rate 10 => --range-learning-rate must be at most 1, got 10 ... (0.003 is 0.3%)
--ranges learned --range-learning-rate fast => --range-learning-rate ... "fast"
--dataset synthetic --image-size 8 => --image-size ... own files
--dataset mnist --std 0.5 => --std ... own files
--dataset ./x --image-size 0|8x|x8|8x8x8|-8|8.5|4097 => --image-size must be HxW ... got "$"
--dataset ./x --colour gray => --colour must be auto, grey or rgb, got "gray"
--dataset ./x --mean 2 => --mean must be in [0, 1]
--dataset ./x --mean 1.0000001 => --mean must be in [0, 1], got 1.0000001
--dataset ./x --std 0 => --std must be in
--dataset ./x --std 1000.00001 => got 1000.00001
)");
  refuses("rewrite --graph tiny.json", R"(
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
{"weight_bits": 17} => --weight-bits must be 2 to 16, not 17
{"freeze_bn_delay": -1} => --freeze-bn-delay must be
{"batch_size": 0} => --batch-size must be
{"label_smoothing": 1} => --label-smoothing must be in [0, 1), got 1
{"label_smoothing": -0.5} => --label-smoothing must be in [0, 1), got -0.5
{"threads": 1025} => --threads must be
{"schedule": "step", "schedule_every": 0} => --schedule-every must be
{"schedule": "step", "schedule_factor": 2} => --schedule-factor must be
{"warmup_steps": 6, "steps": 6} => --warmup-steps must be less than the run's 6 steps
{"nesterov": true, "momentum": 0} => --nesterov needs momentum
{"save_every": ""} => --save-every must be
{"scope": "conv9"} => --scope "conv9" ... did you mean "conv1"?
{"augment": "flip"} => --augment ... "flip"
{"model": ""} => ""
{"dataset": ""} => ""
{"augment": ""} => ""
{"optimizer": ""} => ""
{"schedule": ""} => ""
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
--ranges lerned => --ranges must be observed, learned, auto or all-values, got "lerned"; did you mean "learned"?
)");
  refuses("rewrite --graph tiny.json --mode eval", R"(
--quant-delay|--freeze-bn-delay 3 => $ ... --mode eval
--bn-fold single => --bn-fold ... --mode eval
--ema-decay 0.5 => --ema-decay ... --mode eval
)");
  refuses("run --graph tiny.json --out o", R"(
--random-feeds --fetch pool1 --step 5 => --step 5 ... --graph tiny.json, in which nothing counts steps
--random-feeds --fetch pool1 --backend reference --threads 2 => --threads 2 ... --backend reference
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

}  // namespace
}  // namespace miniqat::testing::refusals_test

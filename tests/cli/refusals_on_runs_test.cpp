// Command lines that are refused where there are runs (tables as in tests/cli/refusals.h).

#include "tests/cli/refusals.h"

namespace miniqat::testing::refusals_test {
namespace {

// NOLINTNEXTLINE(readability-function-size): a table
TEST_F(RefusalsTest, OfCommandsOnARun) {
  expect_success(train("run"));
  expect_success(train("float", "--float"));
  expect_success(train("norm", "--model norm.json"));
  expect_success(program("train --model lenet5 --width 0.2 --steps 1 --batch-size 4 --threads 1 --float --out drawn"));
  for (const char* command :
       {"eval --threads 1", "run --fetch a,b --out o", "verify --threads 1", "export --out m.json",
        "calibrate --out ptq", "quantize --out qat", "reestimate --threads 1", "sensitivity --out table --bits 2,4"})
    refuses(command, R"(
nowhere --run elsewhere => two runs are given: "nowhere" and --run "elsewhere"
nowhere elsewhere => unknown argument "elsewhere"
 => --run
)");
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

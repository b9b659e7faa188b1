// Constants that multiply and add, in LiteRT and ONNX Runtime against the integer engine's reference.

#include <gtest/gtest.h>

#include "quantize/convert/convert.h"
#include "tests/quantize/scale_shift_net.h"
#include "tests/quantize/trained_net.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::scale_shift_test {
namespace {

integer::Model scale_shift_model(const quantize::RewriteOptions& options) {
  const testing::TrainedNet net = testing::train_briefly(testing::scale_shift_net(), options);
  return quantize::convert(net.evaluation, net.variables, {.input = testing::kPictures});
}

TEST(ScaleShiftInLiteRt, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison comparison;
  for (const bool per_channel : {false, true})
    comparison.add("scale and shift", scale_shift_model({.symmetric_weights = true, .per_channel = per_channel}),
                   {.int8 = true});
  const testing::RuntimeAgreement agreement = comparison.run().at("scale and shift");
  print("scale and shift", agreement);
  EXPECT_GE(agreement.share(), 0.99);
  EXPECT_LE(agreement.largest, 1);
}

TEST(ScaleShiftInOnnxRuntime, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  for (const testing::OnnxComparison& result :
       testing::compare_in_onnx_runtime({{.models = {scale_shift_model({})}},
                                         {.models = {scale_shift_model({.weight_bits = 4, .activation_bits = 4})}},
                                         {.models = {scale_shift_model({.per_channel = true})}}},
                                        6)) {
    print("scale and shift", result.agreement);
    EXPECT_GE(result.agreement.share(), 0.99);
    EXPECT_LE(result.agreement.largest, 1);
  }
}

}  // namespace
}  // namespace miniqat::exporters::scale_shift_test

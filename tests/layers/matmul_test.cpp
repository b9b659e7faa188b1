#include "layers/matmul.h"

#include <gtest/gtest.h>

#include "core/tensors/eigen.h"
#include "core/text/error.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::matmul_test {
namespace {

using testing::expect_fast_is_reference;
using testing::inference_error;
using testing::random_tensor;
using testing::run_op;

Shape stored(std::int64_t rows, std::int64_t columns, bool transpose) {
  return transpose ? Shape{columns, rows} : Shape{rows, columns};
}

TEST(MatMul, FastIsReference) {
  const std::vector<std::array<std::int64_t, 3>> extents = {
      {1, 1, 1}, {1, 17, 1}, {5, 1, 3}, {1, 8, 32}, {32, 8, 1}, {3, 17, 10}, {16, 32, 8}, {33, 64, 31}, {128, 84, 10}};
  for (const auto& [m, k, n] : extents)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        expect_fast_is_reference(
            MatMul::make({transpose_a, transpose_b}),
            {random_tensor(stored(m, k, transpose_a), 1), random_tensor(stored(k, n, transpose_b), 2)},
            miniqat::concat(m, "x", k, "x", n, transpose_a ? ", a transposed" : "",
                            transpose_b ? ", b transposed" : ""));
}

/// The reference specifies; here it is compared with somebody else's product.
TEST(MatMul, TheReferenceIsTheMatrixProduct) {
  const auto matrix = [](const Tensor& stored, bool transpose) -> Eigen::MatrixXd {
    const auto m = matrix_of<double>(stored);
    return transpose ? Eigen::MatrixXd(m.transpose()) : Eigen::MatrixXd(m);
  };
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Tensor a = random_tensor(stored(5, 7, transpose_a), 1).to(DType::kFloat64);
      const Tensor b = random_tensor(stored(7, 3, transpose_b), 2).to(DType::kFloat64);
      const Tensor d_y = random_tensor({5, 3}, 3).to(DType::kFloat64);
      const auto found = run_op(MatMul::make({transpose_a, transpose_b}), {a, b}, {d_y}, Backend::kReference);
      const Eigen::MatrixXd A = matrix(a, transpose_a), B = matrix(b, transpose_b), D = matrix(d_y, false);
      EXPECT_TRUE(matrix(found.outputs[0], false).isApprox(A.lazyProduct(B)));
      EXPECT_TRUE(matrix(found.d_inputs[0], transpose_a).isApprox(D.lazyProduct(B.transpose())));
      EXPECT_TRUE(matrix(found.d_inputs[1], transpose_b).isApprox(A.transpose().lazyProduct(D)));
    }
}

TEST(MatMul, CountsMultiplyAdds) {
  const std::vector<TensorSpec> specs = {{Shape{7, 128}}, {Shape{7, 10}}};
  EXPECT_EQ(multiply_adds_of(*MatMul::make({.transpose_a = true}), specs), 128 * 10 * 7);
}

TEST(MatMul, RefusesMismatches) {
  EXPECT_EQ(inference_error(MatMul::make(), {{128, 7}, {8, 10}}), "a has 7 columns, b has 8 rows; a [128,7], b [8,10]");
  EXPECT_EQ(inference_error(MatMul::make({.transpose_b = true}), {{128, 7}, {7, 10}}),
            "a has 7 columns, b transposed has 10 rows; a [128,7], b [7,10]");
  EXPECT_NE(inference_error(MatMul::make(), {{128, 7, 7, 64}, {3136, 10}}).find("Reshape"), std::string::npos);
  EXPECT_NE(inference_error(MatMul::make(), {{128}, {128, 10}}).find("rank 1"), std::string::npos);
  EXPECT_NE(inference_error(MatMul::make(), {{128, 0}, {0, 10}}).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::layers::matmul_test

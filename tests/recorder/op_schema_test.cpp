#include "recorder/collector/op_schema.h"

#include <gtest/gtest.h>

namespace acltape::collector {
namespace {

using storage::Direction;

// "0 self in, 1 other in, ..."
std::string Told(std::string_view name, std::string_view schema) {
  static constexpr const char* kDirections[] = {"in", "out", "inout"};
  std::string text;
  for (const SchemaArgument& value : ParseOpSchema(name, schema).values) {
    if (!text.empty()) text += ", ";
    text += std::to_string(value.position) + " " + value.name + " " +
            kDirections[static_cast<int>(value.direction)];
  }
  return text;
}

struct Row {
  const char* name;
  const char* schema;
  const char* told;
};

class SchemaTest : public ::testing::TestWithParam<Row> {};

TEST_P(SchemaTest, NamesAndDirections) {
  EXPECT_EQ(Told(GetParam().name, GetParam().schema), GetParam().told);
}

INSTANTIATE_TEST_SUITE_P(
    Schemas, SchemaTest,
    ::testing::Values(
        Row{"aten::add", "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            "0 self in, 1 other in, 2 alpha in, 3 out out"},
        // The return is the written argument: left out.
        Row{"aten::add_",
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
            "0 self inout, 1 other in, 2 alpha in"},
        Row{"aten::add",
            "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> "
            "Tensor(a!)",
            "0 self in, 1 other in, 2 alpha in, 3 out out"},
        Row{"aten::copy_",
            "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
            "0 self out, 1 src in, 2 non_blocking in"},
        // A view shares its argument's buffer but is a return of its own.
        Row{"aten::view", "aten::view(Tensor(a) self, int[] size) -> Tensor(a)",
            "0 self in, 1 size in, 2 out out"},
        Row{"aten::max",
            "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "
            "indices)",
            "0 self in, 1 dim in, 2 keepdim in, 3 out0 out, 4 out1 out"},
        Row{"aten::native_batch_norm",
            "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
            "running_mean, Tensor? running_var, bool training, float momentum, float eps) -> "
            "(Tensor, Tensor, Tensor)",
            "0 input in, 1 weight in, 2 bias in, 3 running_mean inout, 4 running_var inout, 5 "
            "training in, 6 momentum in, 7 eps in, 8 out0 out, 9 out1 out, 10 out2 out"},
        // All tensors are marked, and one is written.
        Row{"_C_ascend::bgmv_shrink",
            "_C_ascend::bgmv_shrink(Tensor(a!) x, Tensor(b!) weight, Tensor(c!) y, float scale) -> "
            "()",
            "0 x in, 1 weight in, 2 y inout, 3 scale in"},
        // Random numbers overwrite the tensor, as copies do.
        Row{"aten::cauchy_",
            "aten::cauchy_(Tensor(a!) self, float median=0, float sigma=1) -> Tensor(a!)",
            "0 self out, 1 median in, 2 sigma in"},
        Row{"aten::miopen_batch_norm",
            "aten::miopen_batch_norm(Tensor input, Tensor? running_var, bool training) -> Tensor",
            "0 input in, 1 running_var inout, 2 training in, 3 out out"},
        Row{"aten::index_put_",
            "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool "
            "accumulate=False) -> Tensor(a!)",
            "0 self inout, 1 indices in, 2 values in, 3 accumulate in"},
        Row{"aten::split",
            "aten::split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
            "0 self in, 1 split_size in, 2 dim in, 3 out out"},
        Row{"aten::conv2d",
            "aten::conv2d(Tensor input, int[2] stride=[1, 1], str padding=\"a,(b\") -> Tensor",
            "0 input in, 1 stride in, 2 padding in, 3 out out"},
        Row{"aten::_foreach_add_",
            "aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
            "0 self inout, 1 scalar in"},
        Row{"aten::rand", "aten::rand() -> Tensor", "0 out out"}, Row{"", "", ""},
        Row{"x", "x(Tensor a", ""}, Row{"x", ")(", ""}, Row{"x", "x(", ""}));

}  // namespace
}  // namespace acltape::collector

// Operators whose number of results depends on the values: the output's handle reports the shape.
#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

std::vector<int64_t> ShapeOf(const aclTensor* tensor) {
  int64_t* sizes = nullptr;
  uint64_t count = 0;
  EXPECT_EQ(aclGetViewShape(tensor, &sizes, &count), OK);
  const std::vector<int64_t> shape(sizes, sizes + count);
  delete[] sizes;
  return shape;
}

// Runs the call and compares output `i`, of the shape that its handle then reports.
void ExpectResult(PackedCall& call, int i, const Tensor& out, const Tensor& expected) {
  EXPECT_EQ(at::IntArrayRef(ShapeOf(call.tensor(i))), expected.sizes());
  EXPECT_TRUE(SameBits(at::from_blob(out.data_ptr(), expected.sizes(), out.options()), expected));
}

void RunCall(PackedCall& call) {
  TestStream();
  ASSERT_EQ(call.Prepare(), OK) << aclGetRecentErrMsg();
  ASSERT_EQ(call.Launch(TestStream()), OK);
  ASSERT_EQ(aclrtSynchronizeStream(TestStream()), ACL_SUCCESS);
}

TEST(CountedResults, NonzeroReportsItsRows) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kBool}) {
    for (const auto& [name, x] : Views(dtype)) {
      const Tensor self = x.gt(0).to(dtype), found = at::nonzero(self);
      const Tensor rows = at::empty({self.numel(), self.dim()}, at::kLong);
      PackedCall call("aclnnNonzero", {self, rows});
      RunCall(call);
      ExpectResult(call, 1, rows, found);
      const Tensor columns = at::empty({self.dim(), self.numel()}, at::kLong);
      PackedCall transposed("aclnnNonzeroV2", {self, columns});
      RunCall(transposed);
      ExpectResult(transposed, 1, columns, found.t().contiguous());
    }
  }
}

TEST(CountedResults, MaskedSelectBroadcasts) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kInt, at::kBool}) {
    const Tensor self = Random({6, 5}, dtype).t(), mask = Random({5, 1}, at::kBool);
    const Tensor out = at::empty({30}, dtype);
    PackedCall call("aclnnMaskedSelect", {self, mask, out});
    RunCall(call);
    ExpectResult(call, 2, out, at::masked_select(self, mask));
  }
}

TEST(CountedResults, UniqueReportsValuesAndCounts) {
  const Tensor self = Indices({40}, 7);
  const auto [values, inverse, counts] = at::_unique2(self, true, true, true);
  const Tensor out = at::empty({40}, at::kLong), where = at::empty({40}, at::kLong);
  const Tensor count = at::empty({40}, at::kLong);
  PackedCall call("aclnnUnique2", {self, true, true, true, out, where, count});
  RunCall(call);
  ExpectResult(call, 4, out, values);
  ExpectResult(call, 6, count, counts);
  EXPECT_TRUE(SameBits(where, inverse));
}

TEST(CountedResults, TheHandleMayGoBeforeTheTaskHasRun) {
  const Tensor self = at::ones({1000}), out = at::empty({1000, 1}, at::kLong);
  TestStream();
  {
    PackedCall call("aclnnNonzero", {self, out});
    ASSERT_EQ(call.Prepare(), OK);
    ASSERT_EQ(call.Launch(TestStream()), OK);
  }
  ASSERT_EQ(aclrtSynchronizeStream(TestStream()), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, at::nonzero(self)));
}

// How many there are is known when the task runs.
TEST(CountedResults, FailsWhereTheOutputIsTooSmallAndRefusesOneThatIsNotDense) {
  const Tensor self = at::ones({4});
  EXPECT_EQ(RunOperator("aclnnNonzero", {self, at::empty({3, 1}, at::kLong)}), 507015);
  EXPECT_NE(LastMessage().find("the output has room for 3 numbers, but there are 4"),
            std::string::npos)
      << LastMessage();
  EXPECT_EQ(RunOperator("aclnnMaskedSelect", {self, self.gt(0), at::empty({8}).slice(0, 0, 8, 2)}),
            161002);
  EXPECT_NE(LastMessage().find("out must be dense"), std::string::npos) << LastMessage();
}

}  // namespace
}  // namespace acltape::opapi

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

// Distinct entries: their values, where each entry's value stands among them, and how often it
// comes.
struct Distinct {
  Tensor values, inverse, counts;
};

// Finds the distinct slices of `dim`, or elements without one: sorted, or runs of equal neighbours.
Distinct DistinctSlices(const Tensor& self, c10::optional<int64_t> dim, bool runs) {
  const Tensor rows = dim ? self.movedim(*dim, 0) : self.flatten();
  const Tensor flat = rows.to(at::kDouble).reshape({rows.size(0), -1}).contiguous();
  std::vector<std::vector<double>> keys;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const auto* first = flat.data_ptr<double>() + i * flat.size(1);
    keys.emplace_back(first, first + flat.size(1));
  }
  std::map<std::vector<double>, int64_t> sorted;  // the position of each value
  for (const auto& key : keys) sorted.emplace(key, 0);
  int64_t count = 0;
  for (auto& entry : sorted) entry.second = count++;
  std::vector<int64_t> inverse, firsts(sorted.size()), counts(sorted.size());
  if (runs) firsts.clear(), counts.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (runs && (i == 0 || keys[i] != keys[i - 1])) {
      firsts.push_back(static_cast<int64_t>(i));
      counts.push_back(0);
    }
    const int64_t place = runs ? static_cast<int64_t>(firsts.size()) - 1 : sorted.at(keys[i]);
    if (!runs && counts[place] == 0) firsts[place] = static_cast<int64_t>(i);
    ++counts[place];
    inverse.push_back(place);
  }
  const Tensor values = rows.index_select(0, at::tensor(firsts, at::kLong));
  return {
      (dim ? values.movedim(0, *dim) : values).contiguous(),
      at::tensor(inverse, at::kLong).reshape(dim ? at::IntArrayRef({rows.size(0)}) : self.sizes()),
      at::tensor(counts, at::kLong)};
}

// Runs the operator, whose outputs from `first` on have room for as many results as self has
// entries, and compares what they hold and report.
void ExpectDistinct(const char* name, Args args, c10::optional<int64_t> dim,
                    const Distinct& distinct, bool counted) {
  const auto self = std::get<Tensor>(args[0]);
  const int64_t entries = dim ? self.size(*dim) : self.numel();
  const Tensor values = Unwritten(dim ? at::empty(self.sizes(), self.options())
                                      : at::empty({entries}, self.options()));
  const Tensor inverse = Unwritten(distinct.inverse);
  const Tensor counts = Unwritten(at::empty({entries}, at::kLong));
  const auto first = static_cast<int>(args.size());
  args.push_back(values);
  args.push_back(inverse);
  if (counted) args.push_back(counts);
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  const auto holds = [&](int i, const Tensor& out, const Tensor& expected) {
    const auto shape = ReportedShapes().find(i);
    EXPECT_EQ(shape == ReportedShapes().end() ? out.sizes() : at::IntArrayRef(shape->second),
              expected.sizes())
        << name << ", output " << i;
    EXPECT_TRUE(SameBits(at::from_blob(out.data_ptr(), expected.sizes(), out.options()), expected))
        << name << ", output " << i;
  };
  holds(first, values, distinct.values);
  EXPECT_TRUE(SameBits(inverse, distinct.inverse)) << name;
  if (counted) holds(first + 2, counts, distinct.counts);
}

constexpr int64_t kWhole = 1000;  // in place of a dim: of all elements

TEST(CountedResults, DistinctValuesReportHowManyThereAre) {
  for (at::ScalarType dtype :
       {at::kFloat, at::kLong, at::kHalf, at::kBFloat16, at::kInt, at::kByte, at::kBool}) {
    for (const Tensor& self : {Indices({6, 5}, 7, dtype).t(), Indices({40}, 9, dtype)}) {
      const Distinct sorted = DistinctSlices(self, {}, false),
                     runs = DistinctSlices(self, {}, true);
      ExpectDistinct("aclnnUnique", {self, true, true}, {}, sorted, false);
      ExpectDistinct("aclnnUnique2", {self, true, true, true}, {}, sorted, true);
      ExpectDistinct("aclnnUniqueConsecutive", {self, true, true, kWhole}, {}, runs, true);
    }
  }
}

TEST(CountedResults, DistinctSlicesReportHowManyThereAre) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong, at::kInt}) {
    for (int64_t dim : {0, 1}) {
      const Tensor self = Indices({8, 8}, 2, dtype);
      self.select(dim, 3).copy_(self.select(dim, 2));
      self.select(dim, 6).copy_(self.select(dim, 0));
      ExpectDistinct("aclnnUniqueDim", {self, true, true, dim}, dim,
                     DistinctSlices(self, dim, false), true);
      ExpectDistinct("aclnnUniqueConsecutive", {self, true, true, dim}, dim,
                     DistinctSlices(self, dim, true), true);
    }
  }
}

// The vendor's sample gives an inverse of another shape that it does not ask for, and values of one
// dim for rows.
TEST(CountedResults, ShapesThatTheVendorDoesNotCheckAreTaken) {
  const Tensor self = Indices({4, 2}, 2), counts = at::empty({4}, at::kLong);
  const Distinct rows = DistinctSlices(self, 0, false), runs = DistinctSlices(self, 0, true);
  const Tensor values = at::empty({4, 2}, at::kLong), flat = at::empty({8}, at::kLong);
  const Tensor unused = Unwritten(at::empty({4, 2}, at::kLong)), before = unused.clone();
  ASSERT_EQ(RunOperator("aclnnUniqueDim", {self, true, false, int64_t{0}, values, unused, counts}),
            0)
      << LastMessage();
  EXPECT_TRUE(SameBits(values.narrow(0, 0, rows.values.size(0)), rows.values));
  EXPECT_TRUE(SameBits(unused, before));
  ASSERT_EQ(RunOperator("aclnnUniqueConsecutive",
                        {self, true, true, int64_t{0}, flat, at::empty({4}, at::kLong), counts}),
            0)
      << LastMessage();
  EXPECT_TRUE(SameBits(flat.narrow(0, 0, runs.values.numel()), runs.values.flatten()));
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

// The number of results is known when the task runs.
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

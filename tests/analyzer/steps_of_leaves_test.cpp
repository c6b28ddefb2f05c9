// The steps of calls of the ACL interface follow the leaves of PyTorch that made them.
#include "analyzer/steps/steps_of_leaves.h"

#include <gtest/gtest.h>

#include <string_view>

namespace acltape::analyzer {
namespace {

// LaunchedCalls as a queue's thread issues them, later than the leaves that asked for them.
class LaunchedCalls {
 public:
  LaunchedCalls& Add(int64_t call_id, int64_t leaf, std::string_view function) {
    WorkForm form;
    form.function = &FindAclFunction(function);
    work_.forms.push_back(form);
    WorkCall call;
    call.call_id = call_id;
    call.parent_id = leaf;
    call.form = static_cast<int32_t>(work_.forms.size() - 1);
    work_.calls.push_back(call);
    return *this;
  }
  const Work& work() const { return work_; }

 private:
  Work work_;
};

storage::Step LeafStep(int64_t step, int64_t first_call, int64_t last_call) {
  storage::Step row;
  row.step = step;
  row.first_call = first_call;
  row.last_call = last_call;
  row.found_by = "period";
  return row;
}

TEST(StepsOfLeaves, AStepBeginsWithTheCopyAndTheWaitsBeforeItsFirstOperator) {
  // Leaf 2 came before the steps; leaves 4 to 6 are step 0, leaves 24 to 26 are step 1.
  LaunchedCalls calls;
  calls.Add(10, 2, "aclnnInplaceZero")
      .Add(11, 0, "aclrtMemcpyAsync")
      .Add(12, 4, "aclrtMallocAlign32")
      .Add(13, 0, "aclrtStreamWaitEvent")
      .Add(14, 4, "aclnnMm")
      .Add(15, 6, "aclnnAdd")
      .Add(30, 0, "aclrtMemcpyAsync")
      .Add(31, 24, "aclnnMm")
      .Add(32, 26, "aclnnAdd")
      .Add(40, 0, "aclrtMemcpyAsync");
  const std::vector<StepRange> steps =
      StepsOfLeaves(calls.work(), {LeafStep(0, 3, 6), LeafStep(1, 23, 26)});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].first, 1);
  EXPECT_EQ(steps[0].end, 6);
  EXPECT_EQ(steps[1].first, 6);
  EXPECT_EQ(steps[1].end, 9);  // the last copy was made by no leaf of the step
}

TEST(StepsOfLeaves, AQueueThatLagsBehindDoesNotMoveWorkToTheNextStep) {
  // The program's thread began step 1 at call 20, before the queue issued the work of leaf 6.
  LaunchedCalls calls;
  calls.Add(10, 4, "aclnnMm").Add(25, 6, "aclnnAdd").Add(31, 24, "aclnnMm");
  const std::vector<StepRange> steps =
      StepsOfLeaves(calls.work(), {LeafStep(0, 3, 19), LeafStep(1, 20, 40)});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].end, 2);
  EXPECT_EQ(steps[1].first, 2);
}

}  // namespace
}  // namespace acltape::analyzer

// Replicas of several ranks that part (analyzer/ranks/replicas.h): which ranks are named.
#include "analyzer/ranks/replicas.h"

#include <gtest/gtest.h>

#include "tests/analyzer/trace_builder.h"

namespace acltape::test {
namespace {

using analyzer::ranks::Communication;
using analyzer::ranks::Lines;
using analyzer::ranks::ReplicaReport;

constexpr int64_t kRanks = 3;

// A program of three ranks. In each step an operator writes a tensor on each rank, then all of them
// reduce something.
class RanksTrace : public TraceBuilder {
 public:
  explicit RanksTrace(const std::string& path) : TraceBuilder(path) {
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      writer_.AddProcess(rank + 1, 100 + rank, "program", rank);
      writer_.AddThread(rank + 1, rank + 1, 100 + rank, "main");
      writer_.AddCommunicator({rank + 1, rank + 1, 0x1000 + rank, "world", rank, kRanks});
      states_.push_back(NewTensor({2}));
    }
  }

  // The operator leaves these values in the tensor of each rank.
  void Step(const std::vector<float>& values, const std::string& op) {
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      AddTo(rank, "aclnn", op, {Written("selfRef", states_[rank])});
      After("selfRef", std::vector<float>(2, values[rank]));
    }
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      AddTo(rank, "hccl", "HcclAllReduce", {Int("count", 4), Int("comm", rank + 1)});
    }
  }

 private:
  void AddTo(int64_t rank, const std::string& dialect, const std::string& name,
             const std::vector<Value>& arguments) {
    storage::Op op;
    op.dialect = dialect;
    op.name = name;
    storage::Call call;
    call.thread_id = rank + 1;
    Add(op, call, arguments);
  }

  std::vector<Tensor> states_;
};

ReplicaReport ReportOf(const std::vector<std::vector<float>>& steps,
                       const std::string& op = "aclnnInplaceAdds") {
  const TemporaryTrace file("replicas");
  {
    RanksTrace trace(file.path());
    for (const std::vector<float>& values : steps) trace.Step(values, op);
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const Communication all = analyzer::ranks::LoadCommunication(reader);
  const auto communicators = analyzer::ranks::FindCommunicators(all);
  Lines lines(reader);
  return analyzer::ranks::FindReplicas(reader, all, communicators, lines);
}

// The ranks of the only finding, and between which collectives it is.
void ExpectParted(const std::vector<std::vector<float>>& steps, const std::string& ranks,
                  const std::string& sentence) {
  const ReplicaReport report = ReportOf(steps);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].rule->id, "RANK-08");
  EXPECT_EQ(report.findings[0].ranks, ranks);
  EXPECT_NE(report.findings[0].message.find(sentence), std::string::npos)
      << report.findings[0].message;
}

TEST(Replicas, OfThreeThatWereEqualTheOddOneIsNamed) {
  for (size_t odd = 0; odd < kRanks; ++odd) {
    std::vector<float> last(kRanks, 3);
    last[odd] = 4;
    ExpectParted({{1, 1, 1}, {2, 2, 2}, last}, "rank " + std::to_string(odd),
                 "until collective 1 of communicator world, and different from collective 2 on");
  }
}

TEST(Replicas, ARankThatNeverWasOneIsNotNamed) {
  ExpectParted({{1, 1, 7}, {2, 2, 8}, {3, 4, 9}}, "rank 0, rank 1",
               "is equal on rank 0, rank 1 until collective 1 of");
  ExpectParted({{7, 1, 1}, {8, 2, 2}, {9, 3, 4}}, "rank 1, rank 2",
               "is equal on rank 1, rank 2 until collective 1 of");
}

TEST(Replicas, ARankThatComesToTheSameValueWhenOthersPartIsNotOne) {
  ExpectParted({{1, 1, 7}, {2, 2, 8}, {3, 4, 4}}, "rank 0, rank 1",
               "is equal on rank 0, rank 1 until collective 1 of");
  ExpectParted({{7, 1, 1}, {8, 2, 2}, {3, 3, 4}}, "rank 1, rank 2",
               "is equal on rank 1, rank 2 until collective 1 of");
}

TEST(Replicas, WhatIsOverwrittenInEachStepIsDataAndNoReplica) {
  const ReplicaReport report = ReportOf({{1, 1, 1}, {2, 2, 2}, {3, 3, 4}}, "aclnnInplaceCopy");
  EXPECT_EQ(report.findings.size(), 0u);
  EXPECT_EQ(report.tensors, 0);
}

TEST(Replicas, WhatIsDifferentFromTheStartOrEqualThroughoutIsNoFinding) {
  EXPECT_EQ(ReportOf({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}).findings.size(), 0u);
  const ReplicaReport equal = ReportOf({{1, 1, 5}, {2, 2, 6}, {3, 3, 7}});
  EXPECT_EQ(equal.findings.size(), 0u);
  EXPECT_EQ(equal.replicas, 1);
  EXPECT_EQ(equal.tensors, 1);
}

}  // namespace
}  // namespace acltape::test

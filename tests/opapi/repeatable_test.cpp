// Executors that are launched more than once, and new addresses in them.
#include <dlfcn.h>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr aclnnStatus kParamNull = 161001, kParamInvalid = 161002;

// An executor that outlives the objects it was made from.
class Repeatable : public testing::Test {
 protected:
  void Make(const char* name, const Args& args) {
    stream_ = TestStream();
    PackedCall call(name, args);
    ASSERT_EQ(call.Prepare(), OK) << TakeMessage();
    executor_ = call.executor();
    workspace_.resize(call.workspace_size());
    op_ = &call.op();
    ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor_), OK);
  }

  void TearDown() override {
    if (executor_ != nullptr) {
      EXPECT_EQ(aclDestroyAclOpExecutor(executor_), OK);
    }
    TakeMessage();
  }

  aclnnStatus Launch(aclrtStream stream) {
    return op_->launch(dlsym(RTLD_DEFAULT, std::string(op_->name).c_str()), nullptr,
                       workspace_.empty() ? nullptr : workspace_.data(), workspace_.size(),
                       executor_, stream);
  }

  void Run() {
    ASSERT_EQ(Launch(stream_), OK) << TakeMessage();
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }

  const acl::OperatorInfo* op_ = nullptr;
  aclOpExecutor* executor_ = nullptr;
  std::vector<char> workspace_;
  aclrtStream stream_ = nullptr;
};

TEST_F(Repeatable, ReadsItsInputsAnewAtEachLaunch) {
  const Tensor x = Random({3, 4}), y = Random({3, 4}), sum = Unwritten(x);
  Make("aclnnAdd", {x, y, 1, sum});
  for (int repeat = 0; repeat < 3; ++repeat) {
    x.copy_(Random({3, 4}));
    Run();
    EXPECT_TRUE(SameBits(sum, at::add(x, y))) << repeat;
  }
}

TEST_F(Repeatable, UsesItsWorkspaceAtEachLaunch) {
  const Tensor x = Random({3, 5}, at::kHalf), y = Random({5, 4}, at::kHalf);
  const Tensor product = at::empty({3, 4}, at::kHalf);
  Make("aclnnMm", {x, y, product, 0});
  ASSERT_FALSE(workspace_.empty());
  for (int repeat = 0; repeat < 2; ++repeat) {
    x.copy_(Random({3, 5}, at::kHalf));
    Run();
    EXPECT_TRUE(SameBits(product, at::mm(x.to(at::kFloat), y.to(at::kFloat)).to(at::kHalf)));
  }
}

TEST_F(Repeatable, TakesNewAddressesOfInputsAndOutputs) {
  const Tensor x = Random({3, 4}), y = Random({3, 4}), sum = Unwritten(x), z = Random({3, 4});
  const Tensor second = Unwritten(x), third = Unwritten(x);
  Make("aclnnAdd", {x, y, 1, sum});
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 1, nullptr, z.data_ptr()), OK);
  ASSERT_EQ(aclSetOutputTensorAddr(executor_, 0, nullptr, second.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(second, at::add(x, z)));
  ASSERT_EQ(aclSetTensorAddr(executor_, 0, nullptr, z.data_ptr()), OK);
  ASSERT_EQ(aclSetTensorAddr(executor_, 2, nullptr, third.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(third, at::add(z, z)));
}

TEST_F(Repeatable, CountsAnInPlaceOperandAsInputAndAsOutput) {
  const Tensor x = Random({5}), y = Random({5}), other = Random({5}), more = Random({5});
  const Tensor expected = at::add(other, y), expected_more = at::add(more, y);
  Make("aclnnInplaceAdd", {x, y, 1});
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 0, nullptr, other.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(other, expected));
  ASSERT_EQ(aclSetOutputTensorAddr(executor_, 0, nullptr, more.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(more, expected_more));
}

TEST_F(Repeatable, TakesNewAddressesInLists) {
  const Tensor a = Random({2, 3}), b = Random({1, 3}), c = Random({1, 3}), out = at::empty({3, 3});
  Make("aclnnCat", {std::vector<Tensor>{a, b}, 0, out});
  ASSERT_EQ(aclSetDynamicInputTensorAddr(executor_, 0, 1, nullptr, c.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(out, at::cat({a, c})));
  ASSERT_EQ(aclSetDynamicTensorAddr(executor_, 0, 1, nullptr, b.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(out, at::cat({a, b})));
}

// irIndex counts the inputs or the outputs, a list as one of them.
TEST_F(Repeatable, CountsListsAmongInputsAndOutputs) {
  const Tensor x = Random({4}), y = Random({4}), out = Unwritten(x), other = Unwritten(x);
  Make("aclnnForeachMulList",
       {std::vector<Tensor>{x}, std::vector<Tensor>{x}, std::vector<Tensor>{out}});
  ASSERT_EQ(aclSetDynamicInputTensorAddr(executor_, 1, 0, nullptr, y.data_ptr()), OK);
  ASSERT_EQ(aclSetDynamicOutputTensorAddr(executor_, 0, 0, nullptr, other.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(other, at::mul(x, y)));
  ASSERT_EQ(aclSetDynamicTensorAddr(executor_, 2, 0, nullptr, out.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(out, at::mul(x, y)));
}

TEST_F(Repeatable, CountsATensorAfterAList) {
  const Tensor x = Random({4}), one = Random({1}), other = Random({1}), out = Unwritten(x);
  Make("aclnnForeachMulScalar", {std::vector<Tensor>{x}, one, std::vector<Tensor>{out}});
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 1, nullptr, other.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(out, at::mul(x, other.reshape({}))));
  EXPECT_EQ(aclSetInputTensorAddr(executor_, 0, nullptr, other.data_ptr()), kParamInvalid);
}

TEST_F(Repeatable, RefusesIndicesThatTheOperatorLacks) {
  const Tensor x = Random({3}), out = Unwritten(x);
  Make("aclnnAdd", {x, x, 1, out});
  void* address = out.data_ptr();
  EXPECT_EQ(aclSetInputTensorAddr(executor_, 2, nullptr, address), kParamInvalid);
  EXPECT_NE(TakeMessage().find("aclnnAdd has no tensor at index 2"), std::string::npos);
  EXPECT_EQ(aclSetOutputTensorAddr(executor_, 1, nullptr, address), kParamInvalid);
  EXPECT_EQ(aclSetTensorAddr(executor_, 3, nullptr, address), kParamInvalid);
  EXPECT_EQ(aclSetDynamicTensorAddr(executor_, 0, 0, nullptr, address), kParamInvalid);
  EXPECT_EQ(aclSetDynamicInputTensorAddr(executor_, 5, 0, nullptr, address), kParamInvalid);
  EXPECT_EQ(aclSetDynamicOutputTensorAddr(executor_, 0, 0, nullptr, address), kParamInvalid);
  EXPECT_EQ(aclSetInputTensorAddr(nullptr, 0, nullptr, address), kParamNull);
  EXPECT_EQ(aclSetDynamicInputTensorAddr(nullptr, 0, 0, nullptr, address), kParamNull);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), kParamNull);
  Run();  // unharmed
  EXPECT_TRUE(SameBits(out, at::add(x, x)));
}

TEST_F(Repeatable, ANewAddressOfNullIsRefusedAtTheLaunch) {
  const Tensor x = Random({3}), out = Unwritten(x);
  Make("aclnnNeg", {x, out});
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 0, nullptr, nullptr), OK);
  EXPECT_EQ(Launch(stream_), kParamNull);
  EXPECT_EQ(TakeMessage(), "aclnnNeg: the address of self is NULL.");
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 0, nullptr, x.data_ptr()), OK);
  Run();
  EXPECT_TRUE(SameBits(out, at::neg(x)));
}

TEST(OneLaunch, ExecutorsTakeNoNewAddresses) {
  const Tensor x = Random({3}), out = Unwritten(x);
  TestStream();
  PackedCall call("aclnnNeg", {x, out});
  ASSERT_EQ(call.Prepare(), OK);
  EXPECT_EQ(aclSetInputTensorAddr(call.executor(), 0, nullptr, x.data_ptr()), kParamInvalid);
  EXPECT_NE(TakeMessage().find("not repeatable"), std::string::npos);
  EXPECT_EQ(aclSetDynamicInputTensorAddr(call.executor(), 0, 0, nullptr, x.data_ptr()),
            kParamInvalid);
  EXPECT_EQ(aclDestroyAclOpExecutor(call.executor()), OK);  // never launched
  TakeMessage();
}

TEST(OneLaunch, ANewRawAddressIsWhatTheNextCallUses) {
  const Tensor x = Random({4}), other = Random({4}), out = Unwritten(x);
  TestStream();
  PackedCall call("aclnnNeg", {x, out});
  ASSERT_EQ(aclSetRawTensorAddr(call.tensor(0), other.data_ptr()), OK);
  ASSERT_EQ(call.Prepare(), OK);
  ASSERT_EQ(call.Launch(TestStream()), OK);
  ASSERT_EQ(aclrtSynchronizeStream(TestStream()), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, at::neg(other)));
}

// Inside a capture each launch is bound to the addresses that the executor holds then; later
// changes and the executor's end reach neither the captured kernels nor their replays.
TEST_F(Repeatable, CAP_25_CapturedLaunchesKeepTheAddressesOfTheirTime) {
  const Tensor x = Random({6}), y = Random({6}), first = Unwritten(x), second = Unwritten(x);
  Make("aclnnExp", {x, first});
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), ACL_SUCCESS);
  ASSERT_EQ(Launch(stream), OK);
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 0, nullptr, y.data_ptr()), OK);
  ASSERT_EQ(aclSetOutputTensorAddr(executor_, 0, nullptr, second.data_ptr()), OK);
  ASSERT_EQ(Launch(stream), OK);
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  ASSERT_EQ(aclSetInputTensorAddr(executor_, 0, nullptr, first.data_ptr()), OK);
  ASSERT_EQ(aclDestroyAclOpExecutor(executor_), OK);
  executor_ = nullptr;
  for (int replay = 0; replay < 2; ++replay) {
    x.copy_(Random({6}));
    y.copy_(Random({6}));
    first.zero_();
    second.zero_();
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(first, at::exp(x))) << replay;
    EXPECT_TRUE(SameBits(second, at::exp(y))) << replay;
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace acltape::opapi

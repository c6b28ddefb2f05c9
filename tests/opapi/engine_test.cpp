// The two-phase call: arguments that are refused, executors, workspaces, captured kernels.
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// But of those in acl/data/not_exported.json, which lack both.
TEST(Exports, HaveBothPhasesOfTheOperatorsOfTheTable) {
  uint32_t exported = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const acl::OperatorInfo& op = acl::OperatorAt(i);
    const bool first = dlsym(RTLD_DEFAULT, std::string(op.workspace_name).c_str()) != nullptr;
    const bool second = dlsym(RTLD_DEFAULT, std::string(op.name).c_str()) != nullptr;
    EXPECT_EQ(first, second) << op.name;
    exported += first && second ? 1 : 0;
  }
  EXPECT_GT(exported, acl::OperatorCount() - 20);
}

// Adapters ask for it before they capture an operator whose lengths they update later.
TEST(Exports, HaveTheGreatestWorkspaceOfFusedAttention) {
  for (const char* version : {"V3", "V4", "V5"}) {
    const std::string op = std::string("aclnnFusedInferAttentionScore") + version;
    EXPECT_NE(dlsym(RTLD_DEFAULT, (op + "GetMaxWorkspaceSize").c_str()), nullptr) << op;
  }
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "aclnnAddGetMaxWorkspaceSize"), nullptr);
}

TEST(Exports, TellWhichOperatorsHaveAKernel) {
  const auto has_kernel =
      reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "SoftOperatorHasKernel"));
  ASSERT_NE(has_kernel, nullptr);
  EXPECT_TRUE(has_kernel("aclnnAdd"));
  EXPECT_FALSE(has_kernel("aclnnAttentionToFFN"));
  EXPECT_FALSE(has_kernel("aclnnNoSuchOperator"));
  EXPECT_FALSE(has_kernel(nullptr));
  int count = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    count += has_kernel(std::string(acl::OperatorAt(i).name).c_str());
  }
  EXPECT_GE(count, 300);
}

TEST(Prepare, RejectsNullArgumentsByName) {
  const Tensor x = Random({3});
  EXPECT_EQ(RunOperator("aclnnAdd", {Null{}, x, 1, Unwritten(x)}), 161001);
  EXPECT_EQ(LastMessage(), "aclnnAdd: self is NULL.");
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, Null{}, Unwritten(x)}), 161001);
  EXPECT_EQ(LastMessage(), "aclnnAdd: alpha is NULL.");
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, 1, Null{}}), 161001);
  EXPECT_EQ(LastMessage(), "aclnnAdd: out is NULL.");
}

TEST(Prepare, RejectsNullResultPointers) {
  const Tensor x = Random({3});
  PackedCall call("aclnnNeg", {x, Unwritten(x)});
  void* prepare = dlsym(RTLD_DEFAULT, "aclnnNegGetWorkspaceSize");
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.op().prepare(prepare, call.values(), nullptr, &executor), 161001);
  EXPECT_EQ(call.op().prepare(prepare, call.values(), &size, nullptr), 161001);
  TakeMessage();
}

TEST(Prepare, RejectsTensorsWithoutMemoryUnlessTheyAreEmpty) {
  const Tensor x = Random({3});
  const int64_t three = 3, zero = 0;
  PackedCall call("aclnnNeg", {x, Unwritten(x)});
  ASSERT_EQ(aclSetRawTensorAddr(call.tensor(1), nullptr), OK);
  EXPECT_EQ(call.Prepare(), 161001);
  EXPECT_EQ(TakeMessage(), "aclnnNeg: the address of out is NULL.");

  aclTensor* empty =
      aclCreateTensor(&zero, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &three, 1, nullptr);
  const acl::ArgValue args[] = {acl::Pack(empty), acl::Pack(empty)};
  uint64_t size = 1;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(
      call.op().prepare(dlsym(RTLD_DEFAULT, "aclnnNegGetWorkspaceSize"), args, &size, &executor),
      OK);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), OK);
  EXPECT_EQ(aclDestroyTensor(empty), OK);
}

TEST(Prepare, RejectsDtypesThatTheSoftDeviceLacksAndTakesEveryFormat) {
  const int64_t four = 4;
  float memory[4] = {};
  const auto prepare = [&](aclDataType dtype, aclFormat format) {
    aclTensor* tensor = aclCreateTensor(&four, 1, dtype, nullptr, 0, format, &four, 1, memory);
    const acl::ArgValue args[] = {acl::Pack(tensor), acl::Pack(tensor)};
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    const aclnnStatus status =
        acl::FindOperator("aclnnNeg")
            ->prepare(dlsym(RTLD_DEFAULT, "aclnnNegGetWorkspaceSize"), args, &size, &executor);
    EXPECT_EQ(executor != nullptr, status == OK);
    if (executor != nullptr) {
      EXPECT_EQ(aclDestroyAclOpExecutor(executor), OK);
    }
    aclDestroyTensor(tensor);
    return status;
  };
  EXPECT_EQ(prepare(ACL_INT4, ACL_FORMAT_ND), 161002);
  EXPECT_EQ(TakeMessage(), "aclnnNeg: self has dtype 29, which the soft device lacks.");
  EXPECT_EQ(prepare(ACL_FLOAT, ACL_FORMAT_FRACTAL_NZ), OK);
}

TEST(Prepare, RejectsOutputsWhoseElementsShareMemory) {
  const Tensor x = Random({4, 5}), out = at::zeros({1, 5}).expand({4, 5});
  EXPECT_EQ(RunOperator("aclnnNeg", {x, out}), 161002);
  EXPECT_NE(LastMessage().find("share memory"), std::string::npos) << LastMessage();
}

TEST(Prepare, RejectsDimsOutsideOfTheTensor) {
  const Tensor x = Random({4, 5});
  EXPECT_EQ(RunOperator("aclnnSoftmax", {x, 2, Unwritten(x)}), 161002);
  EXPECT_EQ(LastMessage(), "aclnnSoftmax: dim is 2, outside of a tensor of rank 2.");
  EXPECT_EQ(RunOperator("aclnnMm", {x, x, Unwritten(x), 0}), 161002);
  EXPECT_EQ(LastMessage(), "aclnnMm: shapes [4, 5] and [4, 5] do not multiply.");
}

TEST(Launch, RejectsNoExecutorAndAnotherOperatorsExecutor) {
  const Tensor x = Random({3});
  PackedCall call("aclnnNeg", {x, Unwritten(x)});
  void* launch = dlsym(RTLD_DEFAULT, "aclnnNeg");
  EXPECT_EQ(call.op().launch(launch, nullptr, nullptr, 0, nullptr, TestStream()), 161001);
  ASSERT_EQ(call.Prepare(), OK);
  EXPECT_EQ(call.op().launch(dlsym(RTLD_DEFAULT, "aclnnAbs"), nullptr, nullptr, 0, call.executor(),
                             TestStream()),
            161002);
  EXPECT_EQ(TakeMessage(), "aclnnAbs: the executor was made for aclnnNeg.");
  EXPECT_EQ(call.Launch(TestStream()), OK);
  EXPECT_EQ(aclrtSynchronizeStream(TestStream()), ACL_SUCCESS);
}

TEST(Launch, WithoutAnExecutorSaysWhyTheFirstPhaseWasRefused) {
  const Tensor x = Random({4});
  PackedCall call("aclnnNeg", {x, Unwritten(Random({5}))});
  ASSERT_EQ(call.Prepare(), 161002);
  const std::string reason = TakeMessage();
  void* launch = dlsym(RTLD_DEFAULT, "aclnnNeg");
  // In another thread, as a framework's queue does.
  std::thread([&] {
    EXPECT_EQ(call.op().launch(launch, nullptr, nullptr, 0, nullptr, nullptr), 161001);
    EXPECT_EQ(TakeMessage(), "aclnnNeg: executor is NULL; the first phase was refused: " + reason);
    EXPECT_EQ(call.op().launch(launch, nullptr, nullptr, 0, nullptr, nullptr), 161001);
    EXPECT_EQ(TakeMessage(), "aclnnNeg: executor is NULL.");
  }).join();
}

TEST(Launch, ReportsAKernelsExceptionAtTheSynchronise) {
  const Tensor weight = Random({4, 3}), out = Unwritten(Random({1, 3}));
  const Tensor index = at::full({1}, 9, at::kLong);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  PackedCall call("aclnnEmbedding", {weight, index, out});
  ASSERT_EQ(call.Prepare(), OK);
  EXPECT_EQ(call.Launch(stream), OK);  // rule ERR-03
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  aclrtDestroyStream(stream);
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  TakeMessage();
}

TEST(Launch, AFailureNamesTheOperatorTheErrorAndTheThreadOfTheFirstPhase) {
  const Tensor weight = Random({4, 3}), out = Unwritten(Random({1, 3}));
  const Tensor index = at::full({1}, 9, at::kLong);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  PackedCall call("aclnnEmbedding", {weight, index, out});
  ASSERT_EQ(call.Prepare(), OK);
  // A framework's queue launches in a thread of its own, and a third one asks what went wrong.
  std::thread([&] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(call.Launch(stream), OK);
  }).join();
  std::string message;
  std::thread([&] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), 507015);
    message = TakeMessage();
  }).join();
  EXPECT_NE(message.find("task aclnnEmbedding, prepared by thread " + std::to_string(gettid())),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("507015 (kernel failed): index out of range"), std::string::npos)
      << message;
  aclrtDestroyStream(stream);
}

TEST(Workspace, IsZeroForMostAndUsedByHalfProducts) {
  const Tensor x = Random({3, 5}), h = Random({3, 5}, at::kHalf), w = Random({5, 4}, at::kHalf);
  PackedCall plain("aclnnMm", {x, x.t(), at::empty({3, 3}), 0});
  ASSERT_EQ(plain.Prepare(), OK);
  EXPECT_EQ(plain.workspace_size(), 0u);
  aclDestroyAclOpExecutor(plain.executor());

  const Tensor expected = at::mm(h.to(at::kFloat), w.to(at::kFloat)).to(at::kHalf);
  const Tensor out = Unwritten(expected);
  PackedCall half("aclnnMm", {h, w, out, 0});
  ASSERT_EQ(half.Prepare(), OK);
  EXPECT_GE(half.workspace_size(), (15 + 20 + 12) * sizeof(float));

  void* launch = dlsym(RTLD_DEFAULT, "aclnnMm");
  std::vector<char> workspace(half.workspace_size());
  const uint64_t size = half.workspace_size();
  EXPECT_EQ(half.op().launch(launch, nullptr, nullptr, size, half.executor(), TestStream()),
            161001);
  EXPECT_NE(TakeMessage().find("workspace is NULL"), std::string::npos);
  EXPECT_EQ(
      half.op().launch(launch, nullptr, workspace.data(), size - 1, half.executor(), TestStream()),
      161002);
  EXPECT_NE(TakeMessage().find(" are needed."), std::string::npos);
  EXPECT_EQ(
      half.op().launch(launch, nullptr, workspace.data(), size, half.executor(), TestStream()), OK);
  ASSERT_EQ(aclrtSynchronizeStream(TestStream()), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, expected));
  EXPECT_TRUE(std::any_of(workspace.begin(), workspace.end(), [](char byte) { return byte != 0; }));
}

TEST(Objects, GiveBackWhatTheyWereMadeOf) {
  const int64_t dims[] = {2, 3}, strides[] = {1, 2}, storage[] = {9};
  float memory[9];
  aclTensor* tensor =
      aclCreateTensor(dims, 2, ACL_FLOAT, strides, 1, ACL_FORMAT_NCHW, storage, 1, memory);
  int64_t* values = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(aclGetViewShape(tensor, &values, &count), OK);
  EXPECT_EQ(std::vector<int64_t>(values, values + count), (std::vector<int64_t>{2, 3}));
  delete[] values;
  ASSERT_EQ(aclGetViewStrides(tensor, &values, &count), OK);
  EXPECT_EQ(std::vector<int64_t>(values, values + count), (std::vector<int64_t>{1, 2}));
  delete[] values;
  ASSERT_EQ(aclGetStorageShape(tensor, &values, &count), OK);
  EXPECT_EQ(std::vector<int64_t>(values, values + count), (std::vector<int64_t>{9}));
  delete[] values;
  int64_t offset = 0;
  aclFormat format;
  aclDataType dtype;
  void* address = nullptr;
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), OK);
  EXPECT_EQ(aclGetFormat(tensor, &format), OK);
  EXPECT_EQ(aclGetDataType(tensor, &dtype), OK);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), OK);
  EXPECT_EQ(offset, 1);
  EXPECT_EQ(format, ACL_FORMAT_NCHW);
  EXPECT_EQ(dtype, ACL_FLOAT);
  EXPECT_EQ(address, memory);
  EXPECT_EQ(aclGetDataType(nullptr, &dtype), 161001);
  EXPECT_EQ(aclGetViewOffset(tensor, nullptr), 161001);
  ASSERT_EQ(aclInitTensor(tensor, dims, 1, ACL_INT64, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr),
            OK);
  ASSERT_EQ(aclGetViewStrides(tensor, &values, &count), OK);
  EXPECT_EQ(std::vector<int64_t>(values, values + count), (std::vector<int64_t>{1}));
  delete[] values;
  EXPECT_EQ(aclDestroyTensor(tensor), OK);

  const float floats[] = {1, 2, 3};
  const bool bools[] = {true, false};
  aclFloatArray* float_array = aclCreateFloatArray(floats, 3);
  aclBoolArray* bool_array = aclCreateBoolArray(bools, 2);
  aclIntArray* int_array = aclCreateIntArray(dims, 2);
  double one = 1;
  aclScalar* scalar = aclCreateScalar(&one, ACL_DOUBLE);
  aclScalarList* scalars = aclCreateScalarList(&scalar, 1);
  aclTensorList* tensors = aclCreateTensorList(nullptr, 0);
  EXPECT_EQ(aclGetFloatArraySize(float_array, &count), OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(aclGetBoolArraySize(bool_array, &count), OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(aclGetIntArraySize(int_array, &count), OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(aclGetScalarListSize(scalars, &count), OK);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(aclGetTensorListSize(tensors, &count), OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(aclDestroyFloatArray(float_array), OK);
  EXPECT_EQ(aclDestroyBoolArray(bool_array), OK);
  EXPECT_EQ(aclDestroyIntArray(int_array), OK);
  EXPECT_EQ(aclDestroyScalarList(scalars), OK);
  EXPECT_EQ(aclDestroyTensorList(tensors), OK);
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  EXPECT_EQ(aclCreateScalar(&one, ACL_INT4), nullptr);
  TakeMessage();
}

TEST(Capture, ReplaysBoundKernelsOnNewInputsBitByBit) {
  TestStream();
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const Tensor x = Random({6, 16}), weight = Random({16, 16}), bias = Random({16});
  const Tensor hidden = at::empty({6, 16}), mixed = at::empty({6, 16}), noise = at::empty({6, 16});
  const auto reference = [&] {
    return at::softmax(at::gelu(at::addmm(bias, x, weight), "tanh"), -1);
  };
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), ACL_SUCCESS);
  {
    PackedCall linear("aclnnAddmm", {bias, x, weight, 1, 1, hidden, 0});
    PackedCall gelu("aclnnGelu", {hidden, hidden});
    PackedCall softmax("aclnnSoftmax", {hidden, -1, mixed});
    PackedCall normal("aclnnInplaceNormal", {noise, 0.0, 1.0, 7, 3});
    for (PackedCall* call : {&linear, &gelu, &softmax, &normal}) {
      ASSERT_EQ(call->Prepare(), OK);
      ASSERT_EQ(call->Launch(stream), OK);
    }
  }  // rule CAP-25: scalars and tensor handles may go, addresses stay
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  const Tensor first_noise = Unwritten(noise);
  for (int replay = 0; replay < 3; ++replay) {
    x.copy_(Random({6, 16}));
    mixed.zero_();
    noise.zero_();
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(mixed, reference())) << replay;
    if (replay == 0) first_noise.copy_(noise);
    EXPECT_TRUE(SameBits(noise, first_noise)) << "the same seed and offset give the same numbers";
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace acltape::opapi

// Models that are built without a capture: one with two streams, of which the first activates the
// second; one with labels, that jumps to the branch of an index or repeats itself; and one that
// goes on in the stream whose condition holds.
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 128;
constexpr size_t kBytes = kCount * sizeof(float);

struct Vectors {
  void* blocks[2];
  aclTensor* tensors[2];
  aclScalar* two;
  aclScalar* one;
};

struct Model {
  aclmdlRI handle = nullptr;
  aclrtStream streams[3] = {};
  int count = 0;
};

aclrtStream Bind(Model* model, uint32_t flag) {
  aclrtStream* stream = &model->streams[model->count++];
  CHECK_ACL(aclrtCreateStreamWithConfig(stream, 0, ACL_STREAM_PERSISTENT));
  CHECK_ACL(aclmdlRIBindStream(model->handle, *stream, flag));
  return *stream;
}

void Destroy(Model* model) {
  for (int i = 0; i < model->count; ++i) {
    CHECK_ACL(aclmdlRIUnbindStream(model->handle, model->streams[i]));
  }
  CHECK_ACL(aclmdlRIDestroy(model->handle));
  for (int i = 0; i < model->count; ++i) CHECK_ACL(aclrtDestroyStream(model->streams[i]));
}

void Print(const char* what, const Vectors& vectors) {
  float host[kCount];
  double sums[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtMemcpy(host, kBytes, vectors.blocks[i], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int64_t j = 0; j < kCount; ++j) sums[i] += host[j];
  }
  printf("%s: %.0f %.0f\n", what, sums[0], sums[1]);
}

void TwoStreams(const Vectors& vectors, aclrtStream stream) {
  Model model;
  CHECK_ACL(aclmdlRIBuildBegin(&model.handle, 0));
  aclrtStream head = Bind(&model, ACL_MODEL_STREAM_FLAG_HEAD);
  aclrtStream activated = Bind(&model, ACL_MODEL_STREAM_FLAG_DEFAULT);
  RUN_OP(head, aclnnMuls, vectors.tensors[0], vectors.two, vectors.tensors[1]);
  CHECK_ACL(aclrtActiveStream(activated, head));
  RUN_OP(activated, aclnnAdds, vectors.tensors[1], vectors.one, vectors.one, vectors.tensors[0]);
  CHECK_ACL(aclmdlRIEndTask(model.handle, activated));
  CHECK_ACL(aclmdlRIBuildEnd(model.handle, nullptr));
  CHECK_ACL(aclmdlRIExecute(model.handle, -1));
  Print("two streams, waited for", vectors);
  CHECK_ACL(aclmdlRIExecuteAsync(model.handle, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  Print("two streams, on a stream", vectors);
  Destroy(&model);
}

void Labels(const Vectors& vectors, aclrtStream stream) {
  void* memory = MallocDevice(64);  // the index of the branch, and zero
  CHECK_ACL(aclrtMemset(memory, 64, 0, 64));
  auto* words = static_cast<int32_t*>(memory);
  Model model;
  CHECK_ACL(aclmdlRIBuildBegin(&model.handle, 0));
  aclrtStream head = Bind(&model, ACL_MODEL_STREAM_FLAG_HEAD);
  aclrtLabel labels[2], end;
  aclrtLabelList list, to_end;
  for (aclrtLabel& label : labels) CHECK_ACL(aclrtCreateLabel(&label));
  CHECK_ACL(aclrtCreateLabel(&end));
  CHECK_ACL(aclrtCreateLabelList(labels, 2, &list));
  CHECK_ACL(aclrtCreateLabelList(&end, 1, &to_end));
  CHECK_ACL(aclrtSwitchLabelByIndex(words, 2, list, head));
  CHECK_ACL(aclrtSetLabel(labels[0], head));
  RUN_OP(head, aclnnInplaceMuls, vectors.tensors[0], vectors.two);
  CHECK_ACL(aclrtSwitchLabelByIndex(words + 1, 1, to_end, head));
  CHECK_ACL(aclrtSetLabel(labels[1], head));
  RUN_OP(head, aclnnInplaceAdds, vectors.tensors[1], vectors.one, vectors.one);
  CHECK_ACL(aclrtSetLabel(end, head));
  RUN_OP(head, aclnnInplaceAdds, vectors.tensors[0], vectors.one, vectors.one);
  CHECK_ACL(aclmdlRIEndTask(model.handle, head));
  CHECK_ACL(aclmdlRIBuildEnd(model.handle, nullptr));
  for (const int32_t index : {1, 0, 1}) {
    CHECK_ACL(aclrtMemcpy(words, 4, &index, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclmdlRIExecuteAsync(model.handle, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    Print(index == 0 ? "first label" : "second label", vectors);
  }
  for (aclrtLabelList each : {list, to_end}) CHECK_ACL(aclrtDestroyLabelList(each));
  for (aclrtLabel each : {labels[0], labels[1], end}) CHECK_ACL(aclrtDestroyLabel(each));
  Destroy(&model);
  CHECK_ACL(aclrtFree(memory));
}

void StreamSwitch(const Vectors& vectors, aclrtStream stream) {
  void* memory = MallocDevice(64);
  CHECK_ACL(aclrtMemset(memory, 64, 0, 64));
  auto* words = static_cast<int32_t*>(memory);
  Model model;
  CHECK_ACL(aclmdlRIBuildBegin(&model.handle, 0));
  aclrtStream head = Bind(&model, ACL_MODEL_STREAM_FLAG_HEAD);
  aclrtStream equal = Bind(&model, ACL_MODEL_STREAM_FLAG_DEFAULT);
  aclrtStream other = Bind(&model, ACL_MODEL_STREAM_FLAG_DEFAULT);
  CHECK_ACL(
      aclrtSwitchStream(words, ACL_RT_EQUAL, words + 1, ACL_RT_SWITCH_INT32, equal, nullptr, head));
  CHECK_ACL(aclrtSwitchStream(words, ACL_RT_NOT_EQUAL, words + 1, ACL_RT_SWITCH_INT32, other,
                              nullptr, head));
  RUN_OP(equal, aclnnInplaceMuls, vectors.tensors[0], vectors.two);
  RUN_OP(other, aclnnInplaceAdds, vectors.tensors[0], vectors.one, vectors.one);
  CHECK_ACL(aclmdlRIEndTask(model.handle, equal));
  CHECK_ACL(aclmdlRIEndTask(model.handle, other));
  CHECK_ACL(aclmdlRIBuildEnd(model.handle, nullptr));
  for (const int32_t value : {5, 0}) {
    CHECK_ACL(aclrtMemcpy(words, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclmdlRIExecuteAsync(model.handle, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    Print(value == 0 ? "equal" : "not equal", vectors);
  }
  Destroy(&model);
  CHECK_ACL(aclrtFree(memory));
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  Vectors vectors;
  vectors.two = MakeScalar(2);
  vectors.one = MakeScalar(1);
  float host[kCount];
  for (int i = 0; i < 2; ++i) {
    vectors.blocks[i] = MallocDevice(kBytes);
    vectors.tensors[i] = MakeVector(kCount, vectors.blocks[i]);
    for (int64_t j = 0; j < kCount; ++j) host[j] = static_cast<float>(j % 4 + i);
    CHECK_ACL(aclrtMemcpy(vectors.blocks[i], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  TwoStreams(vectors, stream);
  Labels(vectors, stream);
  StreamSwitch(vectors, stream);
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclDestroyTensor(vectors.tensors[i]));
    CHECK_ACL(aclrtFree(vectors.blocks[i]));
  }
  for (aclScalar* scalar : {vectors.two, vectors.one}) CHECK_ACL(aclDestroyScalar(scalar));
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("built_model: passed\n");
  return 0;
}

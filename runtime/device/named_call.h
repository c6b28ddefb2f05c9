// A call of an operator by its name (aclop): its tensors, its attributes, and what its
// implementation here is made of: operators of libopapi.so, called as the program would call them,
// so that a recorder in the process sees each of them.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "runtime/device/call.h"
#include "runtime/device/data_buffer.h"
#include "runtime/device/tensor_desc.h"

// Values as text: few operators have any that matters.
struct aclopAttr {
  std::map<std::string, std::string> texts;
};

namespace acltape::device {

struct NamedTensors {
  int count;
  const aclTensorDesc* const* descs;
  const aclDataBuffer* const* buffers;

  // An optional input that the program left out has no buffer, or one without memory.
  bool Has(int i) const {
    return i < count && buffers[i] != nullptr && buffers[i]->data != nullptr &&
           descs[i]->type != ACL_DT_UNDEFINED;
  }
  const std::vector<int64_t>& Shape(int i) const { return descs[i]->shape; }
  // The matrix lies in blocks (FRACTAL_NZ).
  bool InBlocks(int i) const {
    return descs[i]->storage_format == ACL_FORMAT_FRACTAL_NZ && descs[i]->shape.size() > 1;
  }
};

struct NamedCall {
  const char* name;
  NamedTensors inputs;
  NamedTensors outputs;
  const aclopAttr* attributes;
  aclrtStream stream;
  // The descriptions of the outputs, where an operator may tell a shape that it alone knows
  // (aclopCompileAndExecuteV2). Null elsewhere.
  aclTensorDesc* const* told = nullptr;

  // Empty where the attribute is not given.
  std::string Text(const char* attribute) const {
    if (attributes == nullptr) return "";
    auto found = attributes->texts.find(attribute);
    return found == attributes->texts.end() ? "" : found->second;
  }
  bool Flag(const char* attribute) const { return Text(attribute) == "true"; }
};

// The operator library's own function of this name, or the wrapper of a recorder. Null without the
// library: the device does without it.
template <typename F>
F OperatorFunction(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<F>(found);
  static void* const library = dlopen("libopapi.so", RTLD_LAZY | RTLD_LOCAL);
  return library != nullptr ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}

// A function of this library as the program would find it, so that a recorder in the process sees
// what an operator does to memory. The library may be loaded in a scope of its own.
template <typename F>
F DeviceFunction(const char* name, F own) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<F>(found);
  return own;
}

// Distances between the elements of a row-major tensor.
std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape);

// Tensors, lists and scalars of operator calls, which live as long as this (Note [Formats of
// tensors]).
class OperatorArguments {
 public:
  OperatorArguments() = default;
  OperatorArguments(const OperatorArguments&) = delete;
  OperatorArguments& operator=(const OperatorArguments&) = delete;
  ~OperatorArguments();

  // Part of a tensor of the call; `offset` in elements.
  aclTensor* View(const NamedTensors& tensors, int i, const std::vector<int64_t>& shape,
                  const std::vector<int64_t>& strides, int64_t offset = 0);
  // A tensor of the call with the shape that it was described with, row-major.
  aclTensor* Whole(const NamedTensors& tensors, int i) {
    return Dense(tensors, i, tensors.Shape(i));
  }
  // A row-major part.
  aclTensor* Dense(const NamedTensors& tensors, int i, const std::vector<int64_t>& shape,
                   int64_t offset = 0);
  // A tensor in other memory than the call's; `storage` is the shape of all that lies there.
  aclTensor* Tensor(aclDataType type, void* memory, const std::vector<int64_t>& storage,
                    const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                    int64_t offset = 0);
  // The tensors belong to the list from then on.
  aclTensorList* List(const std::vector<aclTensor*>& tensors);
  const aclScalar* Float(float value);
  // A scalar with the bytes of one value.
  const aclScalar* Scalar(aclDataType type, const void* value);
  const aclIntArray* Integers(const std::vector<int64_t>& values);
  const aclBoolArray* Booleans(std::initializer_list<bool> values);

 private:
  aclTensor* Created(aclDataType type, void* memory, const std::vector<int64_t>& storage,
                     aclFormat format, const std::vector<int64_t>& shape,
                     const std::vector<int64_t>& strides, int64_t offset);

  std::vector<aclTensor*> tensors_;
  std::vector<aclTensorList*> lists_;
  std::vector<aclScalar*> scalars_;
  std::vector<aclIntArray*> arrays_;
  std::vector<aclBoolArray*> truths_;
};

// Prepares and launches an operator of the library on the call's stream. `Prepare` is the type of
// its first phase, named `name` + "GetWorkspaceSize".
template <typename Prepare, typename... Arguments>
aclError RunOperator(const NamedCall& call, const std::string& name, Arguments... arguments) {
  using Launch = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);
  const auto prepare = OperatorFunction<Prepare>((name + "GetWorkspaceSize").c_str());
  const auto launch = OperatorFunction<Launch>(name.c_str());
  if (prepare == nullptr || launch == nullptr) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the soft device computes it by %s of libopapi.so, which is not there",
                call.name, name.c_str());
  }
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  ACLTAPE_RETURN_IF_FAILED(prepare(arguments..., &workspace, &executor));
  if (workspace > 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclop %s: the kernel of %s wants a workspace",
                call.name, name.c_str());
  }
  return launch(nullptr, 0, executor, call.stream);
}

// One layer of an LSTM in one direction, over a sequence (DynamicRNN) or for one step
// (DynamicRNNV2), and their gradients.
aclError RunLstm(const NamedCall& call);
aclError RunLstmGradient(const NamedCall& call);
aclError RunLstmCell(const NamedCall& call);
aclError RunLstmCellGradient(const NamedCall& call);

}  // namespace acltape::device

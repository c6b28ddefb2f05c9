#include "replayer/bound_call.h"

#include <cstring>

namespace acltape::replayer {
namespace {

using acl::ArgKind;
using analyzer::LoweredTensor;
using analyzer::LoweredValue;
using storage::DType;
using storage::ValueKind;

struct TypeRow {
  DType dtype;
  aclDataType acl;
};
constexpr TypeRow kTypes[] = {
    {DType::kUint8, ACL_UINT8},           {DType::kInt8, ACL_INT8},
    {DType::kInt16, ACL_INT16},           {DType::kInt32, ACL_INT32},
    {DType::kInt64, ACL_INT64},           {DType::kFloat16, ACL_FLOAT16},
    {DType::kFloat32, ACL_FLOAT},         {DType::kFloat64, ACL_DOUBLE},
    {DType::kComplex32, ACL_COMPLEX32},   {DType::kComplex64, ACL_COMPLEX64},
    {DType::kComplex128, ACL_COMPLEX128}, {DType::kBool, ACL_BOOL},
    {DType::kBfloat16, ACL_BF16},
};

aclDataType AclType(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.acl;
  }
  throw UnsupportedOperator("no ACL element type for " + std::string(DTypeName(dtype)));
}

bool IsNumber(const LoweredValue& value) {
  return value.kind == ValueKind::kInt || value.kind == ValueKind::kBool ||
         value.kind == ValueKind::kReal;
}

[[noreturn]] void Misfit(const acl::ArgInfo& info, const LoweredValue& value) {
  throw UnsupportedOperator("argument " + std::string(info.name) + " cannot take a " +
                            std::string(ValueKindName(value.kind)));
}

}  // namespace

void* Workspace::Reserve(uint64_t bytes) {
  if (bytes <= block_.bytes()) return block_.data();
  if (frozen_) {
    throw Error(ErrorKind::kDevice, "an operator needs " + std::to_string(bytes) +
                                        " bytes of workspace, more than in the warm-up before "
                                        "the capture");
  }
  device_.Synchronize();
  block_ = Block();
  block_ = Block(device_, Block::Kind::kDevice, bytes + bytes / 4);
  return block_.data();
}

// The ACL objects of one call, destroyed with it.
class BoundCall::Objects {
 public:
  Objects(const acl::Api& api, size_t count) : api_(api) { values_.reserve(count); }
  ~Objects() {
    for (const aclTensor* tensor : tensors_) api_.aclDestroyTensor(tensor);
    for (const aclTensorList* list : lists_) api_.aclDestroyTensorList(list);  // with its tensors
    for (const aclScalar* scalar : scalars_) api_.aclDestroyScalar(scalar);
    for (const aclIntArray* array : int_arrays_) api_.aclDestroyIntArray(array);
    for (const aclFloatArray* array : float_arrays_) api_.aclDestroyFloatArray(array);
    for (const aclBoolArray* array : bool_arrays_) api_.aclDestroyBoolArray(array);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  void Add(const Argument& argument) { values_.push_back(Make(argument)); }
  const acl::ArgValue* values() const { return values_.data(); }

 private:
  template <typename T>
  static T* Made(T* object, const char* what) {
    if (object == nullptr) throw Error(ErrorKind::kDevice, std::string(what) + " returned null");
    return object;
  }

  aclTensor* MakeTensor(const Tensor& tensor) {
    return Made(api_.aclCreateTensor(tensor.shape.data(), tensor.shape.size(), tensor.dtype,
                                     tensor.strides.data(), 0, ACL_FORMAT_ND,
                                     &tensor.storage_elements, 1, tensor.address),
                "aclCreateTensor");
  }

  acl::ArgValue Make(const Argument& argument) {
    acl::ArgValue value{};
    if (argument.absent) return value;
    switch (argument.kind) {
      case ArgKind::kTensor: {
        aclTensor* tensor = MakeTensor(argument.tensors[0]);
        tensors_.push_back(tensor);
        value.pointer = tensor;
        return value;
      }
      case ArgKind::kTensorList: {
        std::vector<const aclTensor*> tensors;
        for (const Tensor& tensor : argument.tensors) {
          tensors.push_back(tensor.present ? MakeTensor(tensor) : nullptr);
        }
        const aclTensorList* list =
            Made(api_.aclCreateTensorList(tensors.data(), tensors.size()), "aclCreateTensorList");
        lists_.push_back(list);
        value.pointer = list;
        return value;
      }
      case ArgKind::kScalar: {
        acl::ArgValue number = argument.plain;
        bool flag = number.integer != 0;
        void* bytes = argument.scalar_type == ACL_BOOL ? static_cast<void*>(&flag) : &number;
        const aclScalar* scalar =
            Made(api_.aclCreateScalar(bytes, argument.scalar_type), "aclCreateScalar");
        scalars_.push_back(scalar);
        value.pointer = scalar;
        return value;
      }
      case ArgKind::kIntArray: {
        const aclIntArray* array =
            Made(api_.aclCreateIntArray(argument.integers.data(), argument.integers.size()),
                 "aclCreateIntArray");
        int_arrays_.push_back(array);
        value.pointer = array;
        return value;
      }
      case ArgKind::kFloatArray: {
        const aclFloatArray* array =
            Made(api_.aclCreateFloatArray(argument.floats.data(), argument.floats.size()),
                 "aclCreateFloatArray");
        float_arrays_.push_back(array);
        value.pointer = array;
        return value;
      }
      case ArgKind::kBoolArray: {
        const aclBoolArray* array =
            Made(api_.aclCreateBoolArray(reinterpret_cast<const bool*>(argument.flags.data()),
                                         argument.flags.size()),
                 "aclCreateBoolArray");
        bool_arrays_.push_back(array);
        value.pointer = array;
        return value;
      }
      case ArgKind::kString:
        value.pointer = argument.text.c_str();
        return value;
      default:
        return argument.plain;
    }
  }

  const acl::Api& api_;
  std::vector<acl::ArgValue> values_;
  std::vector<const aclTensor*> tensors_;
  std::vector<const aclTensorList*> lists_;
  std::vector<const aclScalar*> scalars_;
  std::vector<const aclIntArray*> int_arrays_;
  std::vector<const aclFloatArray*> float_arrays_;
  std::vector<const aclBoolArray*> bool_arrays_;
};

BoundCall::BoundCall(const Device& device, const analyzer::Invocation& invocation,
                     const AddressOf& address_of) {
  info_ = acl::FindOperator(invocation.op);
  if (info_ == nullptr) throw UnsupportedOperator("the operator table has no " + invocation.op);
  functions_ = device.library().Operator(*info_);
  if (functions_.prepare == nullptr || functions_.launch == nullptr) {
    throw UnsupportedOperator("the device library has no " + invocation.op);
  }
  if (invocation.arguments.size() != info_->arg_count) {
    throw UnsupportedOperator(invocation.op + " takes " + std::to_string(info_->arg_count) +
                              " arguments, its rule gives " +
                              std::to_string(invocation.arguments.size()));
  }
  for (uint32_t i = 0; i < info_->arg_count; ++i) {
    try {
      arguments_.push_back(Convert(info_->args[i], invocation.arguments[i], address_of));
    } catch (const UnsupportedOperator& cause) {
      throw UnsupportedOperator(invocation.op + ": " + cause.what());
    }
  }
}

BoundCall::Argument BoundCall::Convert(const acl::ArgInfo& info, const LoweredValue& value,
                                       const AddressOf& address_of) const {
  Argument argument;
  argument.kind = info.kind;
  const auto convert_tensor = [&](const LoweredTensor& lowered) {
    Tensor tensor;
    tensor.present = lowered.present;
    if (!lowered.present) return tensor;
    constexpr uint32_t kPlainViews = ~uint32_t{2 | 4 | 8};  // conjugate, negative, opaque
    if ((lowered.layout.flags & ~kPlainViews) != 0) {
      throw UnsupportedOperator("a lazily conjugated, negated or opaque tensor");
    }
    tensor.dtype = AclType(lowered.layout.dtype);
    tensor.shape = lowered.layout.shape;
    tensor.strides = lowered.layout.strides;
    tensor.storage_elements = (lowered.layout.EndByte() - lowered.layout.FirstByte()) /
                              storage::DTypeBytes(lowered.layout.dtype);
    tensor.address = address_of(lowered);
    return tensor;
  };
  switch (info.kind) {
    case ArgKind::kTensor:
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (value.kind != ValueKind::kTensor) Misfit(info, value);
      argument.tensors.push_back(convert_tensor(value.tensors[0]));
      return argument;
    case ArgKind::kTensorList:
      if (value.kind != ValueKind::kTensorList) Misfit(info, value);
      for (const LoweredTensor& tensor : value.tensors) {
        argument.tensors.push_back(convert_tensor(tensor));
      }
      return argument;
    case ArgKind::kScalar:
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (!IsNumber(value)) Misfit(info, value);
      if (value.kind == ValueKind::kReal) {
        argument.scalar_type = ACL_DOUBLE;
        argument.plain.real = value.real;
      } else {
        argument.scalar_type = value.kind == ValueKind::kBool ? ACL_BOOL : ACL_INT64;
        argument.plain.integer = value.integer;
      }
      return argument;
    case ArgKind::kIntArray:
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (value.kind != ValueKind::kIntList) Misfit(info, value);
      argument.integers = value.integers;
      return argument;
    case ArgKind::kFloatArray:
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (value.kind != ValueKind::kRealList) Misfit(info, value);
      argument.floats.assign(value.reals.begin(), value.reals.end());
      return argument;
    case ArgKind::kBoolArray:
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (value.kind != ValueKind::kBoolList) Misfit(info, value);
      for (const int64_t flag : value.integers) argument.flags.push_back(flag != 0);
      return argument;
    case ArgKind::kString:
      argument.absent = value.kind == ValueKind::kNone;
      if (!argument.absent && value.kind != ValueKind::kText) Misfit(info, value);
      argument.text = value.text;
      return argument;
    case ArgKind::kFloat:
    case ArgKind::kDouble:
      if (!IsNumber(value)) Misfit(info, value);
      argument.plain.real =
          value.kind == ValueKind::kReal ? value.real : static_cast<double>(value.integer);
      return argument;
    case ArgKind::kDtype:
      if (value.kind != ValueKind::kDtype) Misfit(info, value);
      argument.plain.integer = AclType(static_cast<DType>(value.integer));
      return argument;
    default:  // integers and booleans
      if (value.kind != ValueKind::kInt && value.kind != ValueKind::kBool) Misfit(info, value);
      argument.plain.integer = value.integer;
      return argument;
  }
}

aclOpExecutor* BoundCall::Prepare(const Device& device, const Objects& objects,
                                  uint64_t* workspace_bytes) const {
  aclOpExecutor* executor = nullptr;
  const int status =
      info_->prepare(functions_.prepare, objects.values(), workspace_bytes, &executor);
  if (status == 0) return executor;
  const char* message =
      device.api().aclGetRecentErrMsg == nullptr ? nullptr : device.api().aclGetRecentErrMsg();
  throw UnsupportedOperator(std::string(info_->workspace_name) + " refused with code " +
                            std::to_string(status) +
                            (message == nullptr ? "" : ": " + std::string(message)));
}

void BoundCall::Probe(const Device& device) const {
  Objects objects(device.api(), arguments_.size());
  for (const Argument& argument : arguments_) objects.Add(argument);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = Prepare(device, objects, &workspace_bytes);
  if (executor != nullptr && device.api().aclDestroyAclOpExecutor != nullptr) {
    device.api().aclDestroyAclOpExecutor(executor);
  }
}

void BoundCall::Run(const Device& device, Workspace& workspace) const {
  Objects objects(device.api(), arguments_.size());
  for (const Argument& argument : arguments_) objects.Add(argument);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = Prepare(device, objects, &workspace_bytes);
  void* memory = workspace_bytes == 0 ? nullptr : workspace.Reserve(workspace_bytes);
  device.Check(info_->launch(functions_.launch, objects.values(), memory, workspace_bytes, executor,
                             device.stream()),
               info_->name.data());  // literals of the generated table end with zero
}

}  // namespace acltape::replayer

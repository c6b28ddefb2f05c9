#include "replayer/device/bound_call.h"

#include <algorithm>
#include <array>

#include "replayer/device/lowered_scalar.h"
#include "storage/blocked_format.h"

namespace acltape::replayer {
namespace {

using acl::ArgKind;
using analyzer::lowering::LoweredTensor;
using analyzer::lowering::LoweredValue;
using storage::DType;
using storage::ValueKind;

aclDataType TypeOf(DType dtype) {
  const aclDataType type = AclType(dtype);
  if (type != ACL_DT_UNDEFINED) return type;
  throw UnsupportedOperator("no ACL element type for " + std::string(DTypeName(dtype)));
}

aclFormat FormatOf(const std::string& name) {
  const aclFormat format = AclFormat(name);
  if (format != ACL_FORMAT_UNDEFINED) return format;
  throw UnsupportedOperator("no ACL format " + name);
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

// The ACL objects of one call. They are destroyed with this object.
class BoundCall::Objects {
 public:
  Objects(const acl::Api& api, size_t count) : api_(api) { values_.reserve(count); }
  ~Objects() {
    for (const aclTensor* tensor : tensors_) api_.aclDestroyTensor(tensor);
    for (const aclTensorList* list : lists_) api_.aclDestroyTensorList(list);  // with its tensors
    for (const aclScalar* scalar : scalars_) api_.aclDestroyScalar(scalar);
    for (const aclScalarList* list : scalar_lists_) {  // with its scalars
      api_.aclDestroyScalarList(list);
    }
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
                                     tensor.strides.data(), tensor.offset, tensor.format,
                                     tensor.storage.data(), tensor.storage.size(), tensor.address),
                "aclCreateTensor");
  }

  aclScalar* MakeScalar(const ScalarValue& scalar) {
    std::array<uint8_t, 16> bytes = scalar.bytes;
    return Made(api_.aclCreateScalar(bytes.data(), scalar.dtype), "aclCreateScalar");
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
        const aclScalar* scalar = MakeScalar(argument.scalars[0]);
        scalars_.push_back(scalar);
        value.pointer = scalar;
        return value;
      }
      case ArgKind::kScalarList: {
        std::vector<const aclScalar*> scalars;
        for (const ScalarValue& scalar : argument.scalars) scalars.push_back(MakeScalar(scalar));
        const aclScalarList* list =
            Made(api_.aclCreateScalarList(scalars.data(), scalars.size()), "aclCreateScalarList");
        scalar_lists_.push_back(list);
        value.pointer = list;
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
  std::vector<const aclScalarList*> scalar_lists_;
  std::vector<const aclIntArray*> int_arrays_;
  std::vector<const aclFloatArray*> float_arrays_;
  std::vector<const aclBoolArray*> bool_arrays_;
};

BoundCall::BoundCall(const Device& device, const analyzer::lowering::Invocation& invocation,
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

void BoundCall::AddScalar(const acl::ArgInfo& info, const LoweredValue& value,
                          const ScalarValue& scalar, Argument& argument) {
  if (scalar.dtype == ACL_DT_UNDEFINED) {
    if (value.kind != ValueKind::kScalar && value.kind != ValueKind::kScalarList) {
      Misfit(info, value);
    }
    throw UnsupportedOperator("argument " + std::string(info.name) + " is a scalar of type " +
                              value.text);
  }
  argument.scalars.push_back(scalar);
}

BoundCall::Argument BoundCall::Convert(const acl::ArgInfo& info, const LoweredValue& value,
                                       const AddressOf& address_of) const {
  Argument argument;
  argument.kind = info.kind;
  const auto convert_tensor = [&](const LoweredTensor& lowered) {
    Tensor tensor;
    tensor.present = lowered.present;
    if (!lowered.present) return tensor;
    constexpr uint32_t kNotPlain =
        meaning::kTensorConjugate | meaning::kTensorNegative | meaning::kTensorOpaque;
    if ((lowered.layout.flags & kNotPlain) != 0) {
      throw UnsupportedOperator("a lazily conjugated, negated or opaque tensor");
    }
    tensor.address = address_of(lowered);
    if (const auto view = storage::ParseFourBitFormat(lowered.layout.format)) {
      tensor.dtype = ACL_INT4;
      tensor.format = ACL_FORMAT_ND;
      tensor.shape = view->sizes;
      tensor.strides = view->strides;
      tensor.offset = view->offset;
      tensor.storage = {2 * lowered.layout.ElementCount()};
      return tensor;
    }
    if (const auto view = storage::ParseFourBitBlocksFormat(lowered.layout.format)) {
      tensor.dtype = ACL_INT4;
      tensor.format = ACL_FORMAT_FRACTAL_NZ;
      tensor.shape = view->sizes;
      tensor.strides = view->strides;
      tensor.storage = lowered.layout.shape;
      if (!tensor.storage.empty()) tensor.storage.back() *= 2;
      return tensor;
    }
    tensor.dtype = TypeOf(lowered.layout.dtype);
    if (const auto view = storage::ParseBlockedFormat(lowered.layout.format)) {
      tensor.format = ACL_FORMAT_FRACTAL_NZ;
      tensor.shape = view->sizes;
      tensor.strides = view->strides;
      tensor.storage = lowered.layout.shape;
      return tensor;
    }
    tensor.format = FormatOf(lowered.layout.format);
    tensor.shape = lowered.layout.shape;
    tensor.strides = lowered.layout.strides;
    tensor.storage = {(lowered.layout.EndByte() - lowered.layout.FirstByte()) /
                      storage::DTypeBytes(lowered.layout.dtype)};
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
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (value.kind != ValueKind::kTensorList) Misfit(info, value);
      for (const LoweredTensor& tensor : value.tensors) {
        argument.tensors.push_back(convert_tensor(tensor));
      }
      return argument;
    case ArgKind::kScalar:
      argument.absent = value.kind == ValueKind::kNone;
      if (!argument.absent) AddScalar(info, value, ScalarOfLowered(value), argument);
      return argument;
    case ArgKind::kScalarList:
      argument.absent = value.kind == ValueKind::kNone;
      if (argument.absent) return argument;
      if (value.kind != ValueKind::kScalarList) Misfit(info, value);
      for (const ScalarValue& scalar : ScalarsOfLowered(value)) {
        AddScalar(info, value, scalar, argument);
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
      if (value.kind == ValueKind::kInt) {  // recorded from the ACL interface, as an aclDataType
        argument.plain.integer = value.integer;
        return argument;
      }
      if (value.kind != ValueKind::kDtype) Misfit(info, value);
      argument.plain.integer = TypeOf(static_cast<DType>(value.integer));
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
  const std::string sentence = std::string(info_->workspace_name) + " refused with code " +
                               std::to_string(status) +
                               (message == nullptr ? "" : ": " + std::string(message));
  // The operator is there. To go on with recorded results would hide that nothing ran.
  if (status == ACL_ERROR_RT_MEMORY_ALLOCATION) throw CallFailed(status, sentence);
  throw UnsupportedOperator(sentence);
}

uint64_t BoundCall::Probe(const Device& device) const {
  Objects objects(device.api(), arguments_.size());
  for (const Argument& argument : arguments_) objects.Add(argument);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = Prepare(device, objects, &workspace_bytes);
  if (executor != nullptr && device.api().aclDestroyAclOpExecutor != nullptr) {
    device.api().aclDestroyAclOpExecutor(executor);
  }
  return workspace_bytes;
}

void BoundCall::Run(const Device& device, aclrtStream stream, const Reserve& reserve) const {
  Objects objects(device.api(), arguments_.size());
  for (const Argument& argument : arguments_) objects.Add(argument);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = Prepare(device, objects, &workspace_bytes);
  void* memory = workspace_bytes == 0 ? nullptr : reserve(workspace_bytes);
  device.Check(
      info_->launch(functions_.launch, objects.values(), memory, workspace_bytes, executor, stream),
      info_->name.data());  // names in the generated table are literals, so they end with zero
}

}  // namespace acltape::replayer

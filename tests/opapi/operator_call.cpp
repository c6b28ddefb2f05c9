#include "tests/opapi/operator_call.h"

#include <dlfcn.h>

#include <cstring>
#include <sstream>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/program_writer.h"

namespace acltape::opapi {

std::string TakeMessage() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

namespace {

using acl::ArgKind;
using acl::ArgValue;

const std::map<at::ScalarType, aclDataType> kDtypes = {
    {at::kFloat, ACL_FLOAT},
    {at::kDouble, ACL_DOUBLE},
    {at::kHalf, ACL_FLOAT16},
    {at::kBFloat16, ACL_BF16},
    {at::kLong, ACL_INT64},
    {at::kInt, ACL_INT32},
    {at::kShort, ACL_INT16},
    {at::kChar, ACL_INT8},
    {at::kByte, ACL_UINT8},
    {at::kBool, ACL_BOOL},
    {at::kComplexFloat, ACL_COMPLEX64},
    {at::kComplexDouble, ACL_COMPLEX128},
};

aclScalar* ScalarOf(const at::Scalar& number) {
  if (number.isBoolean()) {
    bool value = number.toBool();
    return aclCreateScalar(&value, ACL_BOOL);
  }
  if (number.isIntegral(false)) {
    int64_t value = number.toLong();
    return aclCreateScalar(&value, ACL_INT64);
  }
  double value = number.toDouble();
  return aclCreateScalar(&value, ACL_DOUBLE);
}

struct Packer {
  ArgKind kind;

  ArgValue operator()(Null) const { return acl::Pack<const void*>(nullptr); }
  ArgValue operator()(const at::Tensor& tensor) const { return acl::Pack(ViewOf(tensor)); }
  ArgValue operator()(const std::vector<at::Tensor>& tensors) const {
    std::vector<aclTensor*> views;
    for (const at::Tensor& tensor : tensors) views.push_back(ViewOf(tensor));
    return acl::Pack(aclCreateTensorList(views.data(), views.size()));
  }
  ArgValue operator()(const at::Scalar& number) const {
    if (kind == ArgKind::kFloat || kind == ArgKind::kDouble) return acl::Pack(number.toDouble());
    return acl::Pack(ScalarOf(number));
  }
  ArgValue operator()(const std::vector<at::Scalar>& numbers) const {
    std::vector<aclScalar*> scalars;
    for (const at::Scalar& number : numbers) scalars.push_back(ScalarOf(number));
    return acl::Pack(aclCreateScalarList(scalars.data(), scalars.size()));
  }
  ArgValue operator()(const std::vector<int64_t>& values) const {
    if (kind == ArgKind::kFloatArray) {
      const std::vector<float> floats(values.begin(), values.end());
      return acl::Pack(aclCreateFloatArray(floats.data(), floats.size()));
    }
    if (kind != ArgKind::kBoolArray)
      return acl::Pack(aclCreateIntArray(values.data(), values.size()));
    bool bools[8];
    for (size_t i = 0; i < values.size(); ++i) bools[i] = values[i] != 0;
    return acl::Pack(aclCreateBoolArray(bools, values.size()));
  }
  ArgValue operator()(bool value) const { return (*this)(at::Scalar(value), value); }
  ArgValue operator()(int value) const { return (*this)(at::Scalar(int64_t{value}), value); }
  ArgValue operator()(int64_t value) const { return (*this)(at::Scalar(value), value); }
  ArgValue operator()(double value) const { return (*this)(at::Scalar(value), value); }
  ArgValue operator()(at::ScalarType dtype) const {
    return acl::Pack(static_cast<int64_t>(kDtypes.at(dtype)));
  }
  ArgValue operator()(const char* text) const { return acl::Pack(text); }

  // A plain number, or an aclScalar where the operator takes one.
  template <typename T>
  ArgValue operator()(const at::Scalar& number, T value) const {
    if (kind == ArgKind::kScalar) return acl::Pack(ScalarOf(number));
    if (kind == ArgKind::kFloat || kind == ArgKind::kDouble) {
      return acl::Pack(static_cast<double>(value));
    }
    return acl::Pack(value);
  }
};

void* Symbol(std::string_view name) {
  void* symbol = dlsym(RTLD_DEFAULT, std::string(name).c_str());
  EXPECT_NE(symbol, nullptr) << name << " is not exported";
  return symbol;
}

std::string last_message;

int Remember(int status) {
  last_message = TakeMessage();
  return status;
}

}  // namespace

void* StorageOf(const at::Tensor& tensor) {
  return const_cast<void*>(static_cast<const void*>(tensor.storage().data()));
}

aclTensor* ViewOf(const at::Tensor& tensor) {
  // The storage's start and an element offset, as a framework passes a view.
  const int64_t offset = tensor.storage_offset();
  void* storage = StorageOf(tensor);
  const int64_t elements =
      static_cast<int64_t>(tensor.storage().nbytes() / std::max<size_t>(tensor.element_size(), 1));
  return aclCreateTensor(tensor.sizes().data(), tensor.dim(), kDtypes.at(tensor.scalar_type()),
                         tensor.strides().data(), offset, ACL_FORMAT_ND, &elements, 1, storage);
}

PackedCall::PackedCall(const char* name, Args args)
    : op_(acl::FindOperator(name)), args_(std::move(args)) {
  if (op_ == nullptr) throw std::invalid_argument(std::string("unknown operator ") + name);
  if (args_.size() != op_->arg_count) {
    throw std::invalid_argument(std::string(name) + " takes " + std::to_string(op_->arg_count) +
                                " arguments");
  }
  for (uint32_t i = 0; i < op_->arg_count; ++i) {
    values_.push_back(std::visit(Packer{op_->args[i].kind}, args_[i]));
  }
}

PackedCall::~PackedCall() {
  for (uint32_t i = 0; i < op_->arg_count; ++i) {
    const ArgValue& value = values_[i];
    switch (op_->args[i].kind) {
      case ArgKind::kTensor:
        aclDestroyTensor(acl::Unpack<aclTensor*>(value));
        break;
      case ArgKind::kTensorList:
        aclDestroyTensorList(acl::Unpack<aclTensorList*>(value));
        break;
      case ArgKind::kScalar:
        aclDestroyScalar(acl::Unpack<aclScalar*>(value));
        break;
      case ArgKind::kScalarList:
        aclDestroyScalarList(acl::Unpack<aclScalarList*>(value));
        break;
      case ArgKind::kIntArray:
        aclDestroyIntArray(acl::Unpack<aclIntArray*>(value));
        break;
      case ArgKind::kFloatArray:
        aclDestroyFloatArray(acl::Unpack<aclFloatArray*>(value));
        break;
      case ArgKind::kBoolArray:
        aclDestroyBoolArray(acl::Unpack<aclBoolArray*>(value));
        break;
      default:
        break;
    }
  }
}

aclnnStatus PackedCall::Prepare() {
  return op_->prepare(Symbol(op_->workspace_name), values_.data(), &workspace_size_, &executor_);
}

aclnnStatus PackedCall::Launch(aclrtStream stream) {
  workspaces_.emplace_back(workspace_size_);
  return op_->launch(Symbol(op_->name), values_.data(),
                     workspace_size_ == 0 ? nullptr : workspaces_.back().data(), workspace_size_,
                     executor_, stream);
}

aclrtStream TestStream() {
  static aclrtStream stream = [] {
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream made = nullptr;
    EXPECT_EQ(aclrtCreateStream(&made), ACL_SUCCESS);
    return made;
  }();
  return stream;
}

CallObserver& BeforeEachCall() {
  static CallObserver observer = nullptr;
  return observer;
}

CallObserver& AfterEachSuccess() {
  static CallObserver observer = nullptr;
  return observer;
}

CallWatcher*& Watcher() {
  static CallWatcher* watcher = nullptr;
  return watcher;
}

namespace {

Shapes last_shapes;

Shapes ShapesAfter(const PackedCall& call, const Args& args) {
  Shapes shapes;
  for (uint32_t i = 0; i < call.op().arg_count; ++i) {
    const acl::ArgInfo& info = call.op().args[i];
    const auto* given = std::get_if<at::Tensor>(&args[i]);
    if (given == nullptr || info.direction == acl::Direction::kIn) continue;
    int64_t* sizes = nullptr;
    uint64_t count = 0;
    EXPECT_EQ(aclGetViewShape(call.tensor(static_cast<int>(i)), &sizes, &count), OK);
    const std::vector<int64_t> shape(sizes, sizes + count);
    delete[] sizes;
    if (at::IntArrayRef(shape) != given->sizes()) shapes[static_cast<int>(i)] = shape;
  }
  return shapes;
}

int RunOnStream(const char* name, const Args& args, aclrtStream stream) {
  PackedCall call(name, args);
  last_shapes.clear();
  if (const aclnnStatus status = call.Prepare(); status != OK) return Remember(status);
  if (const aclnnStatus status = call.Launch(stream); status != OK) return Remember(status);
  const int status = Remember(aclrtSynchronizeStream(stream));
  if (status == OK) last_shapes = ShapesAfter(call, args);
  return status;
}

}  // namespace

int RunOperator(const char* name, const Args& args) {
  const aclrtStream stream = TestStream();
  if (BeforeEachCall() != nullptr) BeforeEachCall()(name, args);
  if (Watcher() != nullptr) Watcher()->Before(name, args);
  const int status = RunOnStream(name, args, stream);
  if (Watcher() != nullptr) Watcher()->After(status, last_shapes);
  if (status == 0 && AfterEachSuccess() != nullptr) AfterEachSuccess()(name, args);
  return status;
}

int RunPacked(PackedCall& call) {
  const aclrtStream stream = TestStream();
  int status = call.Prepare();
  if (status == OK) status = call.Launch(stream);
  if (status == OK) status = aclrtSynchronizeStream(stream);
  Remember(status);
  // Names of the table are literals, so they end with a zero byte.
  if (status == OK && AfterEachSuccess() != nullptr) {
    AfterEachSuccess()(call.op().name.data(), call.args());
  }
  return status;
}

std::string LastMessage() { return last_message; }

const Shapes& ReportedShapes() { return last_shapes; }

testing::AssertionResult SameBits(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() != expected.scalar_type()) {
    return testing::AssertionFailure()
           << "dtype " << actual.scalar_type() << ", expected " << expected.scalar_type();
  }
  if (actual.sizes() != expected.sizes()) {
    return testing::AssertionFailure()
           << "sizes " << actual.sizes() << ", expected " << expected.sizes();
  }
  const at::Tensor a = actual.contiguous(), b = expected.contiguous();
  const size_t size = a.element_size();
  const auto* x = static_cast<const char*>(a.data_ptr());
  const auto* y = static_cast<const char*>(b.data_ptr());
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(x + i * size, y + i * size, size) == 0) continue;
    std::ostringstream values;
    if (a.is_complex()) {
      return testing::AssertionFailure() << "element " << i << " of " << a.numel() << " is "
                                         << a.flatten()[i] << ", expected " << b.flatten()[i];
    }
    values << a.flatten()[i].item().toDouble() << ", expected " << b.flatten()[i].item().toDouble();
    return testing::AssertionFailure()
           << "element " << i << " of " << a.numel() << " is " << values.str();
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Gives(const char* name, const Args& args,
                               const std::map<int, at::Tensor>& expected) {
  const int status = RunOperator(name, args);
  if (status != 0) {
    return testing::AssertionFailure() << name << " returned " << status << ": " << LastMessage();
  }
  for (const auto& [position, tensor] : expected) {
    const testing::AssertionResult same = SameBits(std::get<at::Tensor>(args[position]), tensor);
    if (!same) {
      return testing::AssertionFailure()
             << name << ", argument " << position << ": " << same.message();
    }
  }
  return testing::AssertionSuccess();
}

at::Tensor Unwritten(const at::Tensor& model) {
  const at::Tensor result = at::empty_strided(model.sizes(), model.strides(), model.options());
  if (result.storage().nbytes() != 0) {
    std::memset(StorageOf(result), model.scalar_type() == at::kBool ? 1 : 0x5a,
                result.storage().nbytes());
  }
  return result;
}

at::Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype, double low, double high) {
  static at::Generator generator = at::detail::createCPUGenerator(20240611);
  const at::Tensor values = at::empty(sizes, at::kDouble).uniform_(low, high, generator);
  return dtype == at::kBool ? values.gt((low + high) / 2) : values.to(dtype);
}

void Check(const char* name, Args args, const std::vector<at::Tensor>& expected, Args tail) {
  std::map<int, at::Tensor> wanted;
  for (const at::Tensor& tensor : expected) {
    if (tensor.defined()) {
      wanted[static_cast<int>(args.size())] = tensor;
      args.push_back(Unwritten(tensor));
    } else {
      args.push_back(Null{});
    }
  }
  args.insert(args.end(), tail.begin(), tail.end());
  EXPECT_TRUE(Gives(name, args, wanted));
}

void CheckInplace(const char* name, const Args& args, const at::Tensor& expected) {
  EXPECT_TRUE(Gives(name, args, {{0, expected}}));
}

at::Tensor Indices(at::IntArrayRef sizes, int64_t bound, at::ScalarType dtype) {
  return Random(sizes, at::kDouble, 0, static_cast<double>(bound)).floor().to(dtype);
}

std::vector<NamedTensor> Views(at::ScalarType dtype, double low, double high) {
  return {
      {"0-dim", Random({}, dtype, low, high)},
      {"empty", Random({3, 0, 2}, dtype, low, high)},
      {"vector", Random({1031}, dtype, low, high)},
      {"dense", Random({5, 7, 33}, dtype, low, high)},
      {"transposed", Random({19, 23}, dtype, low, high).t()},
      {"strided", Random({12, 40}, dtype, low, high).slice(0, 1, 12, 3).slice(1, 5, 39, 2)},
      {"expanded", Random({1, 9}, dtype, low, high).expand({4, 9})},
  };
}

}  // namespace acltape::opapi

#include "runtime/device/by_name/arithmetic.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_amax.h"
#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_clamp.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_gather.h"
#include "aclnnop/aclnn_index_add.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_log_softmax.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_nan_to_num.h"
#include "aclnnop/aclnn_nonzero.h"
#include "aclnnop/aclnn_pow.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_s_where.h"
#include "aclnnop/aclnn_softmax.h"
#include "aclnnop/aclnn_softmax_backward.h"
#include "aclnnop/aclnn_sort.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_uniform.h"
#include "runtime/device/by_name/arguments.h"

namespace acltape::device {
namespace {

using PrepareOfOne = aclnnStatus (*)(const aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
using PrepareOfTwo = aclnnStatus (*)(const aclTensor*, const aclTensor*, aclTensor*, uint64_t*,
                                     aclOpExecutor**);

// Both shapes from their last dim on; the larger dim where one is 1.
std::vector<int64_t> BroadcastShape(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    shape[shape.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return shape;
}

}  // namespace

aclError NamedScratch::Take(size_t bytes, void** memory) {
  static const auto allocate = DeviceFunction("aclrtMalloc", &aclrtMalloc);
  ACLTAPE_RETURN_IF_FAILED(allocate(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  taken_.push_back(*memory);
  return ACL_SUCCESS;
}

namespace {

// The destroy callback of a graph that uses such memory; runs in the thread that destroys it.
void FreeMemoryOfGraph(void* memory) {
  static const auto release = DeviceFunction("aclrtFree", &aclrtFree);
  std::unique_ptr<std::vector<void*>> taken(static_cast<std::vector<void*>*>(memory));
  for (void* each : *taken) release(each);
}

// Leaves memory to the graph that a stream captures.
void GiveToGraph(const Stream& stream, std::vector<void*> taken) {
  Model* model = nullptr;
  const aclmdlRI handle = stream.capture_handle.load(std::memory_order_acquire);
  if (FindModel(handle, "aclop", &model) != ACL_SUCCESS) return;
  std::lock_guard lock(model->context().mutex);
  for (const Model::DestroyCallback& callback : model->destroy_callbacks) {
    if (callback.function != FreeMemoryOfGraph) continue;
    auto& known = *static_cast<std::vector<void*>*>(callback.user_data);
    known.insert(known.end(), taken.begin(), taken.end());
    return;
  }
  model->destroy_callbacks.push_back({FreeMemoryOfGraph, new std::vector<void*>(std::move(taken))});
}

}  // namespace

NamedScratch::~NamedScratch() {
  Stream* stream = nullptr;
  if (taken_.empty() || FindStream(stream_, "aclop", &stream) != ACL_SUCCESS) return;
  if (stream->capturing()) {
    GiveToGraph(*stream, std::move(taken_));
    return;
  }
  static const auto synchronize = DeviceFunction("aclrtSynchronizeStream", &aclrtSynchronizeStream);
  static const auto release = DeviceFunction("aclrtFree", &aclrtFree);
  static const auto release_later = DeviceFunction("aclrtMemPoolFreeAsync", &aclrtMemPoolFreeAsync);
  // The default stream has no handle that a free in its order could name.
  if (stream_ == nullptr) synchronize(stream_);
  for (void* memory : taken_) {
    stream_ == nullptr ? release(memory) : release_later(memory, stream_);
  }
}

aclError InputOnDevice(const NamedCall& call, int input, const char* name, NamedScratch* scratch,
                       OperatorArguments* own, aclTensor** tensor) {
  const aclTensorDesc& desc = *call.inputs.descs[input];
  if (!OnHost(call.inputs, input)) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, input, name));
    *tensor = own->Dense(call.inputs, input, desc.shape);
    return ACL_SUCCESS;
  }
  if (ElementsOf(desc.shape) != 1) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: %s lies in host memory and has the shape %s; the soft device takes one "
                "element from there",
                call.name, name, ShapeText(desc.shape).c_str());
  }
  const size_t bytes = aclDataTypeSize(desc.type);
  const char* value = nullptr;
  ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, input, name, bytes, &value));
  void* memory = nullptr;
  ACLTAPE_RETURN_IF_FAILED(scratch->Take(bytes, &memory));
  *tensor = own->Tensor(desc.type, memory, desc.shape, desc.shape, RowMajorStrides(desc.shape));
  return RunOperator<decltype(&aclnnInplaceFillScalarGetWorkspaceSize)>(
      call, "aclnnInplaceFillScalar", *tensor, own->Scalar(desc.type, value));
}

template <typename Prepare, typename... Arguments>
void NamedArithmetic::Step(const char* name, const Value& out, Arguments... arguments) {
  if (status_ != ACL_SUCCESS || ElementsOf(out.shape) == 0) return;
  status_ = RunOperator<Prepare>(call_, name, arguments...);
}

NamedArithmetic::Value NamedArithmetic::New(const std::vector<int64_t>& shape, aclDataType type) {
  Value value{shape};
  const size_t bytes = ElementsOf(shape) * aclDataTypeSize(type);
  void* memory = nullptr;
  if (status_ == ACL_SUCCESS && bytes > 0) {
    if (auto found = idle_->find(bytes); found != idle_->end()) {
      memory = found->second;
      idle_->erase(found);
    } else {
      status_ = scratch_.Take(bytes, &memory);
    }
  }
  if (memory != nullptr) {
    value.memory = {memory, [idle = idle_, bytes](void* at) { idle->emplace(bytes, at); }};
  }
  value.tensor = own_.Tensor(type, memory, shape, shape, RowMajorStrides(shape));
  return value;
}

NamedArithmetic::Value NamedArithmetic::Read(int input, const std::vector<int64_t>& shape,
                                             const std::vector<int64_t>& strides, int64_t offset) {
  aclTensor* view = own_.View(call_.inputs, input, shape, strides, offset);
  if (call_.inputs.descs[input]->type == ACL_FLOAT) return {shape, view};
  Value value = New(shape);
  Copy(value.tensor, ElementsOf(shape) > 0 ? view : nullptr);
  return value;
}

void NamedArithmetic::Write(const Value& value, int output, const std::vector<int64_t>& strides,
                            int64_t offset) {
  if (ElementsOf(value.shape) == 0) return;
  Copy(own_.View(call_.outputs, output, value.shape, strides, offset), value.tensor);
}

void NamedArithmetic::Copy(aclTensor* to, const aclTensor* from) {
  if (status_ != ACL_SUCCESS || from == nullptr) return;
  status_ =
      RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(call_, "aclnnInplaceCopy", to, from);
}

NamedArithmetic::Value NamedArithmetic::Add(const Value& a, const Value& b) {
  Value out = New(BroadcastShape(a.shape, b.shape));
  Step<decltype(&aclnnAddGetWorkspaceSize)>("aclnnAdd", out, a.tensor, b.tensor, own_.Float(1),
                                            out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Subtract(const Value& a, const Value& b) {
  Value out = New(BroadcastShape(a.shape, b.shape));
  Step<decltype(&aclnnSubGetWorkspaceSize)>("aclnnSub", out, a.tensor, b.tensor, own_.Float(1),
                                            out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Multiply(const Value& a, const Value& b) {
  return OfTwo("aclnnMul", a, b);
}

NamedArithmetic::Value NamedArithmetic::Divide(const Value& a, const Value& b) {
  return OfTwo("aclnnDiv", a, b);
}

NamedArithmetic::Value NamedArithmetic::Greater(const Value& a, const Value& b) {
  return OfTwo("aclnnMaximum", a, b);
}

NamedArithmetic::Value NamedArithmetic::Less(const Value& a, const Value& b) {
  return OfTwo("aclnnMinimum", a, b);
}

// A comparison as numbers: 1 where it holds, else 0.
NamedArithmetic::Value NamedArithmetic::Truth(const char* name, const Value& a, const Value& b) {
  const Value truth = New(BroadcastShape(a.shape, b.shape), ACL_BOOL);
  Step<PrepareOfTwo>(name, truth, a.tensor, b.tensor, truth.tensor);
  Value out = New(truth.shape);
  if (ElementsOf(out.shape) > 0) Copy(out.tensor, truth.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Below(const Value& a, const Value& b) {
  return Times(Add(Truth("aclnnLtTensor", a, b), Truth("aclnnLeTensor", a, b)), 0.5);
}

NamedArithmetic::Value NamedArithmetic::Positive(const Value& a) {
  return Truth("aclnnGtTensor", a, Times(a, 0));
}

NamedArithmetic::Value NamedArithmetic::Where(const Value& truth, const Value& a, const Value& b) {
  const Value holds = New(truth.shape, ACL_BOOL);
  Step<PrepareOfTwo>("aclnnGtTensor", holds, truth.tensor, Times(truth, 0).tensor, holds.tensor);
  Value out = New(BroadcastShape(truth.shape, BroadcastShape(a.shape, b.shape)));
  Step<decltype(&aclnnSWhereGetWorkspaceSize)>("aclnnSWhere", out, holds.tensor, a.tensor, b.tensor,
                                               out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Plus(const Value& a, double number) {
  Value out = New(a.shape);
  Step<decltype(&aclnnAddsGetWorkspaceSize)>("aclnnAdds", out, a.tensor,
                                             own_.Float(static_cast<float>(number)), own_.Float(1),
                                             out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Times(const Value& a, double number) {
  Value out = New(a.shape);
  Step<decltype(&aclnnMulsGetWorkspaceSize)>("aclnnMuls", out, a.tensor,
                                             own_.Float(static_cast<float>(number)), out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Over(const Value& a, double number) {
  Value out = New(a.shape);
  Step<decltype(&aclnnDivsGetWorkspaceSize)>("aclnnDivs", out, a.tensor,
                                             own_.Float(static_cast<float>(number)), out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Power(const Value& a, double exponent) {
  Value out = New(a.shape);
  Step<decltype(&aclnnPowTensorScalarGetWorkspaceSize)>(
      "aclnnPowTensorScalar", out, a.tensor, own_.Float(static_cast<float>(exponent)), out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Softmax(const Value& a, int64_t dim) {
  Value out = New(a.shape);
  Step<decltype(&aclnnSoftmaxGetWorkspaceSize)>("aclnnSoftmax", out, a.tensor, dim, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::LogSoftmax(const Value& a, int64_t dim) {
  Value out = New(a.shape);
  Step<decltype(&aclnnLogSoftmaxGetWorkspaceSize)>("aclnnLogSoftmax", out, a.tensor, dim,
                                                   out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::SoftmaxGradient(const Value& gradient, const Value& result,
                                                        int64_t dim) {
  Value out = New(result.shape);
  Step<decltype(&aclnnSoftmaxBackwardGetWorkspaceSize)>(
      "aclnnSoftmaxBackward", out, gradient.tensor, result.tensor, dim, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::AtLeast(const Value& a, double number) {
  Value out = New(a.shape);
  Step<decltype(&aclnnClampGetWorkspaceSize)>(
      "aclnnClamp", out, a.tensor, own_.Float(static_cast<float>(number)), nullptr, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::AtMost(const Value& a, double number) {
  Value out = New(a.shape);
  Step<decltype(&aclnnClampGetWorkspaceSize)>("aclnnClamp", out, a.tensor, nullptr,
                                              own_.Float(static_cast<float>(number)), out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Function(const char* name, const Value& a) {
  Value out = New(a.shape);
  Step<PrepareOfOne>(name, out, a.tensor, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::OfTwo(const char* name, const Value& a, const Value& b) {
  Value out = New(BroadcastShape(a.shape, b.shape));
  Step<PrepareOfTwo>(name, out, a.tensor, b.tensor, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Greatest(const Value& a, int64_t dim) {
  std::vector<int64_t> shape = a.shape;
  shape[dim] = 1;
  Value out = New(shape);
  Step<decltype(&aclnnAmaxGetWorkspaceSize)>("aclnnAmax", out, a.tensor, own_.Integers({dim}), true,
                                             out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Filled(const std::vector<int64_t>& shape, double number) {
  Value out = New(shape);
  Step<decltype(&aclnnInplaceFillScalarGetWorkspaceSize)>("aclnnInplaceFillScalar", out, out.tensor,
                                                          own_.Float(static_cast<float>(number)));
  return out;
}

NamedArithmetic::Value NamedArithmetic::Counting(const std::vector<int64_t>& shape) {
  Value out = New(shape);
  const auto count = static_cast<int64_t>(ElementsOf(shape));
  aclTensor* row = own_.Tensor(ACL_FLOAT, out.memory.get(), {count}, {count}, {1});
  Step<decltype(&aclnnArangeGetWorkspaceSize)>(
      "aclnnArange", out, own_.Float(0), own_.Float(static_cast<float>(count)), own_.Float(1), row);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Random(const std::vector<int64_t>& shape, int64_t seed,
                                               int64_t offset) {
  Value out = New(shape);
  Step<decltype(&aclnnInplaceUniformGetWorkspaceSize)>("aclnnInplaceUniform", out, out.tensor, 0.0,
                                                       1.0, static_cast<uint64_t>(seed),
                                                       static_cast<uint64_t>(offset));
  return out;
}

NamedArithmetic::Value NamedArithmetic::Finite(const Value& a, float nan, float infinity,
                                               float minus_infinity) {
  Value out = New(a.shape);
  Step<decltype(&aclnnNanToNumGetWorkspaceSize)>("aclnnNanToNum", out, a.tensor, nan, infinity,
                                                 minus_infinity, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Copied(int input, const std::vector<int64_t>& shape,
                                               const std::vector<int64_t>& strides,
                                               int64_t offset) {
  Value out = New(shape);
  if (ElementsOf(shape) > 0) {
    Copy(out.tensor, own_.View(call_.inputs, input, shape, strides, offset));
  }
  return out;
}

NamedArithmetic::Value NamedArithmetic::As(const Value& a, const std::vector<int64_t>& shape) {
  return {shape, own_.Tensor(ACL_FLOAT, a.memory.get(), shape, shape, RowMajorStrides(shape)),
          a.memory};
}

NamedArithmetic::Value NamedArithmetic::Part(const Value& a, const std::vector<int64_t>& shape,
                                             const std::vector<int64_t>& strides, int64_t offset) {
  return {shape, own_.Tensor(ACL_FLOAT, a.memory.get(), a.shape, shape, strides, offset), a.memory};
}

void NamedArithmetic::Set(const Value& part, const Value& values) {
  if (ElementsOf(part.shape) > 0) Copy(part.tensor, values.tensor);
}

NamedArithmetic::Value NamedArithmetic::Product(const Value& a, const Value& b) {
  std::vector<int64_t> shape = a.shape;
  shape.back() = b.shape.back();
  Value out = New(shape);
  Step<decltype(&aclnnMatmulGetWorkspaceSize)>("aclnnMatmul", out, a.tensor, b.tensor, out.tensor,
                                               int8_t{0});
  return out;
}

NamedArithmetic::Value NamedArithmetic::Rows(const Value& table, const Value& indices) {
  Value out = New({indices.shape[0], table.shape[1]});
  Step<decltype(&aclnnIndexSelectGetWorkspaceSize)>("aclnnIndexSelect", out, table.tensor,
                                                    int64_t{0}, indices.tensor, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::AddToRows(const Value& table, const Value& indices,
                                                  const Value& more) {
  Value out = New(table.shape);
  Step<decltype(&aclnnIndexAddGetWorkspaceSize)>("aclnnIndexAdd", out, table.tensor, int64_t{0},
                                                 indices.tensor, more.tensor, own_.Float(1),
                                                 out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::FromEach(const Value& rows, const Value& positions) {
  Value out = New(positions.shape);
  Step<decltype(&aclnnGatherGetWorkspaceSize)>("aclnnGather", out, rows.tensor, int64_t{1},
                                               positions.tensor, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Sum(const Value& a, const std::vector<int64_t>& dims) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end()) {
      shape.push_back(a.shape[i]);
    }
  }
  Value out = New(shape);
  Step<decltype(&aclnnReduceSumGetWorkspaceSize)>(
      "aclnnReduceSum", out, a.tensor, own_.Integers(dims), false, ACL_FLOAT, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Indices(const Value& a) {
  Value out = New(a.shape, ACL_INT64);
  if (ElementsOf(a.shape) > 0) Copy(out.tensor, a.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Numbers(const Value& indices) {
  Value out = New(indices.shape);
  if (ElementsOf(indices.shape) > 0) Copy(out.tensor, indices.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::Descending(const Value& rows) {
  const Value sorted = New(rows.shape);
  Value out = New(rows.shape, ACL_INT64);
  Step<decltype(&aclnnSortGetWorkspaceSize)>("aclnnSort", out, rows.tensor, true, int64_t{-1}, true,
                                             sorted.tensor, out.tensor);
  return out;
}

NamedArithmetic::Value NamedArithmetic::NotZero(const Value& row) {
  static const auto synchronize = DeviceFunction("aclrtSynchronizeStream", &aclrtSynchronizeStream);
  static const auto view_shape = OperatorFunction<decltype(&aclGetViewShape)>("aclGetViewShape");
  Value out = New({row.shape[0], 1}, ACL_INT64);
  Step<decltype(&aclnnNonzeroGetWorkspaceSize)>("aclnnNonzero", out, row.tensor, out.tensor);
  if (status_ == ACL_SUCCESS) status_ = synchronize(call_.stream);
  int64_t* sizes = nullptr;
  uint64_t dims = 0;
  int64_t count = 0;
  if (status_ == ACL_SUCCESS && ElementsOf(out.shape) > 0) {
    status_ = view_shape(out.tensor, &sizes, &dims);
    if (status_ == ACL_SUCCESS && dims > 0) count = sizes[0];
    delete[] sizes;
  }
  return First(out, count);
}

NamedArithmetic::Value NamedArithmetic::First(const Value& positions, int64_t count) {
  return {{count},
          own_.Tensor(ACL_INT64, positions.memory.get(), {count}, {count}, {1}),
          positions.memory};
}

NamedArithmetic::Value NamedArithmetic::At(const Value& row, const Value& positions) {
  Value out = New(positions.shape, ACL_INT64);
  Step<decltype(&aclnnIndexSelectGetWorkspaceSize)>("aclnnIndexSelect", out, row.tensor, int64_t{0},
                                                    positions.tensor, out.tensor);
  return out;
}

}  // namespace acltape::device

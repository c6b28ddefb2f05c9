// Operators that a program calls by name (aclop): those that change the format of a tensor, matrix
// products that take a weight of such a format, and what an adapter calls by name alone.
//
// Note [Formats of tensors]
// A matrix in FRACTAL_NZ lies in blocks, as on a device (acl/invoke/blocked_layout.h). Operators of
// libopapi.so read and write them, so a cast is a copy between two such descriptions.
// Tensors of all other formats lie in the order of their original shape, and what the format adds
// to them at the end is zero. So each operator takes a tensor of any format, and a cast there and
// back gives the same bytes. What a program sees that reads such memory itself is not what a device
// shows.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>

#include "acl/acl_op_compiler.h"
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_cdist_backward.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_matmul.h"
#include "runtime/device/by_name/table.h"
#include "runtime/device/named_call.h"
#include "runtime/device/plain_object.h"
#include "runtime/device/thread_state.h"

using namespace acltape::device;

namespace {

// Finds a function by the name that the program would use. So a recorder in the process sees what
// the operator does to memory.
template <typename F>
F Public(const char* name, F own) {
  void* found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? reinterpret_cast<F>(found) : own;
}

aclError CopyBlocks(const NamedCall& call) {
  OperatorArguments own;
  aclTensor* from = own.Whole(call.inputs, 0);
  aclTensor* to = own.Whole(call.outputs, 0);
  return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(call, "aclnnInplaceCopy", to,
                                                                  from);
}

// The bytes of the input that mean something, then zeros up to the end of the output.
aclError CopyElements(const NamedCall& call) {
  if (call.inputs.count < 1 || call.outputs.count < 1) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: it takes one input and gives one output",
                call.name);
  }
  if (call.inputs.Has(0) && call.outputs.Has(0) &&
      (call.inputs.InBlocks(0) || call.outputs.InBlocks(0))) {
    return CopyBlocks(call);
  }
  const aclDataBuffer* from = call.inputs.buffers[0];
  const aclDataBuffer* to = call.outputs.buffers[0];
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(from, call.name, "the input"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call.name, "the output"));
  const size_t bytes = std::min(from->bytes, to->bytes);
  if (bytes > 0) {
    static const auto copy = Public("aclrtMemcpyAsync", &aclrtMemcpyAsync);
    ACLTAPE_RETURN_IF_FAILED(
        copy(to->data, to->bytes, from->data, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, call.stream));
  }
  if (to->bytes > bytes) {
    static const auto fill = Public("aclrtMemsetAsync", &aclrtMemsetAsync);
    ACLTAPE_RETURN_IF_FAILED(fill(static_cast<char*>(to->data) + bytes, to->bytes - bytes, 0,
                                  to->bytes - bytes, call.stream));
  }
  return ACL_SUCCESS;
}

aclTensor* MatrixOf(OperatorArguments& own, const NamedTensors& tensors, int i, bool transposed) {
  std::vector<int64_t> shape = tensors.Shape(i);
  if (shape.size() < 2) return nullptr;
  if (!transposed) return own.Dense(tensors, i, shape);
  std::vector<int64_t> strides = RowMajorStrides(shape);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  std::swap(strides[shape.size() - 1], strides[shape.size() - 2]);
  return own.View(tensors, i, shape, strides);
}

// x1 * x2 + bias, of matrices.
aclError MultiplyAndAdd(const NamedCall& call, bool transpose_first, bool transpose_second) {
  OperatorArguments own;
  return RunOperator<decltype(&aclnnAddmmGetWorkspaceSize)>(
      call, "aclnnAddmm", own.Whole(call.inputs, 2), MatrixOf(own, call.inputs, 0, transpose_first),
      MatrixOf(own, call.inputs, 1, transpose_second), own.Float(1), own.Float(1),
      MatrixOf(own, call.outputs, 0, false), int8_t{0});
}

// Calls aclnnMatmul, which takes batches too.
aclError MultiplyMatrices(const NamedCall& call) {
  const bool biased = call.inputs.count > 2 && call.inputs.Has(2);
  if (call.inputs.count < 2 || call.outputs.count != 1 || call.inputs.count > 3 ||
      (biased && call.outputs.Shape(0).size() != 2)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the soft device multiplies two tensors, and adds a bias to a matrix",
                call.name);
  }
  if (biased) {
    return MultiplyAndAdd(call, call.Flag("transpose_x1") || call.Flag("adj_x1"),
                          call.Flag("transpose_x2") || call.Flag("adj_x2"));
  }
  OperatorArguments own;
  return RunOperator<decltype(&aclnnMatmulGetWorkspaceSize)>(
      call, "aclnnMatmul",
      MatrixOf(own, call.inputs, 0, call.Flag("transpose_x1") || call.Flag("adj_x1")),
      MatrixOf(own, call.inputs, 1, call.Flag("transpose_x2") || call.Flag("adj_x2")),
      MatrixOf(own, call.outputs, 0, false), int8_t{0});
}

// The gradient of distances for x1, of the gradient, x1, x2 and the distances. The adapter has
// expanded all four to [..., rows of x2, elements of a row]: for each row of x1 a batch of its own.
aclError DistanceGradient(const NamedCall& call) {
  if (call.inputs.count != 4 || call.outputs.count != 1 || call.inputs.Shape(0).size() < 2) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: it takes four inputs of two dims at least and gives one output",
                call.name);
  }
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const int64_t width = shape[shape.size() - 1], rows = shape[shape.size() - 2];
  std::vector<int64_t> sums(shape.begin(), shape.end() - 2);
  const int64_t batch = std::accumulate(sums.begin(), sums.end(), int64_t{1}, std::multiplies<>());
  sums.push_back(width);
  bool fits = call.outputs.Shape(0) == sums;
  for (int i = 1; i < call.inputs.count; ++i) fits = fits && call.inputs.Shape(i) == shape;
  if (!fits) {
    return Fail(
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclop %s: the soft device takes four inputs of one shape, and gives their sums over "
        "the last dim but one",
        call.name);
  }
  OperatorArguments own;
  const auto of_pairs = [&](int i) {
    return own.View(call.inputs, i, {batch, 1, rows}, {rows * width, rows * width, width});
  };
  const std::string norm = call.Text("p");
  return RunOperator<decltype(&aclnnCdistBackwardGetWorkspaceSize)>(
      call, "aclnnCdistBackward", of_pairs(0),
      own.View(call.inputs, 1, {batch, 1, width}, {rows * width, width, 1}),
      own.Dense(call.inputs, 2, {batch, rows, width}), of_pairs(3),
      norm.empty() ? 2.0f : std::strtof(norm.c_str(), nullptr),
      own.Dense(call.outputs, 0, {batch, 1, width}));
}

// Tensors side by side in one dim, by aclnnCat.
aclError Concatenate(const NamedCall& call) {
  const int dims = call.inputs.count > 0 ? static_cast<int>(call.inputs.Shape(0).size()) : 0;
  const int64_t dim = std::strtoll(call.Text("concat_dim").c_str(), nullptr, 10);
  if (call.outputs.count != 1 || dim < -dims || dim >= dims) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: it takes tensors of one dim at least, a concat_dim that they have, and "
                "gives one output",
                call.name);
  }
  OperatorArguments own;
  std::vector<aclTensor*> parts;
  for (int i = 0; i < call.inputs.count; ++i) {
    parts.push_back(own.Whole(call.inputs, i));
  }
  return RunOperator<decltype(&aclnnCatGetWorkspaceSize)>(call, "aclnnCat", own.List(parts), dim,
                                                          own.Whole(call.outputs, 0));
}

constexpr NamedOperator kOperators[] = {
    {"Identity", CopyElements},        {"TransData", CopyElements},
    {"MatMul", MultiplyMatrices},      {"MatMulV2", MultiplyMatrices},
    {"BatchMatMul", MultiplyMatrices}, {"BatchMatMulV2", MultiplyMatrices},
    {"CdistGrad", DistanceGradient},   {"ConcatD", Concatenate},
    {"DynamicRNN", RunLstm},           {"DynamicRNNGrad", RunLstmGradient},
    {"DynamicRNNV2", RunLstmCell},     {"DynamicRNNV2Grad", RunLstmCellGradient},
};

// Tables of other files.
constexpr NamedTable (*kTables[])() = {
    ViewsByName,
    FillsByName,
    ElementwiseByName,
    ExtremesByName,
    ConvolutionsByName,
    BoxesByName,
    TrainingByName,
    SignBitsByName,
    RecurrentByName,
    RegionsByName,
    PositionSensitiveByName,
    RotatedBoxesByName,
    LossesByName,
    NormalisationsByName,
    SuppressionsByName,
    DeformableByName,
    AssignmentsByName,
    CalibrationByName,
    ImagesByName,
    OptimisersByName,
    AttentionScoresByName,
    AttentionLayersByName,
    AttentionProjectionsByName,
    ReductionsByName,
    LayerNormGradientsByName,
    DropoutByName,
    LatentAttentionByName,
    SoftmaxesByName,
    GathersByName,
    SearchesByName,
    FilledRangesByName,
    StridedSumsByName,
    ExtremeGradientsByName,
    SortsByName,
    LayerNormsByName,
    ViewCopiesByName,
    FloatStatusByName,
    MaskedSoftmaxByName,
    RandomSamplesByName,
    LossesOfRowsByName,
    MultiplyAddsByName,
    IndexedByName,
};

const NamedOperator* FindOperator(NamedTable table, const char* name) {
  for (const NamedOperator& row : table) {
    if (std::string_view(row.name) == name) return &row;
  }
  return nullptr;
}

const NamedOperator* FindOperator(const char* name) {
  if (const NamedOperator* found = FindOperator(kOperators, name)) return found;
  for (const auto table : kTables) {
    if (const NamedOperator* found = FindOperator(table(), name)) return found;
  }
  return nullptr;
}

struct Failure {
  const char* text;  // interned
};

aclError RunFailure(void* argument) {
  return Fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s", static_cast<Failure*>(argument)->text);
}

aclError RunNow(const NamedCall& call) {
  if (const NamedOperator* found = FindOperator(call.name)) return found->run(call);
  return Fail(ACL_ERROR_RT_AICORE_EXCEPTION,
              "the soft device has no operator %s by name (aclop); use an operator of libopapi, or "
              "run this part of the program on the CPU",
              call.name);
}

// The thread that described the tensors of the call: the program's own. 0 without tensors.
uint32_t DescribedBy(const NamedCall& call) {
  for (const NamedTensors& tensors : {call.inputs, call.outputs}) {
    if (tensors.count > 0) return tensors.descs[0]->made_by;
  }
  return 0;
}

// Note [Who is told that an operator by name fails]
// A program that calls from the thread that described the tensors gets the code at its line. The
// task queue of torch_npu calls from a thread of its own, which ends for good when a call fails;
// all later operators of the process then fail. So a call from another thread than the one that
// described the tensors succeeds, and the failure goes to the stream: the next synchronisation
// names the operator and the thread that asked for it, as it does for each failing kernel. It stops
// no context, so the process can go on.
aclError Run(const NamedCall& call) {
  const aclError code = RunNow(call);
  const uint32_t asked_by = DescribedBy(call);
  if (code == ACL_SUCCESS || asked_by == 0 || asked_by == SystemThreadId()) return code;
  const char* text = TakeOwnMessage();
  const Failure failure{InternName(text != nullptr ? text : call.name)};
  Task task = MakeTask(TaskKind::kKernel, InternName(call.name), failure, RunFailure);
  task.prepared_by = asked_by;
  task.refused = true;
  Stream* stream = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(call.stream, call.name, &stream));
  return SubmitTask(*stream, std::move(task));
}

// Descriptions and buffers of one side; a buffer that is left out is NULL.
aclError CheckTensors(const NamedTensors& tensors, const char* call, const char* descs,
                      const char* buffers) {
  if (tensors.count <= 0) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(tensors.descs, call, descs));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(tensors.buffers, call, buffers));
  for (int i = 0; i < tensors.count; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckPlain(tensors.descs[i], call, descs));
    if (tensors.buffers[i] == nullptr) continue;
    ACLTAPE_RETURN_IF_FAILED(CheckPlain(tensors.buffers[i], call, buffers));
  }
  return ACL_SUCCESS;
}

aclError CheckCall(const NamedCall& named, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(named.name, call, "opType"));
  if (named.inputs.count < 0 || named.outputs.count < 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: %d inputs and %d outputs are no numbers of tensors",
                call, named.inputs.count, named.outputs.count);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckTensors(named.inputs, call, "inputDesc", "inputs"));
  ACLTAPE_RETURN_IF_FAILED(CheckTensors(named.outputs, call, "outputDesc", "outputs"));
  if (named.attributes != nullptr) {
    ACLTAPE_RETURN_IF_FAILED(CheckPlain(named.attributes, call, "attr"));
  }
  Stream* found = nullptr;
  return FindStream(named.stream, call, &found);
}

aclError SetAttribute(aclopAttr* attr, const char* name, std::string text, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(attr, call, "attr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(name, call, "attrName"));
  attr->texts[name] = std::move(text);
  return ACL_SUCCESS;
}

// Digits enough that the same number is read again.
std::string TextOf(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

template <typename T>
aclError SetList(aclopAttr* attr, const char* name, int count, const T* values, const char* call) {
  if (count < 0 || (count > 0 && values == nullptr)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: %d values at %p are no list", call, count,
                static_cast<const void*>(values));
  }
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    if constexpr (std::is_same_v<T, const char*>) {
      text += values[i] != nullptr ? values[i] : "";
    } else if constexpr (std::is_same_v<T, float>) {
      text += TextOf(values[i]);
    } else {
      text += std::to_string(values[i]);
    }
  }
  return SetAttribute(attr, name, std::move(text), call);
}

}  // namespace

aclopAttr* aclopCreateAttr(void) { return Plain<aclopAttr>().Create(); }

// Destroying NULL is nothing, as with free.
void aclopDestroyAttr(const aclopAttr* attr) {
  if (attr != nullptr) DestroyPlain(attr, "aclopDestroyAttr", "attr");
}

aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  ACLTAPE_CALL("aclopSetAttrBool");
  return SetAttribute(attr, attrName, attrValue != 0 ? "true" : "false", kCall);
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  ACLTAPE_CALL("aclopSetAttrInt");
  return SetAttribute(attr, attrName, std::to_string(attrValue), kCall);
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  ACLTAPE_CALL("aclopSetAttrFloat");
  return SetAttribute(attr, attrName, TextOf(attrValue), kCall);
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  ACLTAPE_CALL("aclopSetAttrString");
  return SetAttribute(attr, attrName, attrValue != nullptr ? attrValue : "", kCall);
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  ACLTAPE_CALL("aclopSetAttrDataType");
  return SetAttribute(attr, attrName, std::to_string(attrValue), kCall);
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) {
  ACLTAPE_CALL("aclopSetAttrListBool");
  return SetList(attr, attrName, numValues, values, kCall);
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) {
  ACLTAPE_CALL("aclopSetAttrListInt");
  return SetList(attr, attrName, numValues, values, kCall);
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) {
  ACLTAPE_CALL("aclopSetAttrListFloat");
  return SetList(attr, attrName, numValues, values, kCall);
}

aclError aclopSetAttrListString(aclopAttr* attr, const char* attrName, int numValues,
                                const char** values) {
  ACLTAPE_CALL("aclopSetAttrListString");
  return SetList(attr, attrName, numValues, values, kCall);
}

aclError aclopSetAttrListDataType(aclopAttr* attr, const char* attrName, int numValues,
                                  const aclDataType* values) {
  ACLTAPE_CALL("aclopSetAttrListDataType");
  return SetList(attr, attrName, numValues, values, kCall);
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const* values) {
  ACLTAPE_CALL("aclopSetAttrListListInt");
  if (numLists < 0 || (numLists > 0 && (numValues == nullptr || values == nullptr))) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: %d lists at %p are no list", kCall, numLists,
                static_cast<const void*>(values));
  }
  for (int i = 0; i < numLists; ++i) {
    const std::string name =
        std::string(attrName != nullptr ? attrName : "") + "." + std::to_string(i);
    ACLTAPE_RETURN_IF_FAILED(SetList(attr, name.c_str(), numValues[i], values[i], kCall));
  }
  return SetAttribute(attr, attrName, std::to_string(numLists), kCall);
}

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const* inputDesc,
                                const aclDataBuffer* const* inputs, int numOutputs,
                                const aclTensorDesc* const* outputDesc,
                                aclDataBuffer* const* outputs, const aclopAttr* attr,
                                aclopEngineType, aclopCompileType, const char*,
                                aclrtStream stream) {
  ACLTAPE_CALL("aclopCompileAndExecute");
  const NamedCall call{
      opType, {numInputs, inputDesc, inputs}, {numOutputs, outputDesc, outputs}, attr, stream};
  ACLTAPE_RETURN_IF_FAILED(CheckCall(call, kCall));
  return Run(call);
}

aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc** inputDesc,
                                  aclDataBuffer** inputs, int numOutputs,
                                  aclTensorDesc** outputDesc, aclDataBuffer** outputs,
                                  aclopAttr* attr, aclopEngineType, aclopCompileType, const char*,
                                  aclrtStream stream) {
  ACLTAPE_CALL("aclopCompileAndExecuteV2");
  const NamedCall call{
      opType,    {numInputs, inputDesc, inputs}, {numOutputs, outputDesc, outputs}, attr, stream,
      outputDesc};
  ACLTAPE_RETURN_IF_FAILED(CheckCall(call, kCall));
  return RunNow(call);
}

// The norm of a layer with the mean and the reciprocal deviation of each row (LayerNormV3).
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

bool IsFloat(const NamedTensors& tensors, int i) {
  const aclDataType type = tensors.descs[i]->type;
  return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
}

// Finds the first dim of a row, which the two attributes name.
aclError ReadRowDim(const NamedCall& call, size_t* begin) {
  const auto rank = static_cast<int64_t>(call.inputs.Shape(0).size());
  const auto dim = [&](const char* attribute) {
    const int64_t given = IntegerOf(call, attribute, 0);
    return given < 0 ? given + rank : given;
  };
  const int64_t norm = dim("begin_norm_axis");
  if (norm >= 0 && norm < rank && dim("begin_params_axis") == norm) {
    *begin = static_cast<size_t>(norm);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: begin_norm_axis is %lld and begin_params_axis %lld; the soft device takes "
              "one dim for both, of the %lld dims of x",
              call.name, static_cast<long long>(IntegerOf(call, "begin_norm_axis", 0)),
              static_cast<long long>(IntegerOf(call, "begin_params_axis", 0)),
              static_cast<long long>(rank));
}

aclError CopyElementsOf(const NamedCall& call, aclTensor* to, const aclTensor* from) {
  return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(call, "aclnnInplaceCopy", to,
                                                                  from);
}

// The tensors of a layer as the library takes them: where x has another type than gamma, all in
// float32, in memory of their own.
class LayerTensors {
 public:
  explicit LayerTensors(const NamedCall& call)
      : call_(call),
        one_type_(call.inputs.descs[0]->type == call.inputs.descs[1]->type),
        scratch_(call.stream) {}

  aclError Input(int i, aclTensor** tensor) {
    aclTensor* given = own_.Whole(call_.inputs, i);
    if (one_type_) {
      *tensor = given;
      return ACL_SUCCESS;
    }
    ACLTAPE_RETURN_IF_FAILED(TakeFloats(call_.inputs.Shape(i), tensor));
    return CopyElementsOf(call_, *tensor, given);
  }
  aclError Result(aclTensor** tensor) {
    if (!one_type_) return TakeFloats(call_.outputs.Shape(0), tensor);
    *tensor = Output(0);
    return ACL_SUCCESS;
  }
  // Writes a result that lies in memory of its own.
  aclError WriteResult(const aclTensor* tensor) {
    return one_type_ ? ACL_SUCCESS : CopyElementsOf(call_, Output(0), tensor);
  }
  aclTensor* Output(int i) { return own_.Whole(call_.outputs, i); }
  const aclIntArray* Integers(const std::vector<int64_t>& values) { return own_.Integers(values); }

 private:
  aclError TakeFloats(const std::vector<int64_t>& shape, aclTensor** tensor) {
    void* memory = nullptr;
    ACLTAPE_RETURN_IF_FAILED(scratch_.Take(ElementsOf(shape) * sizeof(float), &memory));
    *tensor = own_.Tensor(ACL_FLOAT, memory, shape, shape, RowMajorStrides(shape));
    return ACL_SUCCESS;
  }

  const NamedCall& call_;
  const bool one_type_;
  NamedScratch scratch_;
  OperatorArguments own_;
};

// (x, gamma, beta) to (y, mean, rstd), where the dims of a row have one element in the last two.
aclError NormalizeLayer(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 3));
  for (int i = 0; i < 3; ++i) {
    if (IsFloat(call.inputs, i) && IsFloat(call.outputs, i)) continue;
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: input %d has the type %d and output %d the type %d; expected float32, "
                "float16 or bfloat16",
                call.name, i, static_cast<int>(call.inputs.descs[i]->type), i,
                static_cast<int>(call.outputs.descs[i]->type));
  }
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  size_t begin = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadRowDim(call, &begin));
  const std::vector<int64_t> row(shape.begin() + static_cast<int64_t>(begin), shape.end());
  std::vector<int64_t> means = shape;
  std::fill(means.begin() + static_cast<int64_t>(begin), means.end(), 1);
  if (call.inputs.Shape(1) != row || call.inputs.Shape(2) != row || ElementsOf(row) == 0 ||
      call.inputs.descs[1]->type != call.inputs.descs[2]->type ||
      call.inputs.descs[0]->type != call.outputs.descs[0]->type) {
    return Fail(
        ACL_ERROR_INVALID_PARAM,
        "aclop %s: gamma has the shape %s and the type %d, beta %s and %d, and x and y the "
        "types %d and %d; expected %s, which has elements, for gamma and beta, one type "
        "for both, and one for x and y",
        call.name, ShapeText(call.inputs.Shape(1)).c_str(),
        static_cast<int>(call.inputs.descs[1]->type), ShapeText(call.inputs.Shape(2)).c_str(),
        static_cast<int>(call.inputs.descs[2]->type), static_cast<int>(call.inputs.descs[0]->type),
        static_cast<int>(call.outputs.descs[0]->type), ShapeText(row).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, means));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 2, means));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  LayerTensors tensors(call);
  aclTensor *x = nullptr, *gamma = nullptr, *beta = nullptr, *y = nullptr;
  ACLTAPE_RETURN_IF_FAILED(tensors.Input(0, &x));
  ACLTAPE_RETURN_IF_FAILED(tensors.Input(1, &gamma));
  ACLTAPE_RETURN_IF_FAILED(tensors.Input(2, &beta));
  ACLTAPE_RETURN_IF_FAILED(tensors.Result(&y));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnLayerNormGetWorkspaceSize)>(
      call, "aclnnLayerNorm", x, tensors.Integers(row), gamma, beta, RealOf(call, "epsilon", 1e-5),
      y, tensors.Output(1), tensors.Output(2)));
  ACLTAPE_RETURN_IF_FAILED(tensors.WriteResult(y));
  return ClearPadding(call);
}

constexpr NamedOperator kLayerNorms[] = {
    {"LayerNormV3", NormalizeLayer},
};

}  // namespace

NamedTable LayerNormsByName() { return kLayerNorms; }

}  // namespace acltape::device

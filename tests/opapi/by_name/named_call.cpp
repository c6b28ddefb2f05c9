#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

aclDataType TypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ACL_FLOAT;
    case at::kHalf:
      return ACL_FLOAT16;
    case at::kBFloat16:
      return ACL_BF16;
    case at::kDouble:
      return ACL_DOUBLE;
    case at::kInt:
      return ACL_INT32;
    case at::kLong:
      return ACL_INT64;
    case at::kByte:
      return ACL_UINT8;
    case at::kChar:
      return ACL_INT8;
    case at::kBool:
      return ACL_BOOL;
    default:
      ADD_FAILURE() << "no type for " << at::toString(type);
      return ACL_DT_UNDEFINED;
  }
}

void DescribeBlocks(aclTensorDesc* desc, const at::Tensor& blocks,
                    const std::vector<int64_t>& shape) {
  aclSetTensorOriginShape(desc, static_cast<int>(shape.size()), shape.data());
  aclSetTensorShape(desc, static_cast<int>(blocks.dim()), blocks.sizes().data());
  aclSetTensorFormat(desc, ACL_FORMAT_FRACTAL_NZ);
}

}  // namespace

NamedCall::NamedCall(const char* name) : name_(name) {
  TestStream();
  attributes_ = aclopCreateAttr();
}

NamedCall::~NamedCall() {
  for (Side* side : {&inputs_, &outputs_}) {
    for (aclTensorDesc* desc : side->descs) aclDestroyTensorDesc(desc);
    for (aclDataBuffer* buffer : side->buffers) aclDestroyDataBuffer(buffer);
  }
  aclopDestroyAttr(attributes_);
}

NamedCall& NamedCall::Add(Side& side, const at::Tensor& tensor, aclMemType memory,
                          aclFormat format) {
  aclTensorDesc* desc = aclCreateTensorDesc(
      TypeOf(tensor.scalar_type()), static_cast<int>(tensor.dim()), tensor.sizes().data(), format);
  aclSetTensorPlaceMent(desc, memory);
  side.descs.push_back(desc);
  side.buffers.push_back(aclCreateDataBuffer(tensor.data_ptr(), tensor.nbytes()));
  side.tensors.push_back(tensor);
  return *this;
}

NamedCall& NamedCall::InBlocks(const at::Tensor& blocks, const std::vector<int64_t>& shape) {
  In(blocks);
  DescribeBlocks(inputs_.descs.back(), blocks, shape);
  return *this;
}

NamedCall& NamedCall::OutInBlocks(const at::Tensor& blocks, const std::vector<int64_t>& shape) {
  Out(blocks);
  DescribeBlocks(outputs_.descs.back(), blocks, shape);
  return *this;
}

NamedCall& NamedCall::Host(const std::vector<int64_t>& numbers) {
  return Host(at::tensor(numbers, at::kLong));
}

NamedCall& NamedCall::Constant(const std::vector<int64_t>& numbers) {
  const int64_t count = static_cast<int64_t>(numbers.size());
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_INT64, 1, &count, ACL_FORMAT_ND);
  aclSetTensorConst(desc, const_cast<int64_t*>(numbers.data()), numbers.size() * sizeof(int64_t));
  inputs_.descs.push_back(desc);
  inputs_.buffers.push_back(aclCreateDataBuffer(nullptr, 0));
  return *this;
}

NamedCall& NamedCall::None() {
  inputs_.descs.push_back(aclCreateTensorDesc(ACL_DT_UNDEFINED, 0, nullptr, ACL_FORMAT_UNDEFINED));
  inputs_.buffers.push_back(aclCreateDataBuffer(nullptr, 0));
  return *this;
}

NamedCall& NamedCall::InputOf(size_t bytes) {
  aclUpdateDataBuffer(inputs_.buffers.back(), inputs_.tensors.back().data_ptr(), bytes);
  return *this;
}

NamedCall& NamedCall::OutputOf(size_t bytes) {
  aclUpdateDataBuffer(outputs_.buffers.back(), outputs_.tensors.back().data_ptr(), bytes);
  return *this;
}

NamedCall& NamedCall::Set(const char* name, bool value) {
  aclopSetAttrBool(attributes_, name, value ? 1 : 0);
  return *this;
}

NamedCall& NamedCall::Set(const char* name, int64_t value) {
  aclopSetAttrInt(attributes_, name, value);
  return *this;
}

NamedCall& NamedCall::Set(const char* name, float value) {
  aclopSetAttrFloat(attributes_, name, value);
  return *this;
}

NamedCall& NamedCall::Set(const char* name, const char* value) {
  aclopSetAttrString(attributes_, name, value);
  return *this;
}

NamedCall& NamedCall::Set(const char* name, const std::vector<int64_t>& values) {
  aclopSetAttrListInt(attributes_, name, static_cast<int>(values.size()), values.data());
  return *this;
}

NamedCall& NamedCall::Set(const char* name, const std::vector<float>& values) {
  aclopSetAttrListFloat(attributes_, name, static_cast<int>(values.size()), values.data());
  return *this;
}

NamedCall& NamedCall::Set(const char* name, const std::vector<bool>& values) {
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  aclopSetAttrListBool(attributes_, name, static_cast<int>(bytes.size()), bytes.data());
  return *this;
}

aclError NamedCall::Launch(aclrtStream stream) {
  return aclopCompileAndExecuteV2(
      name_.c_str(), static_cast<int>(inputs_.descs.size()), inputs_.descs.data(),
      inputs_.buffers.data(), static_cast<int>(outputs_.descs.size()), outputs_.descs.data(),
      outputs_.buffers.data(), attributes_, ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream);
}

std::vector<int64_t> NamedCall::OutputShape(size_t i) const {
  std::vector<int64_t> shape(aclGetTensorDescNumDims(outputs_.descs[i]));
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    aclGetTensorDescDimV2(outputs_.descs[i], dim, &shape[dim]);
  }
  return shape;
}

aclError NamedCall::RunOlder(aclrtStream stream) {
  const aclError code = aclopCompileAndExecute(
      name_.c_str(), static_cast<int>(inputs_.descs.size()), inputs_.descs.data(),
      inputs_.buffers.data(), static_cast<int>(outputs_.descs.size()), outputs_.descs.data(),
      outputs_.buffers.data(), attributes_, ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream);
  return code != ACL_SUCCESS ? code : aclrtSynchronizeStream(stream);
}

aclError NamedCall::Run(aclrtStream stream) {
  const aclError code = Launch(stream);
  return code != ACL_SUCCESS ? code : aclrtSynchronizeStream(stream);
}

}  // namespace acltape::opapi

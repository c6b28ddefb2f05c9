#include "runtime/device/by_name/arguments.h"

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "runtime/device/short_floats.h"

namespace acltape::device {
namespace {

// Bytes of the elements as they lie in memory; false when no memory could hold them.
bool BytesInMemory(const NamedTensors& tensors, int i, size_t* bytes) {
  const aclTensorDesc& desc = *tensors.descs[i];
  size_t count = aclDataTypeSize(desc.type);
  for (int64_t dim : tensors.InBlocks(i) ? desc.storage_shape : desc.shape) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<size_t>(dim), &count)) return false;
  }
  *bytes = count;
  return true;
}

aclError CheckTensor(const NamedCall& call, const NamedTensors& tensors, int i, const char* name) {
  if (i >= tensors.count || tensors.buffers[i] == nullptr ||
      tensors.descs[i]->type == ACL_DT_UNDEFINED) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s is missing", call.name, name);
  }
  if (OnHost(tensors, i)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %s lies in host memory; the soft device takes it in device memory",
                call.name, name);
  }
  const aclDataBuffer& buffer = *tensors.buffers[i];
  size_t bytes = 0;
  if (!BytesInMemory(tensors, i, &bytes)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s has the shape %s, which is none", call.name,
                name, ShapeText(tensors.Shape(i)).c_str());
  }
  if (bytes > buffer.bytes || (bytes > 0 && buffer.data == nullptr)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %s has the shape %s, which takes %zu bytes, and a buffer of %zu bytes "
                "at %p",
                call.name, name, ShapeText(tensors.Shape(i)).c_str(), bytes, buffer.bytes,
                buffer.data);
  }
  return ACL_SUCCESS;
}

template <typename T>
T ValueAt(const char* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// The parts of a list attribute, which commas separate.
std::vector<std::string> PartsOf(const NamedCall& call, const char* attribute) {
  std::vector<std::string> parts;
  const std::string text = call.Text(attribute);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

aclError CheckCounts(const NamedCall& call, int inputs, int outputs) {
  if (call.inputs.count >= inputs && call.outputs.count >= outputs) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: it has %d inputs and %d outputs, expected at least %d and %d", call.name,
              call.inputs.count, call.outputs.count, inputs, outputs);
}

aclError CheckInput(const NamedCall& call, int i, const char* name) {
  return CheckTensor(call, call.inputs, i, name);
}

aclError CheckOutput(const NamedCall& call, int i, const char* name) {
  return CheckTensor(call, call.outputs, i, name);
}

aclError CheckGiven(const NamedCall& call, int inputs, int outputs) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, inputs, outputs));
  for (int i = 0; i < inputs; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, ("input " + std::to_string(i)).c_str()));
  }
  for (int i = 0; i < outputs; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, i, ("output " + std::to_string(i)).c_str()));
  }
  return ACL_SUCCESS;
}

aclError CheckShape(const NamedCall& call, int output, const std::vector<int64_t>& shape) {
  if (call.outputs.Shape(output) == shape) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: output %d has the shape %s, expected %s",
              call.name, output, ShapeText(call.outputs.Shape(output)).c_str(),
              ShapeText(shape).c_str());
}

aclError CheckInputShape(const NamedCall& call, int i, const std::vector<int64_t>& shape) {
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, ("input " + std::to_string(i)).c_str()));
  if (call.inputs.Shape(i) == shape) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, expected %s",
              call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(shape).c_str());
}

aclError CheckFloats(const NamedCall& call, const NamedTensors& tensors, int i) {
  const aclDataType type = tensors.descs[i]->type;
  const bool fits = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
  if (fits && !tensors.InBlocks(i)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: tensor %d has the type %d, or lies in blocks; the soft device takes "
              "float32, float16 and bfloat16 in plain order",
              call.name, i, static_cast<int>(type));
}

aclError CheckSameType(const NamedCall& call, aclDataType a, aclDataType b) {
  if (a == b) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: its tensors have the types %d and %d; the soft device takes one type",
              call.name, static_cast<int>(a), static_cast<int>(b));
}

bool OnHost(const NamedTensors& tensors, int i) {
  return i < tensors.count && tensors.descs[i]->memory != ACL_MEMTYPE_DEVICE;
}

aclError ReadBytes(const NamedCall& call, int input, const char* name, size_t bytes,
                   const char** data) {
  if (input >= call.inputs.count) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s is missing", call.name, name);
  }
  size_t given = 0;
  const aclTensorDesc& desc = *call.inputs.descs[input];
  if (!desc.constant.empty()) {
    *data = desc.constant.data();
    given = desc.constant.size();
  } else if (OnHost(call.inputs, input) && call.inputs.buffers[input] != nullptr) {
    *data = static_cast<const char*>(call.inputs.buffers[input]->data);
    given = *data != nullptr ? call.inputs.buffers[input]->bytes : 0;
  } else {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: %s is known on the device alone; the soft device takes it in host "
                "memory, or as a constant (aclSetTensorConst)",
                call.name, name);
  }
  if (given >= bytes) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s takes %zu bytes, and %zu are given", call.name,
              name, bytes, given);
}

aclError ReadIntegers(const NamedCall& call, int input, const char* name,
                      std::vector<int64_t>* values) {
  if (input >= call.inputs.count) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s is missing", call.name, name);
  }
  const aclTensorDesc& desc = *call.inputs.descs[input];
  if (desc.shape.size() > 1 || (desc.type != ACL_INT32 && desc.type != ACL_INT64)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %s has the type %d and %zu dims; expected int32 or int64, and one dim",
                call.name, name, static_cast<int>(desc.type), desc.shape.size());
  }
  const size_t count = ElementsOf(desc.shape);
  values->resize(count);
  if (count == 0) return ACL_SUCCESS;
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, aclDataTypeSize(desc.type), &bytes)) bytes = SIZE_MAX;
  const char* data = nullptr;
  ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, input, name, bytes, &data));
  for (size_t i = 0; i < count; ++i) {
    (*values)[i] = desc.type == ACL_INT32 ? ValueAt<int32_t>(data, i) : ValueAt<int64_t>(data, i);
  }
  return ACL_SUCCESS;
}

aclError ReadNumber(const NamedCall& call, int input, const char* name, double* value) {
  if (input >= call.inputs.count) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s is missing", call.name, name);
  }
  const aclTensorDesc& desc = *call.inputs.descs[input];
  const char* data = nullptr;
  ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, input, name, aclDataTypeSize(desc.type), &data));
  switch (desc.type) {
    case ACL_FLOAT:
      *value = ValueAt<float>(data, 0);
      return ACL_SUCCESS;
    case ACL_DOUBLE:
      *value = ValueAt<double>(data, 0);
      return ACL_SUCCESS;
    case ACL_FLOAT16:
      *value = float{ValueAt<Half>(data, 0)};
      return ACL_SUCCESS;
    case ACL_BF16:
      *value = float{ValueAt<Bfloat16>(data, 0)};
      return ACL_SUCCESS;
    case ACL_INT32:
      *value = ValueAt<int32_t>(data, 0);
      return ACL_SUCCESS;
    case ACL_INT64:
      *value = static_cast<double>(ValueAt<int64_t>(data, 0));
      return ACL_SUCCESS;
    default:
      return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "aclop %s: %s has the type %d; the soft device reads floats, int32 and int64",
                  call.name, name, static_cast<int>(desc.type));
  }
}

int64_t IntegerOf(const NamedCall& call, const char* attribute, int64_t otherwise) {
  const std::string text = call.Text(attribute);
  return text.empty() ? otherwise : std::strtoll(text.c_str(), nullptr, 10);
}

double RealOf(const NamedCall& call, const char* attribute, double otherwise) {
  const std::string text = call.Text(attribute);
  return text.empty() ? otherwise : std::strtod(text.c_str(), nullptr);
}

bool FlagOf(const NamedCall& call, const char* attribute, bool otherwise) {
  const std::string text = call.Text(attribute);
  return text.empty() ? otherwise : text == "true";
}

std::vector<int64_t> IntegersOf(const NamedCall& call, const char* attribute) {
  std::vector<int64_t> values;
  for (const std::string& part : PartsOf(call, attribute)) {
    values.push_back(std::strtoll(part.c_str(), nullptr, 10));
  }
  return values;
}

std::vector<double> RealsOf(const NamedCall& call, const char* attribute) {
  std::vector<double> values;
  for (const std::string& part : PartsOf(call, attribute)) {
    values.push_back(std::strtod(part.c_str(), nullptr));
  }
  return values;
}

bool IsPermutation(std::vector<int64_t>* dims, size_t count) {
  for (int64_t& dim : *dims) {
    if (dim < 0) dim += static_cast<int64_t>(count);
  }
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return dims->size() == count && std::is_permutation(dims->begin(), dims->end(), all.begin());
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

aclError ClearPadding(const NamedCall& call) {
  static const auto fill = DeviceFunction("aclrtMemsetAsync", &aclrtMemsetAsync);
  for (int i = 0; i < call.outputs.count; ++i) {
    const aclTensorDesc& desc = *call.outputs.descs[i];
    const aclDataBuffer* buffer = call.outputs.buffers[i];
    if (buffer == nullptr || call.outputs.InBlocks(i) || desc.storage_shape.empty()) continue;
    const size_t used = BytesOf(desc);
    const size_t all =
        std::min(buffer->bytes, ElementsOf(desc.storage_shape) * aclDataTypeSize(desc.type));
    if (all <= used) continue;
    ACLTAPE_RETURN_IF_FAILED(
        fill(static_cast<char*>(buffer->data) + used, all - used, 0, all - used, call.stream));
  }
  return ACL_SUCCESS;
}

}  // namespace acltape::device

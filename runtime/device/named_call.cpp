#include "runtime/device/named_call.h"

namespace acltape::device {

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;) strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

OperatorArguments::~OperatorArguments() {
  static const auto destroy_tensor =
      OperatorFunction<decltype(&aclDestroyTensor)>("aclDestroyTensor");
  static const auto destroy_list =
      OperatorFunction<decltype(&aclDestroyTensorList)>("aclDestroyTensorList");
  static const auto destroy_scalar =
      OperatorFunction<decltype(&aclDestroyScalar)>("aclDestroyScalar");
  static const auto destroy_array =
      OperatorFunction<decltype(&aclDestroyIntArray)>("aclDestroyIntArray");
  for (aclTensor* tensor : tensors_) destroy_tensor(tensor);
  for (aclTensorList* list : lists_) destroy_list(list);
  for (aclScalar* scalar : scalars_) destroy_scalar(scalar);
  static const auto destroy_truths =
      OperatorFunction<decltype(&aclDestroyBoolArray)>("aclDestroyBoolArray");
  for (aclIntArray* array : arrays_) destroy_array(array);
  for (aclBoolArray* array : truths_) destroy_truths(array);
}

aclTensor* OperatorArguments::View(const NamedTensors& tensors, int i,
                                   const std::vector<int64_t>& shape,
                                   const std::vector<int64_t>& strides, int64_t offset) {
  const aclTensorDesc& desc = *tensors.descs[i];
  const bool blocks = tensors.InBlocks(i);
  return Created(desc.type, tensors.buffers[i]->data, blocks ? desc.storage_shape : desc.shape,
                 blocks ? ACL_FORMAT_FRACTAL_NZ : ACL_FORMAT_ND, shape, strides, offset);
}

aclTensor* OperatorArguments::Tensor(aclDataType type, void* memory,
                                     const std::vector<int64_t>& storage,
                                     const std::vector<int64_t>& shape,
                                     const std::vector<int64_t>& strides, int64_t offset) {
  return Created(type, memory, storage, ACL_FORMAT_ND, shape, strides, offset);
}

aclTensor* OperatorArguments::Created(aclDataType type, void* memory,
                                      const std::vector<int64_t>& storage, aclFormat format,
                                      const std::vector<int64_t>& shape,
                                      const std::vector<int64_t>& strides, int64_t offset) {
  static const auto create = OperatorFunction<decltype(&aclCreateTensor)>("aclCreateTensor");
  if (create == nullptr) return nullptr;
  aclTensor* tensor = create(shape.data(), shape.size(), type, strides.data(), offset, format,
                             storage.data(), storage.size(), memory);
  if (tensor != nullptr) tensors_.push_back(tensor);
  return tensor;
}

aclTensor* OperatorArguments::Dense(const NamedTensors& tensors, int i,
                                    const std::vector<int64_t>& shape, int64_t offset) {
  return View(tensors, i, shape, RowMajorStrides(shape), offset);
}

aclTensorList* OperatorArguments::List(const std::vector<aclTensor*>& tensors) {
  static const auto create =
      OperatorFunction<decltype(&aclCreateTensorList)>("aclCreateTensorList");
  if (create == nullptr) return nullptr;
  aclTensorList* list = create(tensors.data(), tensors.size());
  if (list == nullptr) return nullptr;
  std::erase_if(tensors_, [&](aclTensor* tensor) {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  });
  lists_.push_back(list);
  return list;
}

const aclScalar* OperatorArguments::Float(float value) { return Scalar(ACL_FLOAT, &value); }

const aclScalar* OperatorArguments::Scalar(aclDataType type, const void* value) {
  static const auto create = OperatorFunction<decltype(&aclCreateScalar)>("aclCreateScalar");
  // The interface reads the value through a pointer that is not const.
  aclScalar* scalar = create == nullptr ? nullptr : create(const_cast<void*>(value), type);
  if (scalar != nullptr) scalars_.push_back(scalar);
  return scalar;
}

const aclIntArray* OperatorArguments::Integers(const std::vector<int64_t>& values) {
  static const auto create = OperatorFunction<decltype(&aclCreateIntArray)>("aclCreateIntArray");
  aclIntArray* array = create == nullptr ? nullptr : create(values.data(), values.size());
  if (array != nullptr) arrays_.push_back(array);
  return array;
}

const aclBoolArray* OperatorArguments::Booleans(std::initializer_list<bool> values) {
  static const auto create = OperatorFunction<decltype(&aclCreateBoolArray)>("aclCreateBoolArray");
  aclBoolArray* array = create == nullptr ? nullptr : create(values.begin(), values.size());
  if (array != nullptr) truths_.push_back(array);
  return array;
}

}  // namespace acltape::device

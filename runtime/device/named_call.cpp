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
  for (aclTensor* tensor : tensors_) destroy_tensor(tensor);
  for (aclTensorList* list : lists_) destroy_list(list);
  for (aclScalar* scalar : scalars_) destroy_scalar(scalar);
}

aclTensor* OperatorArguments::View(const NamedTensors& tensors, int i,
                                   const std::vector<int64_t>& shape,
                                   const std::vector<int64_t>& strides, int64_t offset) {
  static const auto create = OperatorFunction<decltype(&aclCreateTensor)>("aclCreateTensor");
  if (create == nullptr) return nullptr;
  const aclTensorDesc& desc = *tensors.descs[i];
  const bool blocks = tensors.InBlocks(i);
  const std::vector<int64_t>& storage = blocks ? desc.storage_shape : desc.shape;
  aclTensor* tensor = create(shape.data(), shape.size(), desc.type, strides.data(), offset,
                             blocks ? ACL_FORMAT_FRACTAL_NZ : ACL_FORMAT_ND, storage.data(),
                             storage.size(), tensors.buffers[i]->data);
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

const aclScalar* OperatorArguments::Float(float value) {
  static const auto create = OperatorFunction<decltype(&aclCreateScalar)>("aclCreateScalar");
  aclScalar* scalar = create == nullptr ? nullptr : create(&value, ACL_FLOAT);
  if (scalar != nullptr) scalars_.push_back(scalar);
  return scalar;
}

}  // namespace acltape::device

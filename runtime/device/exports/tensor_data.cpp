// Data items of tensor channels, and datasets of them (section 32 of the rules).
#include "runtime/device/channels/tensor_data.h"

#include <algorithm>

#include "runtime/device/memory.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

namespace {

constexpr size_t kMostTensorDims = 128;

// Says what is wrong with the arguments of a new item; null: nothing.
const char* WrongItem(acltdtTensorType type, const int64_t* dims, size_t dim_count,
                      const void* data, size_t bytes) {
  if ((dims == nullptr) != (dim_count == 0)) return "dims and dimNum do not fit to each other";
  if (dim_count > kMostTensorDims) return "dimNum is above 128";
  if (type < ACL_TENSOR_DATA_TENSOR || type > ACL_TENSOR_DATA_ABNORMAL) {
    return "tdtType is none of tensor, end of sequence and abnormal";
  }
  if (type != ACL_TENSOR_DATA_TENSOR) {
    return dims != nullptr ? "only a tensor has dims" : nullptr;
  }
  return data == nullptr && bytes > 0 ? "data is NULL" : nullptr;
}

enum class ItemMemory { kNone, kHost, kDevice };

ItemMemory MemoryOf(const acltdtDataItem& item) {
  if (item.data == nullptr) return ItemMemory::kNone;
  return IsDevice(FindMemory(item.data)) ? ItemMemory::kDevice : ItemMemory::kHost;
}

}  // namespace

acltdtDataItem* acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t* dims, size_t dimNum,
                                     aclDataType dataType, void* data, size_t size) {
  if (const char* wrong = WrongItem(tdtType, dims, dimNum, data, size)) {
    Fail(ACL_ERROR_INVALID_PARAM, "acltdtCreateDataItem: %s", wrong);
    return nullptr;
  }
  acltdtDataItem item;
  item.type = tdtType;
  if (tdtType == ACL_TENSOR_DATA_TENSOR) {
    item.dims.assign(dims, dims + dimNum);
    item.data_type = dataType;
    item.data = data;
    item.bytes = size;
  }
  return Plain<acltdtDataItem>().Create(std::move(item));
}

aclError acltdtDestroyDataItem(acltdtDataItem* dataItem) {
  ACLTAPE_CALL("acltdtDestroyDataItem");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataItem, kCall, "dataItem"));
  if (dataItem->received) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "%s: the item was received and belongs to its dataset; destroy that", kCall);
  }
  return DestroyPlain(dataItem, kCall, "dataItem");
}

acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem* dataItem) {
  return ValueOr(
      dataItem, "acltdtGetTensorTypeFromItem", "dataItem",
      [](const acltdtDataItem& item) { return item.type; }, ACL_TENSOR_DATA_UNDEFINED);
}

aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem) {
  return ValueOr(
      dataItem, "acltdtGetDataTypeFromItem", "dataItem",
      [](const acltdtDataItem& item) { return item.data_type; }, ACL_DT_UNDEFINED);
}

void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem) {
  return ValueOr(
      dataItem, "acltdtGetDataAddrFromItem", "dataItem",
      [](const acltdtDataItem& item) { return item.data; }, nullptr);
}

size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem) {
  return ValueOr(
      dataItem, "acltdtGetDataSizeFromItem", "dataItem",
      [](const acltdtDataItem& item) { return item.bytes; }, 0);
}

size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem) {
  return ValueOr(
      dataItem, "acltdtGetDimNumFromItem", "dataItem",
      [](const acltdtDataItem& item) { return item.dims.size(); }, 0);
}

aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims, size_t dimNum) {
  ACLTAPE_CALL("acltdtGetDimsFromItem");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataItem, kCall, "dataItem"));
  if ((dims == nullptr) != (dimNum == 0)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: dims %p and dimNum %zu do not fit to each other",
                kCall, static_cast<void*>(dims), dimNum);
  }
  if (dimNum < dataItem->dims.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the item has %zu dims, and there is room for %zu",
                kCall, dataItem->dims.size(), dimNum);
  }
  std::copy(dataItem->dims.begin(), dataItem->dims.end(), dims);
  return ACL_SUCCESS;
}

// Nothing here cuts a tensor into slices, so each is its only one.
aclError acltdtGetSliceInfoFromItem(const acltdtDataItem* dataItem, size_t* sliceNum,
                                    size_t* sliceId) {
  ACLTAPE_CALL("acltdtGetSliceInfoFromItem");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataItem, kCall, "dataItem"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(sliceNum, kCall, "sliceNum"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(sliceId, kCall, "sliceId"));
  *sliceNum = 1;
  *sliceId = 0;
  return ACL_SUCCESS;
}

acltdtDataset* acltdtCreateDataset(void) { return Plain<acltdtDataset>().Create(); }

aclError acltdtDestroyDataset(acltdtDataset* dataset) {
  ACLTAPE_CALL("acltdtDestroyDataset");
  return DestroyPlain(dataset, kCall, "dataset");
}

aclError acltdtAddDataItem(acltdtDataset* dataset, acltdtDataItem* dataItem) {
  ACLTAPE_CALL("acltdtAddDataItem");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataset, kCall, "dataset"));
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataItem, kCall, "dataItem"));
  if (dataset->received || dataItem->received) {
    return Fail(ACL_ERROR_FEATURE_UNSUPPORTED,
                "%s: what was received belongs together; copy it into an item of your own", kCall);
  }
  const ItemMemory memory = MemoryOf(*dataItem);
  for (const acltdtDataItem* other : dataset->items) {
    if (Plain<acltdtDataItem>().Find(other) == nullptr) continue;
    const ItemMemory known = MemoryOf(*other);
    if (memory == ItemMemory::kNone || known == ItemMemory::kNone || memory == known) continue;
    return Fail(ACL_ERROR_INVALID_PARAM,
                "%s: a dataset refers to memory of the host or of the device, not to both", kCall);
  }
  dataset->items.push_back(dataItem);
  return ACL_SUCCESS;
}

acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index) {
  constexpr const char* kCall = "acltdtGetDataItem";
  if (CheckPlain(dataset, kCall, "dataset") != ACL_SUCCESS) return nullptr;
  if (index >= dataset->items.size()) {
    Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no item %zu in a dataset of %zu", kCall, index,
         dataset->items.size());
    return nullptr;
  }
  return dataset->items[index];
}

size_t acltdtGetDatasetSize(const acltdtDataset* dataset) {
  return ValueOr(
      dataset, "acltdtGetDatasetSize", "dataset",
      [](const acltdtDataset& live) { return live.items.size(); }, 0);
}

const char* acltdtGetDatasetName(const acltdtDataset* dataset) {
  return ValueOr(
      dataset, "acltdtGetDatasetName", "dataset",
      [](const acltdtDataset& live) { return live.name.c_str(); }, nullptr);
}

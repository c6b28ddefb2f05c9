#include "runtime/device/channels/tensor_data.h"

#include "runtime/device/memory.h"
#include "runtime/device/plain_object.h"

acltdtDataset::~acltdtDataset() {
  if (!received) return;
  for (acltdtDataItem* item : items) acltape::device::Plain<acltdtDataItem>().Destroy(item);
}

namespace acltape::device {

aclError CopyBatch(const acltdtDataset& dataset, const char* call, TensorBatch* batch) {
  for (const acltdtDataItem* item : dataset.items) {
    ACLTAPE_RETURN_IF_FAILED(CheckPlain(item, call, "an item of the dataset"));
    acltdtDataItem copy = *item;
    if (item->bytes > 0) {
      ACLTAPE_RETURN_IF_FAILED(CheckMemory(item->data, item->bytes, call, "data of an item"));
      const auto* first = static_cast<const char*>(item->data);
      copy.own.assign(first, first + item->bytes);
    }
    copy.data = nullptr;
    batch->push_back(std::move(copy));
  }
  return ACL_SUCCESS;
}

bool FillDataset(TensorBatch&& batch, const std::string& name, acltdtDataset* dataset) {
  dataset->received = true;
  dataset->name = name;
  for (acltdtDataItem& item : batch) {
    acltdtDataItem* made = Plain<acltdtDataItem>().Create(std::move(item));
    if (made == nullptr) return false;
    made->received = true;
    made->data = made->own.empty() ? nullptr : made->own.data();
    dataset->items.push_back(made);
  }
  return true;
}

}  // namespace acltape::device

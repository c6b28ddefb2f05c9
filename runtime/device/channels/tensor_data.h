// Tensors on their way through a channel: data items, and datasets of them (TDT-01, TDT-02).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl_tdt.h"

// An item that the program made refers to the program's memory. An item that was received has bytes
// of its own, and belongs to the dataset that it came in.
struct acltdtDataItem {
  acltdtTensorType type = ACL_TENSOR_DATA_UNDEFINED;
  std::vector<int64_t> dims;
  aclDataType data_type = ACL_DT_UNDEFINED;
  void* data = nullptr;
  size_t bytes = 0;
  bool received = false;
  std::vector<char> own;
};

struct acltdtDataset {
  std::vector<acltdtDataItem*> items;
  bool received = false;
  std::string name;  // the channel that it came through; empty if the program filled it

  acltdtDataset() = default;
  acltdtDataset(const acltdtDataset&) = delete;
  acltdtDataset& operator=(const acltdtDataset&) = delete;
  ~acltdtDataset();
};

namespace acltape::device {

// The tensors of a dataset with their bytes, while they are in a channel.
using TensorBatch = std::vector<acltdtDataItem>;

// Copies what the items of the dataset refer to. Fails when one of them, or its memory, is gone.
aclError CopyBatch(const acltdtDataset& dataset, const char* call, TensorBatch* batch);

// Gives the dataset, which is empty, items of its own. False when no memory is left.
bool FillDataset(TensorBatch&& batch, const std::string& name, acltdtDataset* dataset);

}  // namespace acltape::device

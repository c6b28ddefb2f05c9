// Looking into captured models and changing them (ENUM-01 to ENUM-17).
//
// A change is kept beside its task until aclmdlRIUpdate applies all of them. What applied changes
// replace stays alive with the model, as others may have taken over its arguments (function.h).
#pragma once

#include <vector>

#include "runtime/device/function.h"
#include "runtime/device/model.h"

namespace acltape::device {

// Attributes that a change gives to a kernel task beside its function and arguments.
struct KernelAttributes {
  uint32_t blocks = 1;
  std::vector<aclrtLaunchKernelAttr> attributes;
  aclrtLaunchKernelCfg config{};  // over `attributes`; what GetParams gives out
  void* opaque = nullptr;         // the 8 byte block of an opaque kernel
  // Changes that wait for the update.
  bool disable = false;
  bool set = false;
  Task next;
  uint32_t next_blocks = 1;
  std::vector<aclrtLaunchKernelAttr> next_attributes;

  ~KernelAttributes();
};

aclmdlRITaskType TypeOf(const Model::Node& node);  // ENUM-06

// Makes a handle at the first request. It lives as long as the model. Null when none is left.
HandleBlock* HandleOf(Model::HiddenStream& stream);
HandleBlock* HandleOf(Model::Node& node);

aclError GetParams(Model::Node& node, aclmdlRITaskParams* params);
aclError SetParams(Model::Node& node, const aclmdlRITaskParams& params);
aclError DisableTask(Model::Node& node);
aclError ApplyChanges(Model& model);
aclError GetKernelAttribute(const Model::Node& node, aclrtLaunchKernelAttrId id,
                            aclrtLaunchKernelAttrValue* value);

}  // namespace acltape::device

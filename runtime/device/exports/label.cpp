// Labels of built models (LBL-01 to LBL-03).
#include "runtime/device/built_model.h"
#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kLabels = 65535;  // LBL-01, of the process

Numbers& LabelNumbers() {
  static Numbers& numbers = *new Numbers(kLabels);
  return numbers;
}

aclError FindLabel(aclrtLabel handle, const char* call, Label** label) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "the label"));
  *label = ObjectOf<Label>(handle, HandleKind::kLabel);
  if (*label != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live label", call, handle);
}

aclError FindLabelList(aclrtLabelList handle, const char* call, LabelList** list) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "the label list"));
  *list = ObjectOf<LabelList>(handle, HandleKind::kLabelList);
  if (*list != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live label list", call, handle);
}

}  // namespace

aclError aclrtCreateLabel(aclrtLabel* label) {
  ACLTAPE_CALL("aclrtCreateLabel");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(label, kCall, "label"));
  if (CurrentContext(kCall) == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  std::optional<uint32_t> number = LabelNumbers().Take();
  if (!number) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: all %u labels of the process are in use",
                kCall, kLabels);
  }
  auto* created = new Label{nullptr, *number};
  created->handle = AllocateHandle(HandleKind::kLabel, created);
  if (created->handle == nullptr) {
    LabelNumbers().Release(*number);
    delete created;
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", kCall);
  }
  *label = created->handle;
  return ACL_SUCCESS;
}

aclError aclrtDestroyLabel(aclrtLabel label) {
  ACLTAPE_CALL("aclrtDestroyLabel");
  if (Exiting()) return ACL_SUCCESS;
  Label* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindLabel(label, kCall, &found));
  WipeHandle(found->handle);
  LabelNumbers().Release(found->number);
  delete found;
  return ACL_SUCCESS;
}

aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream) {
  ACLTAPE_CALL("aclrtSetLabel");
  Label* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindLabel(label, kCall, &found));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &on));
  return SetLabel(*found, *on);
}

aclError aclrtCreateLabelList(aclrtLabel* labels, size_t num, aclrtLabelList* labelList) {
  ACLTAPE_CALL("aclrtCreateLabelList");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(labels, kCall, "labels"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(labelList, kCall, "labelList"));
  if (num == 0 || num > kLabels) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu labels are none or too many", kCall, num);
  }
  auto list = std::make_unique<LabelList>();
  for (size_t i = 0; i < num; ++i) {
    Label* label = nullptr;
    ACLTAPE_RETURN_IF_FAILED(FindLabel(labels[i], kCall, &label));
    list->places.push_back(label->place);
  }
  list->handle = AllocateHandle(HandleKind::kLabelList, list.get());
  if (list->handle == nullptr) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", kCall);
  }
  *labelList = list.release()->handle;
  return ACL_SUCCESS;
}

aclError aclrtDestroyLabelList(aclrtLabelList labelList) {
  ACLTAPE_CALL("aclrtDestroyLabelList");
  if (Exiting()) return ACL_SUCCESS;
  LabelList* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindLabelList(labelList, kCall, &found));
  WipeHandle(found->handle);
  delete found;
  return ACL_SUCCESS;
}

aclError aclrtSwitchLabelByIndex(void* ptr, uint32_t maxValue, aclrtLabelList labelList,
                                 aclrtStream stream) {
  ACLTAPE_CALL("aclrtSwitchLabelByIndex");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  LabelList* list = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindLabelList(labelList, kCall, &list));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &on));
  if (!IsDevice(FindMemory(ptr))) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not device memory", kCall, ptr);
  }
  if (maxValue == 0 || maxValue > list->places.size()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: maxValue %u is not from 1 to the %zu labels",
                kCall, maxValue, list->places.size());
  }
  return SwitchLabel(static_cast<const uint32_t*>(ptr),
                     {list->places.begin(), list->places.begin() + maxValue}, *on);
}

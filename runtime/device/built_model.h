// Models that are built without capture, and the labels that belong to them (BLD-01 to BLD-05,
// LBL-01 to LBL-03, STR-23).
//
// Tasks submitted to a bound stream are stored. An execution starts the head streams and runs until
// every stream that was activated has ended. A switch or activation lets its own stream go on.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device/model.h"

namespace acltape::device {

// The place of a label in a stream. Tasks refer to it before it is set (LBL-03).
struct LabelPlace {
  const Model* model = nullptr;  // null: not set yet
  uint32_t member = 0;
  size_t position = 0;  // among the tasks of the member
};

struct Label {
  HandleBlock* handle;
  uint32_t number;
  std::shared_ptr<LabelPlace> place = std::make_shared<LabelPlace>();
};

struct LabelList {
  HandleBlock* handle;
  std::vector<std::shared_ptr<LabelPlace>> places;
};

aclError BindStream(Model& model, Stream& stream, bool head);
aclError UnbindStream(Model& model, Stream& stream);
// Drops the tasks that a persistent stream holds. A model that is being built and to which the
// stream is bound skips the tasks that it got from it (STR-25).
aclError CleanPersistent(Stream& stream);
// Before the model is destroyed.
void UnbindAll(Model& model);
aclError SubmitEndTask(Model& model, Stream& stream);
aclError EndBuild(Model& model);

aclError SetLabel(Label& label, Stream& stream);
aclError SwitchLabel(const uint32_t* index, std::vector<std::shared_ptr<LabelPlace>> places,
                     Stream& stream);

aclError ActivateStream(Stream& activated, Stream& stream);

// The comparison of two values in device memory by which a switch decides.
struct Comparison {
  const void* left;
  const void* right;
  aclrtCondition condition;
  aclrtCompareDataType type;
};
// `if_false` may be null.
aclError SwitchStream(const Comparison& comparison, Stream& if_true, Stream& stream);

}  // namespace acltape::device

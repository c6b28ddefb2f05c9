// Follows the kernels that torch.compile's inductor generates for the CPU; see inductor.cpp.
#pragma once

#include "recorder/torch/python_api.h"

namespace acltape::torch_plugin {

// The interpreter's lock is held. `python` lives for ever.
void FollowInductor(const Interpreter& python);

}  // namespace acltape::torch_plugin

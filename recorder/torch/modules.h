// Follows torch.nn modules of a Python program; see modules.cpp.
#pragma once

namespace acltape::torch_plugin {

// Asks the interpreter, if there is one, to set up the hooks. Called once, at the first leaf.
void FollowModules();

}  // namespace acltape::torch_plugin

// The hooks call these through ctypes.
extern "C" {
void acltape_torch_module_begin(const char* name);
void acltape_torch_module_end();
}

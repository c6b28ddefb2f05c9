// Operators that PyTorch dispatches in Python; see python_keys.cpp.
#pragma once

namespace acltape::torch_plugin {

// Makes them pass our dispatch keys by. False when PyTorch's Python part is not loaded so far; it
// is then called again at a later leaf.
bool HideKeysFromPython();

}  // namespace acltape::torch_plugin

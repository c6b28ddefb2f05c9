// Operators that PyTorch dispatches in Python; see python_keys.cpp.
#pragma once

namespace acltape::torch_plugin {

// Lets these operators skip the dispatch keys of the plug-in. Returns false while the Python part
// of PyTorch is not loaded; a later leaf then calls it again.
bool HideKeysFromPython();

}  // namespace acltape::torch_plugin

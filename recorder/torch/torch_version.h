// Everything that differs between the libtorch versions the plug-in builds on (1.13 and 2.x).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/version.h>

namespace acltape::torch_plugin {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
// Since 2.3 an allocator takes part in copying storages and allocate is not const.
#define ACLTAPE_ALLOCATE_QUALIFIER
#define ACLTAPE_ALLOCATOR_HAS_COPY 1
#else
#define ACLTAPE_ALLOCATE_QUALIFIER const
#define ACLTAPE_ALLOCATOR_HAS_COPY 0
#endif

// True while this thread evaluates a graph task of the autograd engine.
inline bool EngineIsRunning() {
#if TORCH_VERSION_MAJOR >= 2
  return torch::autograd::get_current_graph_task_id() != -1;
#else
  return torch::autograd::get_current_graph_task_exec_info() != nullptr;
#endif
}

// The type of an argument before numbers stand for dtypes, layouts and memory formats.
inline const c10::TypePtr& DeclaredType(const c10::Argument& argument) {
  return argument.real_type();
}

}  // namespace acltape::torch_plugin

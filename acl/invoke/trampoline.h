// Trampolines from packed arguments to typed C calls: one instantiation per sequence of C types,
// used by the generated operator table only.
#pragma once

#include <cstddef>
#include <utility>

#include "acl/invoke/arg_value.h"

namespace acltape::acl {

template <typename... Ts>
struct Trampoline {
  static aclnnStatus Prepare(void* function, const ArgValue* args, uint64_t* workspace_size,
                             aclOpExecutor** executor) {
    return PrepareIndexed(function, args, workspace_size, executor,
                          std::index_sequence_for<Ts...>{});
  }

  static aclnnStatus LaunchRepeating(void* function, const ArgValue* args, void* workspace,
                                     uint64_t workspace_size, aclOpExecutor* executor,
                                     aclrtStream stream) {
    return LaunchIndexed(function, args, workspace, workspace_size, executor, stream,
                         std::index_sequence_for<Ts...>{});
  }

 private:
  template <size_t... I>
  static aclnnStatus PrepareIndexed(void* function, [[maybe_unused]] const ArgValue* args,
                                    uint64_t* workspace_size, aclOpExecutor** executor,
                                    std::index_sequence<I...>) {
    using Function = aclnnStatus (*)(Ts..., uint64_t*, aclOpExecutor**);
    return reinterpret_cast<Function>(function)(Unpack<Ts>(args[I])..., workspace_size, executor);
  }

  template <size_t... I>
  static aclnnStatus LaunchIndexed(void* function, [[maybe_unused]] const ArgValue* args,
                                   void* workspace, uint64_t workspace_size,
                                   aclOpExecutor* executor, aclrtStream stream,
                                   std::index_sequence<I...>) {
    using Function = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, Ts..., aclrtStream);
    return reinterpret_cast<Function>(function)(workspace, workspace_size, executor,
                                                Unpack<Ts>(args[I])..., stream);
  }
};

}  // namespace acltape::acl

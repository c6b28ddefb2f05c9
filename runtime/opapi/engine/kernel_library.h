// The interface between libopapi.so and a library of kernels. libopapi.so exports the operators and
// packs their arguments; it serves every libtorch. The kernels are compiled against one libtorch
// and lie in its kit (kit/place.h) as libacltape_kernels.so.
//
// Both sides may be built with another ABI of std::string (wheels of libtorch before 2.6 have the
// old one), so no string object crosses this line.
#pragma once

#include <cstdint>
#include <string_view>

#include "acl/invoke/operator_table.h"
#include "runtime/opapi/engine/bound_kernel.h"

namespace acltape::opapi {

// The operator table of libopapi.so, which the kernel library does not have.
struct OperatorTable {
  const acl::OperatorInfo* (*find)(std::string_view name);
  uint32_t count;
};

struct KernelLibrary {
  const char* torch_version;
  // Sorts the kernels by operator index. Called once, before the rest. False, with a message for
  // aclGetRecentErrMsg, when two kernels name one operator.
  bool (*open)(const OperatorTable& table);
  bool (*has_kernel)(uint32_t op_index);
  // Validates the arguments and binds them; `*kernel` belongs to the caller. Otherwise gives an
  // aclnn status, with a message for aclGetRecentErrMsg. Throws nothing.
  aclnnStatus (*bind)(const acl::OperatorInfo& op, const acl::ArgValue* args, Kernel** kernel);
};

// Exported by libacltape_kernels.so.
inline constexpr char kKernelLibrarySymbol[] = "acltape_kernel_library";
using KernelLibraryFunction = const KernelLibrary* (*)();

// The kernel library for this process, opened at the first call: that of the libtorch which the
// process has loaded, else that of $ACLTAPE_KIT, else the default one. Null when there is none;
// `*why` is then one sentence, and `*no_memory` says whether a limit on memory is the cause.
const KernelLibrary* ThisKernelLibrary(const char** why, bool* no_memory = nullptr);

}  // namespace acltape::opapi

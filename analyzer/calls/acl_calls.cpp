#include "analyzer/calls/acl_calls.h"

#include <algorithm>
#include <iterator>

#include "generated/analyzer/calls/acl_functions.h"
#include "generated/meaning/interface_numbers.h"

namespace acltape::analyzer {
namespace {

// True if the row of each kind, or variant, is at the number of its enumerator.
constexpr bool AreInOrder() {
  for (size_t i = 0; i < std::size(kAclKinds); ++i) {
    if (static_cast<size_t>(kAclKinds[i].kind) != i) return false;
  }
  for (size_t i = 0; i < std::size(kAclVariants); ++i) {
    if (static_cast<size_t>(kAclVariants[i].variant) != i) return false;
  }
  return std::size(kAclKinds) == static_cast<size_t>(AclCallKind::kUnknown) + 1 &&
         std::size(kAclVariants) == static_cast<size_t>(AclVariant::kExchangeMode) + 1;
}
static_assert(AreInOrder(), "kinds and variants of acl/data/meaning.json are those of the header");

// Codes that a wait returns when work failed and not the wait itself (rules ERR-03, ERR-04).
constexpr int32_t kFirstTaskError = meaning::kAclErrorRtInternalError;
constexpr int32_t kLastTaskError = kFirstTaskError + 999;
constexpr int32_t kWaitTimeouts[] = {meaning::kAclErrorRtStreamSyncTimeout,
                                     meaning::kAclErrorRtEventSyncTimeout};  // rules STR-13, EVT-13

}  // namespace

const AclFunction& FindAclFunction(std::string_view name) {
  static constexpr AclFunction kUnknownRow;
  const AclFunction* found = std::ranges::lower_bound(kAclFunctions, name, {}, &AclFunction::name);
  if (found != std::end(kAclFunctions) && found->name == name) return *found;
  for (const AclPrefix& row : kAclPrefixes) {
    if (name.starts_with(row.prefix)) return row.function;
  }
  return kUnknownRow;
}

bool IsExternalFlag(int64_t flag) {
  static_assert(meaning::kAclEventRecordExternal == meaning::kAclEventWaitExternal);
  return flag == meaning::kAclEventRecordExternal;
}

bool WaitedForFailedWork(AclCallKind kind, int32_t status) {
  const bool wait = kind == AclCallKind::kDeviceSync || kind == AclCallKind::kStreamSync ||
                    kind == AclCallKind::kEventSync;
  return wait && kFirstTaskError <= status && status <= kLastTaskError &&
         std::ranges::find(kWaitTimeouts, status) == std::end(kWaitTimeouts);
}

const AclKindFacts& FactsOf(AclCallKind kind) { return kAclKinds[static_cast<size_t>(kind)]; }

const AclVariantFacts& FactsOf(AclVariant variant) {
  return kAclVariants[static_cast<size_t>(variant)];
}

}  // namespace acltape::analyzer

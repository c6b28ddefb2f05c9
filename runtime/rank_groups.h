// The communicators of this process, for operators that take a group's name. libhccl.so, which
// makes communicators, offers these functions when it is loaded; the operator library asks for
// them. So neither needs the other one. Private to the soft device, like runtime/kernel_launch.h.
#pragma once

#include "hccl/hccl_types.h"
#include "runtime/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// The part that one rank has in the calls of one operator: it communicates as often as the kernel
// runs.
typedef struct SoftGroupMember SoftGroupMember;

typedef enum SoftExchangeKind {
  SOFT_ALL_REDUCE,      // sums; `count` elements are given and taken
  SOFT_ALL_GATHER,      // `count` elements are given; those of all ranks are taken
  SOFT_REDUCE_SCATTER,  // sums; `count` elements are taken; those for all ranks are given
  SOFT_ALL_TO_ALL,      // `count` elements are given to each rank, and taken from each
  SOFT_ALL_TO_ALL_V,    // each rank is given its own number of elements
  SOFT_BARRIER,         // nothing is given
} SoftExchangeKind;

// A communication of all ranks of the group, with the same kind, count and dtype on each. The
// arrays are those of SOFT_ALL_TO_ALL_V, an element for each rank, and may end when `begin` has
// returned: numbers of elements, and the places from which on they lie.
typedef struct SoftExchange {
  SoftExchangeKind kind;
  HcclDataType dtype;
  uint64_t count;
  const void* send;
  void* recv;
  const uint64_t* send_counts;
  const uint64_t* send_places;
  const uint64_t* recv_counts;
  const uint64_t* recv_places;
} SoftExchange;

typedef struct SoftGroupFunctions {
  // The member for the group of this name, as HcclGetCommName gives it. Where ranks of the group
  // are threads of this process, it is the one of the thread's device. Null, with a message of this
  // thread that says which groups there are, when the process has no such group.
  SoftGroupMember* (*join)(const char* group, uint32_t* rank, uint32_t* ranks);
  void (*leave)(SoftGroupMember* member);
  // Before a launch. The exchanges of captured calls fit those of captured calls alone (HCL-08).
  void (*launched)(SoftGroupMember* member, bool captured);
  // Begins an exchange. The last one of the member has ended.
  void (*begin)(SoftGroupMember* member, const SoftExchange* exchange);
  // Goes on as far as it can without waiting for long; true when `finish` would return at once.
  bool (*ready)(SoftGroupMember* member);
  // Waits for the end. Gives 0 or the task's error code, with a message of this thread.
  aclError (*finish)(SoftGroupMember* member);
  // The kernel will not communicate. The other ranks then fail, too, with this reason.
  void (*fail)(SoftGroupMember* member, const char* why);
} SoftGroupFunctions;

// The table lives as long as the process.
__attribute__((visibility("default"))) void SoftOfferGroups(const SoftGroupFunctions* functions);
// Null while no library of communicators is loaded.
__attribute__((visibility("default"))) const SoftGroupFunctions* SoftGroups(void);

#ifdef __cplusplus
}
#endif

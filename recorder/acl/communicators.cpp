#include "recorder/acl/communicators.h"

#include <string.h>

#include "base/hash.h"
#include "hccl/hccl.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::acl_agent {
namespace {

// A handle whose communicator the collector knows. A program may destroy a communicator and get its
// address again for another one, which has another name.
struct Known {
  uint64_t id;
  uint64_t name_hash;
};
agent::PointerMap<Known> g_known;

struct Functions {
  decltype(&HcclGetCommName) name = nullptr;
  decltype(&HcclGetRankId) rank = nullptr;
};

const Functions& Library() {
  static Functions functions;
  if (functions.name == nullptr) {
    Resolve(functions.name, "HcclGetCommName");
    Resolve(functions.rank, "HcclGetRankId");
  }
  return functions;
}

void Write(agent::Tape& tape, uint64_t id, uint64_t communicator, uint32_t rank, uint32_t ranks,
           const char* name) {
  const auto bytes = static_cast<uint32_t>(strlen(name)) + 1;
  uint32_t total = 0;
  auto* record =
      tape.Begin<wire::CommunicatorRecord>(wire::RecordKind::kCommunicator, bytes, &total);
  if (record == nullptr) return;
  record->communicator_id = id;
  record->address = communicator;
  record->rank = rank;
  record->ranks = ranks;
  memcpy(record + 1, name, bytes);
  tape.End(total);
}

}  // namespace

uint64_t CommunicatorId(Thread& thread, uint64_t communicator) {
  if (communicator == 0) return 0;
  const auto handle = reinterpret_cast<HcclComm>(communicator);
  char name[COMM_NAME_MAX_LENGTH + 1] = {};
  uint32_t rank = 0;
  uint32_t ranks = 0;
  {
    const Inside inside(thread);
    const Functions& library = Library();
    if (library.name != nullptr && library.name(handle, name) != HCCL_SUCCESS) name[0] = '\0';
    rank = RankIn(communicator);
    ranks = RanksOf(communicator);
  }
  base::Fnv1a hash;
  for (const char* c = name; *c != '\0'; ++c) hash.Add(static_cast<unsigned char>(*c));
  const uint64_t name_hash = hash.hash() + rank;
  const auto* key = reinterpret_cast<const void*>(communicator);
  Known known{};
  if (g_known.Get(key, &known) && known.name_hash == name_hash) return known.id;
  known = {thread.tape->NextHandleId(), name_hash};
  if (g_known.Put(key, known) == agent::PutResult::kNoMemory) {
    agent::LeaveOut(wire::LeftOut::kIdentities);
    return 0;
  }
  Write(*thread.tape, known.id, communicator, rank, ranks, name);
  return known.id;
}

uint32_t RanksOf(uint64_t communicator) {
  static decltype(&HcclGetRankSize) size = nullptr;
  if (size == nullptr) Resolve(size, "HcclGetRankSize");
  uint32_t ranks = 1;
  if (size != nullptr && size(reinterpret_cast<HcclComm>(communicator), &ranks) != HCCL_SUCCESS) {
    return 1;
  }
  return ranks;
}

uint32_t RankIn(uint64_t communicator) {
  const Functions& library = Library();
  uint32_t rank = 0;
  if (library.rank == nullptr ||
      library.rank(reinterpret_cast<HcclComm>(communicator), &rank) != HCCL_SUCCESS) {
    return 0;
  }
  return rank;
}

void ForgetCommunicatorLocks() { g_known.ForgetLocks(); }

}  // namespace acltape::acl_agent

extern "C" HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  using namespace acltape::acl_agent;
  const auto ask =
      reinterpret_cast<decltype(&HcclGetCommName)>(Real(CommunicatorFunctionNumber(0)));
  if (ask == nullptr) return HCCL_E_NOT_SUPPORT;
  const HcclResult result = ask(comm, commName);
  if (result != HCCL_SUCCESS) return result;
  if (Thread* thread = Enter()) CommunicatorId(*thread, reinterpret_cast<uint64_t>(comm));
  return result;
}

namespace acltape::acl_agent {

const WrappedFunction kCommunicatorFunctions[] = {
    {"HcclGetCommName", reinterpret_cast<void*>(&::HcclGetCommName)},
    {nullptr, nullptr},
};

}  // namespace acltape::acl_agent

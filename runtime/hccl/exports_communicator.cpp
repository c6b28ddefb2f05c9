// Functions that make communicators, ask them and give them up.

#include <atomic>

#include "runtime/hccl/communicator.h"
#include "runtime/hccl/export.h"
#include "runtime/hccl/rank_table.h"
#include "runtime/hccl/rendezvous.h"
#include "runtime/waiting_launch.h"

using namespace acltape::hccl;

namespace {

HcclResult CheckRank(const char* call, uint32_t ranks, uint32_t rank) {
  if (ranks == 0 || ranks > Meeting::kMostRanks) {
    return Refuse(HCCL_E_PARA, "%s: there are %u ranks; the soft device takes 1 to %u", call, ranks,
                  Meeting::kMostRanks);
  }
  if (rank >= ranks) {
    return Refuse(HCCL_E_PARA, "%s: rank %u is none of %u ranks", call, rank, ranks);
  }
  return HCCL_SUCCESS;
}

HcclResult Join(const char* call, std::shared_ptr<Meeting> meeting, uint32_t rank,
                const Wishes& wishes, HcclComm* comm) {
  std::string message;
  const HcclResult joined = JoinMeeting(*meeting, rank, &message);
  if (joined != HCCL_SUCCESS) return Refuse(joined, "%s: %s", call, message.c_str());
  if (meeting->ranks() > 1) SoftWorkIsShared();
  int32_t device = -1;  // -1: the thread has none
  aclrtGetDevice(&device);
  *comm = Communicator::Register(
      std::make_shared<Communicator>(std::move(meeting), rank, wishes, device));
  return HCCL_SUCCESS;
}

// With a name that all ranks know, rank 0 serves.
HcclResult MeetByName(const char* call, const std::string& name, uint32_t ranks, uint32_t rank,
                      const Wishes& wishes, HcclComm* comm) {
  std::string message;
  if (rank == 0 && Serve(name, &message).empty()) {
    return Refuse(HCCL_E_SYSCALL, "%s: %s", call, message.c_str());
  }
  std::shared_ptr<Meeting> meeting;
  const HcclResult asked = AskFor(name, rank != 0, ranks, rank, &meeting, &message);
  if (asked != HCCL_SUCCESS) return Refuse(asked, "%s: %s", call, message.c_str());
  return Join(call, std::move(meeting), rank, wishes, comm);
}

HcclResult MeetByRoot(const char* call, uint32_t ranks, const HcclRootInfo* root, uint32_t rank,
                      const HcclCommConfig* config, HcclComm* comm) {
  if (root == nullptr || comm == nullptr) {
    return Refuse(HCCL_E_PTR, "%s: the root information or the output is NULL", call);
  }
  if (const HcclResult wrong = CheckRank(call, ranks, rank)) return wrong;
  const std::string name = ReadRootInfo(*root);
  if (name.empty()) {
    return Refuse(HCCL_E_PARA,
                  "%s: the root information is not from HcclGetRootInfo of the soft "
                  "device",
                  call);
  }
  std::string message;
  std::shared_ptr<Meeting> meeting;
  const HcclResult asked = AskFor(name, false, ranks, rank, &meeting, &message);
  if (asked != HCCL_SUCCESS) return Refuse(asked, "%s: %s", call, message.c_str());
  return Join(call, std::move(meeting), rank, Wishes::Of(config), comm);
}

HcclResult MakeRootInfo(const char* call, HcclRootInfo* root) {
  if (root == nullptr) return Refuse(HCCL_E_PTR, "%s: rootInfo is NULL", call);
  std::string message;
  const std::string name = Serve("", &message);
  if (name.empty()) return Refuse(HCCL_E_SYSCALL, "%s: %s", call, message.c_str());
  WriteRootInfo(name, root);
  return HCCL_SUCCESS;
}

HcclResult MeetByTable(const char* call, const char* path, uint32_t rank, const Wishes& wishes,
                       HcclComm* comm) {
  if (path == nullptr || comm == nullptr) {
    return Refuse(HCCL_E_PTR, "%s: the rank table or the output is NULL", call);
  }
  RankTable table;
  std::string message;
  const HcclResult read = ReadRankTable(path, &table, &message);
  if (read != HCCL_SUCCESS) return Refuse(read, "%s: %s", call, message.c_str());
  if (const HcclResult wrong = CheckRank(call, table.ranks, rank)) return wrong;
  return MeetByName(call, table.name, table.ranks, rank, wishes, comm);
}

}  // namespace

#define ACLTAPE_FIND(comm)                                                        \
  const std::shared_ptr<Communicator> found = Communicator::Find(comm);           \
  if ((comm) == nullptr) return Refuse(HCCL_E_PTR, "%s: comm is NULL", __func__); \
  if (found == nullptr) return Refuse(HCCL_E_PARA, "%s: %p is no live communicator", __func__, comm)

ACLTAPE_HCCL HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  return MakeRootInfo(__func__, rootInfo);
}
ACLTAPE_HCCL HcclResult HcclGetRootInfoScalable(HcclRootInfo* rootInfo) {
  return MakeRootInfo(__func__, rootInfo);
}

ACLTAPE_HCCL HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                             uint32_t rank, HcclComm* comm) {
  return MeetByRoot(__func__, nRanks, rootInfo, rank, nullptr, comm);
}
ACLTAPE_HCCL HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                                   uint32_t rank, const HcclCommConfig* config,
                                                   HcclComm* comm) {
  if (config == nullptr) return Refuse(HCCL_E_PTR, "%s: config is NULL", __func__);
  return MeetByRoot(__func__, nRanks, rootInfo, rank, config, comm);
}
// Several roots share the work of connecting many ranks; the first one is enough here.
ACLTAPE_HCCL HcclResult HcclCommInitRootInfoScalable(uint32_t nRanks, uint32_t nRoot,
                                                     const HcclRootInfo* rootInfoList,
                                                     uint32_t rank, uint32_t,
                                                     const HcclCommConfig* config, HcclComm* comm) {
  if (nRoot == 0) return Refuse(HCCL_E_PARA, "%s: there are 0 roots", __func__);
  return MeetByRoot(__func__, nRanks, rootInfoList, rank, config, comm);
}

ACLTAPE_HCCL HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                                HcclComm* comm) {
  return MeetByTable(__func__, clusterInfo, rank, {}, comm);
}
ACLTAPE_HCCL HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                                      HcclCommConfig* config, HcclComm* comm) {
  if (config == nullptr) return Refuse(HCCL_E_PTR, "%s: config is NULL", __func__);
  return MeetByTable(__func__, clusterInfo, rank, Wishes::Of(config), comm);
}

ACLTAPE_HCCL HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
                                                uint64_t subCommId, uint32_t subCommRankId,
                                                HcclCommConfig* config, HcclComm* subComm) {
  if (comm == nullptr || config == nullptr || subComm == nullptr) {
    return Refuse(HCCL_E_PTR, "%s: comm, config or subComm is NULL", __func__);
  }
  // A rank that is not in the new communicator calls it too, without ranks.
  if (rankIds == nullptr) {
    *subComm = nullptr;
    return HCCL_SUCCESS;
  }
  ACLTAPE_FIND(*comm);
  if (const HcclResult wrong = CheckRank(__func__, rankNum, subCommRankId)) return wrong;
  std::string name = std::string(found->meeting().name()) + "/" + std::to_string(subCommId);
  for (uint32_t i = 0; i < rankNum; ++i) {
    if (rankIds[i] >= found->ranks()) {
      return Refuse(HCCL_E_PARA, "%s: rank %u is none of %u ranks", __func__, rankIds[i],
                    found->ranks());
    }
  }
  if (rankIds[subCommRankId] != found->rank()) {
    return Refuse(HCCL_E_PARA, "%s: this rank is %u, and rankIds says %u for it", __func__,
                  found->rank(), rankIds[subCommRankId]);
  }
  // Names of sockets are short: the ranks are told apart by the least of them.
  name += "/" + std::to_string(rankIds[0]);
  return MeetByName(__func__, name, rankNum, subCommRankId, Wishes::Of(config), subComm);
}

ACLTAPE_HCCL HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  if (devices == nullptr || comms == nullptr) {
    return Refuse(HCCL_E_PTR, "%s: devices or comms is NULL", __func__);
  }
  if (const HcclResult wrong = CheckRank(__func__, ndev, 0)) return wrong;
  std::shared_ptr<Meeting> meeting = Meeting::Create(ndev);
  if (meeting == nullptr) return Refuse(HCCL_E_MEMORY, "%s: no shared memory", __func__);
  for (uint32_t rank = 0; rank < ndev; ++rank) meeting->Join(rank);
  for (uint32_t rank = 0; rank < ndev; ++rank) {
    comms[rank] = Communicator::Register(
        std::make_shared<Communicator>(meeting, rank, Wishes{}, devices[rank]));
  }
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult HcclCommDestroy(HcclComm comm) {
  if (comm == nullptr) return Refuse(HCCL_E_PTR, "%s: comm is NULL", __func__);
  const std::shared_ptr<Communicator> found = Communicator::Remove(comm);
  if (found == nullptr)
    return Refuse(HCCL_E_PARA, "%s: %p is no live communicator", __func__, comm);
  found->Destroy();
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  ACLTAPE_FIND(comm);
  if (commName == nullptr) return Refuse(HCCL_E_PTR, "%s: commName is NULL", __func__);
  std::snprintf(commName, COMM_NAME_MAX_LENGTH, "%s", found->name().c_str());
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  ACLTAPE_FIND(comm);
  if (rankSize == nullptr) return Refuse(HCCL_E_PTR, "%s: rankSize is NULL", __func__);
  *rankSize = found->ranks();
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  ACLTAPE_FIND(comm);
  if (rank == nullptr) return Refuse(HCCL_E_PTR, "%s: rank is NULL", __func__);
  *rank = found->rank();
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  ACLTAPE_FIND(comm);
  if (asyncError == nullptr) return Refuse(HCCL_E_PTR, "%s: asyncError is NULL", __func__);
  *asyncError = found->meeting().failure();
  if (*asyncError != HCCL_SUCCESS) {
    SoftSetErrorMessage(found->meeting().FailureText().c_str());
  }
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult HcclCommSuspend(HcclComm comm) {
  ACLTAPE_FIND(comm);
  return HCCL_SUCCESS;
}
ACLTAPE_HCCL HcclResult HcclCommResume(HcclComm comm) {
  ACLTAPE_FIND(comm);
  if (found->meeting().failure() == HCCL_SUCCESS) return HCCL_SUCCESS;
  return Refuse(
      HCCL_E_NOT_SUPPORT,
      "%s: the soft device does not resume a communicator that has failed; destroy it and "
      "make a new one",
      __func__);
}

ACLTAPE_HCCL HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup,
                                                 uint32_t nRanks) {
  ACLTAPE_FIND(comm);
  if (ranks == nullptr || useBackup == nullptr) {
    return Refuse(HCCL_E_PTR, "%s: ranks or useBackup is NULL", __func__);
  }
  for (uint32_t i = 0; i < nRanks; ++i) {
    if (const HcclResult wrong = CheckRank(__func__, found->ranks(), ranks[i])) return wrong;
  }
  return HCCL_SUCCESS;
}

// Twelve kinds of members are known: those of HcclCommConfig.
ACLTAPE_HCCL uint32_t HcclGetCommConfigCapability(void) { return 12; }

ACLTAPE_HCCL const char* HcclGetErrorString(HcclResult code) {
  static constexpr const char* kTexts[] = {
      "no error",
      "parameter error",
      "empty pointer",
      "memory error",
      "internal error",
      "not supported",
      "not found",
      "unavailable",
      "system call error",
      "timeout",
      "open file failure",
      "tcp connect failure",
      "roce connect failure",
      "tcp transfer failure",
      "roce transfer failure",
      "runtime api error",
      "driver api error",
      "profiling api error",
      "cce api error",
      "network api error",
      "operation should be tried again",
      "remote rank error",
  };
  const auto index = static_cast<size_t>(code);
  return index < sizeof kTexts / sizeof *kTexts ? kTexts[index] : "unknown error";
}

namespace {
std::atomic<int32_t> g_deterministic{0};
}  // namespace

// Programs set it before each operator. Reductions are in the order of ranks in any case.
ACLTAPE_HCCL HcclResult HcclSetConfig(HcclConfig config, union HcclConfigValue configValue) {
  if (config == HCCL_DETERMINISTIC) g_deterministic.store(configValue.value);
  return HCCL_SUCCESS;
}
ACLTAPE_HCCL HcclResult HcclGetConfig(HcclConfig config, union HcclConfigValue* configValue) {
  if (configValue == nullptr) return Refuse(HCCL_E_PTR, "%s: configValue is NULL", __func__);
  if (config != HCCL_DETERMINISTIC) {
    return Refuse(HCCL_E_PARA, "%s: there is no configuration %d", __func__, config);
  }
  configValue->value = g_deterministic.load();
  return HCCL_SUCCESS;
}

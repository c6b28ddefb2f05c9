// The other ranks of a program whose ranks are replayed together, each in a process of its own:
// communicators like those of the recording, over the HCCL of the device.
//
// The processes find each other in a folder: the rank 0 of each communicator writes its root
// information there (HcclGetRootInfo), and the others wait for it, unless a file says that a rank
// has failed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "replayer/acl_level/collective_call.h"
#include "replayer/device/device.h"
#include "storage/reader.h"

namespace acltape::replayer::acl_level {

// Tells the processes that meet in the folder that one of them has failed.
void EndMeeting(const std::string& folder);

class RankMeeting {
 public:
  // Makes the communicators of the reader's process. Waits for the other ranks. Throws Error
  // kTrace if the trace lacks ranks of a communicator, and kDevice if HCCL fails.
  RankMeeting(const storage::Reader& trace, const Device& device, const std::string& folder);
  ~RankMeeting();
  RankMeeting(const RankMeeting&) = delete;
  RankMeeting& operator=(const RankMeeting&) = delete;

  // The name of the communicator that has this one in the recording, which a call gives to an
  // operator. Throws Error kTrace if the trace does not hold one.
  const std::string& NameOf(const std::string& recorded, const std::string& call) const;

  // Throws Error kDevice if HCCL refuses the call.
  void Issue(const CollectiveCall& call, aclrtStream stream) const;

 private:
  HcclRootInfo RootInfo(const std::string& folder, const std::string& file, bool first) const;
  void Check(HcclResult code, const std::string& what) const;

  const Device& device_;
  HcclFunctions functions_;
  std::map<int64_t, HcclComm> communicators_;  // by id in the trace
  std::map<std::string, std::string> names_;   // by the name in the trace
};

}  // namespace acltape::replayer::acl_level

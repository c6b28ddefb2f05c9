// Finds the leaves of collectives that a thread of the adapter issued.
//
// PyTorch's call of a collective asks, and the thread of the adapter's queue calls HCCL later. The
// queue keeps the order in which the program asked, so the n-th collective that the program asked
// for on a device is the n-th call of HCCL. A leaf that is older than one whose work the thread has
// issued asked for none. The names say whether both can be the same. Where they do not fit, nothing
// is said of the rest of that process. A batch of messages is for as many leaves as it has
// messages, and gets the first one.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/program/thread_processes.h"
#include "storage/reader.h"

namespace acltape::analyzer {

// True if an operator of PyTorch, such as "c10d::all_gather", is done by calls of HCCL on a device.
bool IsCollective(std::string_view op_name);
// True if such an operator sends a message or receives one.
bool IsMessage(std::string_view op_name);
// The number of messages in a call of HCCL; 0: it is no batch of messages.
int64_t MessagesOfBatch(const storage::Reader& trace, const storage::Call& call);

class QueueCollectives {
 public:
  explicit QueueCollectives(const storage::Reader& trace) : trace_(trace), processes_(trace) {}

  // All leaves of the trace and its calls of HCCL come here, in order.
  void AddLeaf(const storage::Call& leaf);
  void AddCall(const storage::Call& call);

  struct Match {
    int64_t call = 0;
    int64_t leaf = 0;
  };
  // After all calls: the calls whose leaves are known. Those that name a leaf are none of them.
  std::vector<Match> Finish() const;

 private:
  struct Asked {
    int64_t leaf = 0;
    int64_t calls = 0;  // number of calls of HCCL
    std::string_view function;
    bool barrier = false;
  };
  struct Issued {
    int64_t call = 0;
    int64_t leaf = 0;      // 0: it names none
    int64_t after = 0;     // the latest leaf of an earlier call of its thread
    int64_t messages = 1;  // leaves that a batch of messages is for
    std::string_view function;
  };

  // True if the leaf asked for no call from this one on: the thread has issued work of later ones.
  bool IsPassed(const Asked& asked, const Issued& issued) const;

  const storage::Reader& trace_;
  const ThreadProcesses processes_;
  std::unordered_map<int64_t, int64_t> latest_leaf_;  // by thread
  std::unordered_set<int64_t> have_calls_;            // leaves that calls of the device name
  std::map<int64_t, std::vector<Asked>> asked_;       // by process
  std::map<int64_t, std::vector<Issued>> issued_;
};

}  // namespace acltape::analyzer

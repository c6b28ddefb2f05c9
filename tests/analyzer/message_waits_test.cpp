// Who waits for whom in messages between ranks.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "analyzer/ranks/meetings.h"

namespace acltape::analyzer::ranks {
namespace {

// Two ranks or more of one communicator; rank n is process n + 1.
class Messages {
 public:
  explicit Messages(bool on_device = true) { all_.on_device = on_device; }

  // The rank came to a message at this time; `call` is the call, of a batch that of all its items.
  void Add(int64_t rank, bool sends, int64_t peer, int64_t call, int64_t arrived_ns) {
    Collective& what = parts_.emplace_back();
    what.call_id = call;
    what.process_id = rank + 1;
    what.communicator = "pipeline";
    what.rank = rank;
    what.ranks = 3;
    what.op = sends ? "HcclSend" : "HcclRecv";
    what.peer = peer;
    what.sends = sends;
    all_.ranks[rank + 1] = rank;
    all_.runs[rank + 1].push_back({&what, call, arrived_ns, arrived_ns});
  }

  // "rank 0 for rank 1: 50 (message 1)", one line for each wait.
  std::string Waits() const {
    const std::vector<Communicator> communicators = FindCommunicators(all_);
    std::string text;
    for (const Wait& wait : FindWaits(all_, communicators)) {
      EXPECT_TRUE(wait.message);
      for (const auto& [rank, ns] : wait.waited_by) {
        if (rank == wait.late_rank) continue;
        text += "rank " + std::to_string(rank) + " for rank " + std::to_string(wait.late_rank) +
                ": " + std::to_string(ns) + " (message " + std::to_string(wait.number) + ")\n";
      }
    }
    return text;
  }

 private:
  Communication all_;
  std::deque<Collective> parts_;
};

TEST(MessageWaits, AReceiverWaitsForItsSenderAndASenderForItsReceiver) {
  Messages messages;
  messages.Add(0, true, 1, 10, 100);
  messages.Add(1, false, 0, 11, 40);  // early
  messages.Add(0, true, 1, 20, 200);
  messages.Add(1, false, 0, 21, 290);  // late
  EXPECT_EQ(messages.Waits(),
            "rank 0 for rank 1: 90 (message 2)\n"
            "rank 1 for rank 0: 60 (message 1)\n");
}

TEST(MessageWaits, ARankWaitsForAllMessagesOfABatchAtOnce) {
  Messages messages;
  messages.Add(0, true, 1, 10, 100);  // a batch of rank 0, to both others
  messages.Add(0, true, 2, 10, 100);
  messages.Add(1, false, 0, 11, 150);
  messages.Add(2, false, 0, 12, 180);
  EXPECT_EQ(messages.Waits(), "rank 0 for rank 2: 80 (message 1)\n");
}

TEST(MessageWaits, MessagesWithoutAnotherSideHaveNone) {
  Messages messages;
  messages.Add(0, true, 1, 10, 100);
  messages.Add(0, true, 1, 20, 200);
  messages.Add(1, false, 0, 11, 130);
  EXPECT_EQ(messages.Waits(), "rank 0 for rank 1: 30 (message 1)\n");
}

TEST(MessageWaits, WithoutTimesOfTheDeviceNothingIsSaid) {
  Messages messages(/*on_device=*/false);
  messages.Add(0, true, 1, 10, 100);
  messages.Add(1, false, 0, 11, 40);
  EXPECT_EQ(messages.Waits(), "");
}

}  // namespace
}  // namespace acltape::analyzer::ranks

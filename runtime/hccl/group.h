// Messages between HcclGroupStart and HcclGroupEnd: they are kept and begin together at the end.
// Groups nest, and belong to the thread.
#pragma once

#include <memory>
#include <vector>

#include "runtime/hccl/communicator.h"

namespace acltape::hccl {

class Group {
 public:
  // The messages of one communicator and stream.
  struct Batch {
    std::shared_ptr<Communicator> communicator;
    aclrtStream stream = nullptr;
    std::vector<HcclSendRecvItem> items;
  };

  static void Begin();
  static bool Open();
  static void Add(std::shared_ptr<Communicator> communicator, const HcclSendRecvItem& item,
                  aclrtStream stream);
  // Closes the innermost group. The outermost one gives the messages, in the order of the first one
  // of each batch.
  static std::vector<Batch> End();
};

}  // namespace acltape::hccl

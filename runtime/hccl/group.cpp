#include "runtime/hccl/group.h"

#include <algorithm>
#include <utility>

namespace acltape::hccl {
namespace {

thread_local uint32_t depth = 0;
thread_local std::vector<Group::Batch> kept;

}  // namespace

void Group::Begin() { ++depth; }

bool Group::Open() { return depth != 0; }

void Group::Add(std::shared_ptr<Communicator> communicator, const HcclSendRecvItem& item,
                aclrtStream stream) {
  auto batch = std::find_if(kept.begin(), kept.end(), [&](const Batch& other) {
    return other.communicator == communicator && other.stream == stream;
  });
  if (batch == kept.end()) {
    kept.push_back({std::move(communicator), stream, {}});
    batch = kept.end() - 1;
  }
  batch->items.push_back(item);
}

std::vector<Group::Batch> Group::End() {
  if (--depth != 0) return {};
  return std::exchange(kept, {});
}

}  // namespace acltape::hccl

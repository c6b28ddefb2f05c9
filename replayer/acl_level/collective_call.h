// A recorded collective or message of HCCL, bound to the memory of a replay.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/acl/acl_program.h"
#include "replayer/device/hccl_functions.h"

namespace acltape::replayer::acl_level {

struct CollectiveCall {
  std::string function;      // "HcclAllReduce"
  int64_t communicator = 0;  // id in the trace
  void* send = nullptr;      // also the memory of a broadcast
  void* receive = nullptr;
  uint64_t send_count = 0;  // the only count of most functions
  uint64_t receive_count = 0;
  HcclDataType send_type = HCCL_DATA_TYPE_INT8;
  HcclDataType receive_type = HCCL_DATA_TYPE_INT8;
  HcclReduceOp reduction = HCCL_REDUCE_SUM;
  uint32_t root = 0;  // the other rank of a message
  std::vector<uint64_t> send_counts, send_places, receive_counts, receive_places;
  std::vector<uint64_t> matrix;  // elements from each rank to each rank
  std::vector<HcclSendRecvItem> items;
};

// Gives the address of the tensor at a position of the call; of a list, of one of its elements.
using AddressAtPosition = std::function<uint8_t*(int position, int element)>;

// Throws Error kTrace if the trace lacks the counts of ranks, or the messages, that the call was
// given.
std::shared_ptr<const CollectiveCall> BindCollective(const analyzer::AclProgram& program,
                                                     const analyzer::AclCall& call,
                                                     const AddressAtPosition& address_at);

// Returns the code of HCCL.
HcclResult Issue(const HcclFunctions& functions, const CollectiveCall& call, HcclComm communicator,
                 aclrtStream stream);

}  // namespace acltape::replayer::acl_level

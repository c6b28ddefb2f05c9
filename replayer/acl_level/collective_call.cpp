#include "replayer/acl_level/collective_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "meaning/hccl_numbers.h"
#include "storage/error.h"

namespace acltape::replayer::acl_level {
namespace {

using F = HcclFunctions;
using C = CollectiveCall;

// The functions by name, with their parameters in the order of the declaration.
constexpr struct {
  std::string_view name;
  HcclResult (*issue)(const F& f, const C& c, HcclComm comm, aclrtStream stream);
} kFunctions[] = {
    {"HcclAllReduce",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.AllReduce(c.send, c.receive, c.send_count, c.send_type, c.reduction, comm, stream);
     }},
    {"HcclReduce",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.Reduce(c.send, c.receive, c.send_count, c.send_type, c.reduction, c.root, comm,
                       stream);
     }},
    {"HcclBroadcast",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.Broadcast(c.send, c.send_count, c.send_type, c.root, comm, stream);
     }},
    {"HcclScatter",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.Scatter(c.send, c.receive, c.receive_count, c.send_type, c.root, comm, stream);
     }},
    {"HcclAllGather",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.AllGather(c.send, c.receive, c.send_count, c.send_type, comm, stream);
     }},
    {"HcclAllGatherV",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.AllGatherV(c.send, c.send_count, c.receive, c.receive_counts.data(),
                           c.receive_places.data(), c.send_type, comm, stream);
     }},
    {"HcclReduceScatter",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.ReduceScatter(c.send, c.receive, c.receive_count, c.send_type, c.reduction, comm,
                              stream);
     }},
    {"HcclReduceScatterV",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.ReduceScatterV(c.send, c.send_counts.data(), c.send_places.data(), c.receive,
                               c.receive_count, c.send_type, c.reduction, comm, stream);
     }},
    {"HcclAlltoAll",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.AlltoAll(c.send, c.send_count, c.send_type, c.receive, c.receive_count,
                         c.receive_type, comm, stream);
     }},
    {"HcclAlltoAllV",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.AlltoAllV(c.send, c.send_counts.data(), c.send_places.data(), c.send_type,
                          c.receive, c.receive_counts.data(), c.receive_places.data(),
                          c.receive_type, comm, stream);
     }},
    {"HcclAlltoAllVC",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.AlltoAllVC(c.send, c.matrix.data(), c.send_type, c.receive, c.receive_type, comm,
                           stream);
     }},
    {"HcclSend",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.Send(c.send, c.send_count, c.send_type, c.root, comm, stream);
     }},
    {"HcclRecv",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       return f.Recv(c.receive, c.send_count, c.send_type, c.root, comm, stream);
     }},
    {"HcclBatchSendRecv",
     [](const F& f, const C& c, HcclComm comm, aclrtStream stream) {
       std::vector<HcclSendRecvItem> items = c.items;
       return f.BatchSendRecv(items.data(), static_cast<uint32_t>(items.size()), comm, stream);
     }},
};

// Where an argument of this name goes.
struct Parameter {
  std::string_view name;
  void (*take)(C& call, int64_t value);
};
constexpr Parameter kNumbers[] = {
    {"comm", [](C& c, int64_t value) { c.communicator = value; }},
    {"count", [](C& c, int64_t value) { c.send_count = static_cast<uint64_t>(value); }},
    {"sendCount", [](C& c, int64_t value) { c.send_count = static_cast<uint64_t>(value); }},
    {"recvCount", [](C& c, int64_t value) { c.receive_count = static_cast<uint64_t>(value); }},
    {"dataType", [](C& c, int64_t value) { c.send_type = static_cast<HcclDataType>(value); }},
    {"sendType", [](C& c, int64_t value) { c.send_type = static_cast<HcclDataType>(value); }},
    {"recvType", [](C& c, int64_t value) { c.receive_type = static_cast<HcclDataType>(value); }},
    {"op", [](C& c, int64_t value) { c.reduction = static_cast<HcclReduceOp>(value); }},
    {"root", [](C& c, int64_t value) { c.root = static_cast<uint32_t>(value); }},
    {"destRank", [](C& c, int64_t value) { c.root = static_cast<uint32_t>(value); }},
    {"srcRank", [](C& c, int64_t value) { c.root = static_cast<uint32_t>(value); }},
};
constexpr struct {
  std::string_view name;
  std::vector<uint64_t> C::*member;
} kArrays[] = {{"sendCounts", &C::send_counts},    {"sendDispls", &C::send_places},
               {"sdispls", &C::send_places},       {"recvCounts", &C::receive_counts},
               {"recvDispls", &C::receive_places}, {"rdispls", &C::receive_places},
               {"sendCountMatrix", &C::matrix}};
constexpr struct {
  std::string_view name;
  void* C::*member;
} kMemory[] = {{"sendBuf", &C::send}, {"buf", &C::send}, {"recvBuf", &C::receive}};

template <typename Rows>
auto Find(const Rows& rows, std::string_view name) {
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [name](const auto& entry) { return entry.name == name; });
  return row == std::end(rows) ? nullptr : row;
}

constexpr std::string_view kItems = "sendRecvInfo";

// Messages without their memory.
std::vector<HcclSendRecvItem> ItemsOf(const std::vector<int64_t>& numbers) {
  std::vector<HcclSendRecvItem> items;
  for (size_t i = 0; i + meaning::kItemNumbers <= numbers.size(); i += meaning::kItemNumbers) {
    items.push_back(
        {static_cast<HcclSendRecvType>(numbers[i]), nullptr, static_cast<uint64_t>(numbers[i + 1]),
         static_cast<HcclDataType>(numbers[i + 2]), static_cast<uint32_t>(numbers[i + 3])});
  }
  return items;
}

[[noreturn]] void RefuseWithout(std::string_view what, const analyzer::AclProgram& program,
                                const analyzer::AclCall& call) {
  throw Error(ErrorKind::kTrace,
              fmt::format("{} was given {}, which {} does not hold; record the program again, with "
                          "this version of acltape",
                          program.Describe(call), what, program.trace->path()));
}

}  // namespace

std::shared_ptr<const CollectiveCall> BindCollective(const analyzer::AclProgram& program,
                                                     const analyzer::AclCall& call,
                                                     const AddressAtPosition& address_at) {
  auto bound = std::make_shared<CollectiveCall>();
  bound->function = call.op->name;
  for (const storage::Argument& argument : call.arguments) {
    const bool numbers = argument.kind == storage::ValueKind::kIntList;
    if (argument.name == kItems) {
      if (!numbers) RefuseWithout("messages", program, call);
      bound->items = ItemsOf(argument.integers);
    } else if (argument.kind == storage::ValueKind::kTensorList) {
      for (size_t i = 0; i < std::min(argument.tensors.size(), bound->items.size()); ++i) {
        if (!argument.tensors[i].defined()) continue;
        bound->items[i].buf = address_at(argument.position, static_cast<int>(i));
      }
    } else if (const auto* memory = Find(kMemory, argument.name)) {
      if (!argument.tensors.empty()) (*bound).*(memory->member) = address_at(argument.position, 0);
    } else if (const auto* array = Find(kArrays, argument.name)) {
      if (!numbers) RefuseWithout("counts for each rank", program, call);
      auto& values = (*bound).*(array->member);
      values.assign(argument.integers.begin(), argument.integers.end());
    } else if (const auto* number = Find(kNumbers, argument.name)) {
      number->take(*bound, argument.integer);
    }
  }
  return bound;
}

HcclResult Issue(const HcclFunctions& functions, const CollectiveCall& call, HcclComm communicator,
                 aclrtStream stream) {
  const auto* row = Find(kFunctions, call.function);
  if (row == nullptr) return HCCL_E_NOT_SUPPORT;
  return row->issue(functions, call, communicator, stream);
}

}  // namespace acltape::replayer::acl_level

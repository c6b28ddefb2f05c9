// Communicators for operators that take a group's name (runtime/rank_groups.h).
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/hccl/collective.h"
#include "runtime/hccl/communicator.h"
#include "runtime/rank_groups.h"

using namespace acltape::hccl;

struct SoftGroupMember {
  std::shared_ptr<Communicator> communicator;
  uint64_t capture = 0;                // Described::capture
  std::optional<Operation> operation;  // the exchange that was begun last
};

namespace {

constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kAllGather, Kind::kReduceScatter,
                           Kind::kAlltoAll,  Kind::kAlltoAllV, Kind::kBarrier};
static_assert(SOFT_ALL_REDUCE == 0 && SOFT_ALL_GATHER == 1 && SOFT_REDUCE_SCATTER == 2 &&
              SOFT_ALL_TO_ALL == 3 && SOFT_ALL_TO_ALL_V == 4 && SOFT_BARRIER == 5);

SoftGroupMember* Join(const char* group, uint32_t* rank, uint32_t* ranks) {
  int32_t device = -1;
  aclrtGetDevice(&device);
  std::string why;
  std::shared_ptr<Communicator> found = Communicator::FindNamed(group, device, &why);
  if (found == nullptr) {
    SoftSetErrorMessage(why.c_str());
    return nullptr;
  }
  *rank = found->rank();
  *ranks = found->ranks();
  return new SoftGroupMember{std::move(found), 0, {}};
}

void Leave(SoftGroupMember* member) { delete member; }

void Launched(SoftGroupMember* member, bool captured) {
  member->capture = captured ? member->communicator->NextCapture() : 0;
}

// The operator checks the memory of its arguments itself; the rest is the kernel's own.
void Begin(SoftGroupMember* member, const SoftExchange* exchange) {
  Call call{kKinds[exchange->kind], exchange->send, exchange->recv, exchange->count,
            exchange->dtype};
  if (call.kind == Kind::kAlltoAllV) {
    const auto copied = [ranks = member->communicator->ranks()](const uint64_t* array) {
      return std::vector<uint64_t>(array, array + ranks);
    };
    call.send_counts = copied(exchange->send_counts);
    call.send_places = copied(exchange->send_places);
    call.recv_counts = copied(exchange->recv_counts);
    call.recv_places = copied(exchange->recv_places);
  }
  member->operation.emplace(member->communicator, FactsOf(call.kind).name);
  member->operation->Add(
      std::make_unique<Collective>(*member->communicator, std::move(call), member->capture));
}

bool Ready(SoftGroupMember* member) { return Operation::Ready(&*member->operation); }

aclError Finish(SoftGroupMember* member) { return Operation::Run(&*member->operation); }

void Fail(SoftGroupMember* member, const char* why) {
  const Communicator& communicator = *member->communicator;
  communicator.meeting().Fail(HCCL_E_REMOTE, "rank " + std::to_string(communicator.rank()) +
                                                 " could not take part: " + why);
}

constexpr SoftGroupFunctions kFunctions = {Join, Leave, Launched, Begin, Ready, Finish, Fail};

// Before any communicator is made.
__attribute__((constructor)) void Offer() { SoftOfferGroups(&kFunctions); }

}  // namespace

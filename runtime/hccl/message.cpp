#include "runtime/hccl/message.h"

#include <algorithm>
#include <cstring>

#include "runtime/hccl/call.h"

namespace acltape::hccl {

Message::Message(Communicator& communicator, End end, uint32_t peer, void* memory, uint64_t count,
                 HcclDataType dtype, uint64_t capture)
    : Part(communicator),
      end_(end),
      peer_(peer),
      memory_(static_cast<char*>(memory)),
      count_(count),
      dtype_(dtype),
      bytes_(count * FactsOf(dtype).bytes),
      capture_(capture),
      channel_(end == End::kSender ? communicator.meeting().channel(communicator.rank(), peer)
                                   : communicator.meeting().channel(peer, communicator.rank())) {}

Communicator::Turn& Message::Turn() const {
  return end_ == End::kSender ? communicator_.sending(peer_) : communicator_.receiving(peer_);
}
std::atomic<uint64_t>& Message::Come() const {
  return end_ == End::kSender ? channel_.offered : channel_.wanted;
}
std::atomic<uint64_t>& Message::PeerCome() const {
  return end_ == End::kSender ? channel_.wanted : channel_.offered;
}
Described& Message::Said() const {
  return end_ == End::kSender ? channel_.sent[number_ % 2] : channel_.asked[number_ % 2];
}
const Described& Message::PeerSaid() const {
  return end_ == End::kSender ? channel_.asked[number_ % 2] : channel_.sent[number_ % 2];
}

void Message::Begin() { state_ = State::kWaitsForTurn; }

void Message::GiveUp() {
  const Part* own = this;
  Turn().compare_exchange_strong(own, nullptr);
}

bool Message::Advance() {
  if (state_ == State::kWaitsForTurn) {
    const Part* nobody = nullptr;
    if (!Turn().compare_exchange_strong(nobody, this)) return false;
    Arrive();
    state_ = State::kWaitsForPeer;
  }
  if (state_ == State::kWaitsForPeer) {
    if (PeerCome().load() < number_ || !Agrees()) return false;
    state_ = State::kMoves;
  }
  while (moved_ < bytes_) {
    if (!CanMove()) return false;
    Move();
  }
  Turn().store(nullptr);
  communicator_.meeting().Ring(communicator_.rank());
  return true;
}

void Message::Arrive() {
  number_ = Come().load() + 1;
  moved_ = 0;
  Described said;
  said.dtype = dtype_;
  said.count = count_;
  said.capture = capture_;
  Said() = said;
  Come().store(number_);
  communicator_.meeting().Ring(peer_);
}

bool Message::Agrees() const {
  const Described& own = Said();
  const Described& its = PeerSaid();
  if (own.dtype == its.dtype && own.count == its.count && own.capture == its.capture) return true;
  const auto call = [](const Described& described, bool sends) {
    std::string text =
        hccl::Describe(sends ? Kind::kSend : Kind::kRecv, described.count,
                       static_cast<HcclDataType>(described.dtype), HCCL_REDUCE_SUM, 0);
    if (described.capture == 0) return text + ", not captured";
    return text + ", captured call " + std::to_string(described.capture);
  };
  const bool sends = end_ == End::kSender;
  communicator_.meeting().Fail(
      HCCL_E_PARA,
      "EI0005: the arguments for collective communication are inconsistent between ranks: "
      "message " +
          std::to_string(number_) + " between them is " + call(own, sends) + " on rank " +
          std::to_string(communicator_.rank()) + " of communicator \"" + communicator_.name() +
          "\", and " + call(its, !sends) + " on rank " + std::to_string(peer_));
  return false;
}

bool Message::CanMove() const {
  const uint64_t filled = channel_.filled.load();
  const uint64_t taken = channel_.taken.load();
  return end_ == End::kSender ? filled < taken + 2 : taken < filled;
}

void Message::Move() {
  const uint64_t bytes = std::min(Meeting::kRoomBytes, bytes_ - moved_);
  const Meeting& meeting = communicator_.meeting();
  if (end_ == End::kSender) {
    const uint64_t room = channel_.filled.load();
    std::memcpy(meeting.Room(communicator_.rank(), peer_, room), memory_ + moved_, bytes);
    channel_.filled.store(room + 1);
  } else {
    const uint64_t room = channel_.taken.load();
    std::memcpy(memory_ + moved_, meeting.Room(peer_, communicator_.rank(), room), bytes);
    channel_.taken.store(room + 1);
  }
  moved_ += bytes;
  meeting.Ring(peer_);
}

std::string Message::Describe() const {
  const bool sends = end_ == End::kSender;
  return "message " + std::to_string(number_) + (sends ? " to" : " from") + " rank " +
         std::to_string(peer_) + ", " +
         hccl::Describe(sends ? Kind::kSend : Kind::kRecv, count_, dtype_, HCCL_REDUCE_SUM, 0) +
         ",";
}

std::vector<Part::Missing> Message::WaitsFor() const {
  if (state_ == State::kWaitsForTurn || peer_ == communicator_.rank()) return {};
  const uint64_t come = PeerCome().load();
  if (come >= number_) return {{peer_, "has come to it and does not go on"}};
  return {{peer_, std::string("has come to ") + std::to_string(come) +
                      (end_ == End::kSender ? " receptions from it" : " messages to it")}};
}

}  // namespace acltape::hccl

// A message from one rank to another one: its two ends, each a part of an operation.
//
// Both ends first say what they have come to, and wait for the other one, as on devices: a stream
// that sends stands until the receiver is there. Then the data goes through the channel's two rooms
// in turn. Messages of a channel go one after the other.
#pragma once

#include "runtime/hccl/operation.h"

namespace acltape::hccl {

class Message : public Part {
 public:
  enum class End { kSender, kReceiver };

  // `memory` is read by a sender and written by a receiver. `capture` is Described::capture.
  Message(Communicator& communicator, End end, uint32_t peer, void* memory, uint64_t count,
          HcclDataType dtype, uint64_t capture);

  void Begin() override;
  bool Advance() override;
  void GiveUp() override;
  std::string Describe() const override;
  std::vector<uint32_t> Waiting() const override { return {communicator_.rank()}; }
  std::vector<Missing> WaitsFor() const override;

 private:
  enum class State { kWaitsForTurn, kWaitsForPeer, kMoves };

  Communicator::Turn& Turn() const;
  // The counters of this end and of the other one.
  std::atomic<uint64_t>& Come() const;
  std::atomic<uint64_t>& PeerCome() const;
  Described& Said() const;
  const Described& PeerSaid() const;
  void Arrive();
  bool Agrees() const;
  bool CanMove() const;
  void Move();

  const End end_;
  const uint32_t peer_;
  char* const memory_;
  const uint64_t count_;
  const HcclDataType dtype_;
  const uint64_t bytes_;
  const uint64_t capture_;
  Channel& channel_;

  State state_ = State::kWaitsForTurn;
  uint64_t number_ = 0;  // counts the channel's messages from 1
  uint64_t moved_ = 0;   // bytes
};

}  // namespace acltape::hccl

// A collective of all ranks of a communicator.
//
// Note [Windows]
// A rank first says which call it has come to, and waits until all have come; then they compare
// what they said (HCL-08). The data goes through windows of the shared memory in steps: a rank
// fills its window, waits until those that it takes from have filled theirs, and takes from them.
// The numbers of steps count on over all collectives of the communicator, and all ranks make the
// same steps. Each rank has two windows: the next step needs no wait for those that still take.
// Windows are as small as caches, so that data goes through memory once.
//
// An all-reduce takes two steps for a part of the data: of the first one each rank reduces its
// share, the second one hands the shares on. So all ranks have the same bits (HCL-07), and each
// reduces 1/n of the data. Small ones take one step, in which each rank reduces all.
#pragma once

#include "runtime/hccl/call.h"
#include "runtime/hccl/operation.h"

namespace acltape::hccl {

class Collective : public Part {
 public:
  // `capture` is Described::capture.
  Collective(Communicator& communicator, Call call, uint64_t capture);

  void Begin() override;
  bool Advance() override;
  void GiveUp() override;
  std::string Describe() const override;
  std::vector<uint32_t> Waiting() const override;
  std::vector<Missing> WaitsFor() const override;

  // Bytes of what this rank gives, from `send` on, and takes, from `recv` on.
  static uint64_t BytesGiven(const Call& call, uint32_t rank, uint32_t ranks);
  static uint64_t BytesTaken(const Call& call, uint32_t rank, uint32_t ranks);

 private:
  enum class State { kWaitsForTurn, kWaitsForAll, kFills, kTakes };

  void Arrive();
  bool AllHere();
  bool Agrees(uint32_t other);
  // True when the own window is free; when those of the ranks that give are filled.
  bool CanFill() const;
  bool CanTake() const;
  void Fill();
  void Take();
  void End();

  // A range of elements of this step that goes from one rank to another one.
  struct Piece {
    uint64_t first = 0, count = 0;
  };
  Piece PieceOf(uint64_t elements) const;      // this step's part of so many elements
  Piece Share(uint32_t rank) const;            // the rank's share of this step in an all-reduce
  uint64_t ElementsFor(uint32_t to) const;     // given to that rank
  uint64_t ElementsFrom(uint32_t from) const;  // taken from that rank
  const char* Given(uint32_t to) const;
  char* Taken(uint32_t from) const;
  bool Gives(uint32_t rank) const;
  bool Takes(uint32_t rank) const;
  bool GivesOwn() const;  // this rank's window has its own share too
  void ReducePiece(char* to, Piece piece, const char* own, uint64_t window_offset);

  const Call call_;
  const KindFacts& facts_;
  const uint64_t capture_;
  const uint32_t rank_, ranks_;
  const uint64_t element_;        // bytes
  const bool in_two_steps_;       // an all-reduce by shares
  const uint64_t part_bytes_;     // room in a window for each rank, or for all
  const uint64_t step_elements_;  // at most, that a step moves from one rank to another

  State state_ = State::kWaitsForTurn;
  uint64_t number_ = 0;  // counts the communicator's collectives from 1
  uint64_t steps_ = 0, step_ = 0, first_step_ = 0;
  std::vector<bool> agreed_;
};

}  // namespace acltape::hccl

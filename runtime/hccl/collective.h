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
//
// Note [Reading where it lies]
// Large data needs no window where the system lets a rank read the memory of the others
// (process_vm_readv): it goes through memory once instead of twice, and ranks wait for each other
// once instead of in each step. What a rank gives must then stay as it is until the others have
// read it, so each waits at last until all have. Ranks say whether that will do for them; when it
// does not for one, all use windows. The results have the same bits.
#pragma once

#include <optional>
#include <vector>

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
  enum class State { kWaitsForTurn, kWaitsForAll, kFills, kTakes, kReads, kWaitsForReaders };

  void Arrive();
  bool AllHere();
  bool Agrees(uint32_t other);
  // True when the own window is free; when those of the ranks that give are filled.
  bool CanFill() const;
  bool CanTake() const;
  void Fill();
  void Take();
  void End();

  // Note [Reading where it lies]. False: the data of this rank, or of others, cannot be read so.
  bool CanBeReadWhereItLies() const;
  bool ReadOthers();  // the whole step; false when a rank is gone, or the communicator has failed
  bool OthersHaveRead() const;
  bool Read(uint32_t rank, uint64_t from, void* to, uint64_t bytes);

  // A range of elements of this step that goes from one rank to another one.
  struct Piece {
    uint64_t first = 0, count = 0;
  };
  Piece PieceOf(uint64_t elements) const;      // this step's part of so many elements
  Piece Share(uint32_t rank) const;            // the rank's share of this step in an all-reduce
  Piece WholeShare(uint32_t rank) const;       // the same of all data
  uint64_t ElementsFor(uint32_t to) const;     // given to that rank
  uint64_t ElementsFrom(uint32_t from) const;  // taken from that rank
  const char* Given(uint32_t to) const;
  char* Taken(uint32_t from) const;
  bool Gives(uint32_t rank) const;
  bool Takes(uint32_t rank) const;
  bool GivesOwn() const;  // this rank's window has its own share too
  void ReducePiece(char* to, Piece piece, const char* own, uint64_t window_offset);
  // `own` and `to` are where the piece begins, `offset` where it does from the others' `send`.
  bool ReduceOthers(char* to, const char* own, uint64_t offset, uint64_t elements);
  const Described& Said(uint32_t rank) const;

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
  bool reads_ = false;            // where it lies
  std::optional<uint32_t> gone_;  // a rank that has ended while its memory was read
};

}  // namespace acltape::hccl

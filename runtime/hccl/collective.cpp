#include "runtime/hccl/collective.h"

#include <algorithm>
#include <cstring>

#include "runtime/hccl/reduce.h"

namespace acltape::hccl {
namespace {

// All-reduces of at most so many bytes take one step.
constexpr uint64_t kDirectBytes = uint64_t{32} << 10;

constexpr uint64_t kPartAlignment = 64;

uint64_t PartBytes(const KindFacts& facts, bool in_two_steps, uint32_t ranks) {
  if (!facts.parts && !in_two_steps) return Meeting::kWindowBytes;
  return Meeting::kWindowBytes / ranks / kPartAlignment * kPartAlignment;
}

uint64_t Most(const std::vector<uint64_t>& counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

// The end of the farthest block.
uint64_t EndOf(const std::vector<uint64_t>& counts, const std::vector<uint64_t>& places) {
  uint64_t end = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) end = std::max(end, places[i] + counts[i]);
  }
  return end;
}

}  // namespace

Collective::Collective(Communicator& communicator, Call call, uint64_t capture)
    : Part(communicator),
      call_(std::move(call)),
      facts_(FactsOf(call_.kind)),
      capture_(capture),
      rank_(communicator.rank()),
      ranks_(communicator.ranks()),
      element_(FactsOf(call_.dtype).bytes),
      in_two_steps_(call_.kind == Kind::kAllReduce && call_.count * element_ > kDirectBytes),
      part_bytes_(PartBytes(facts_, in_two_steps_, ranks_)),
      step_elements_(part_bytes_ / element_) {}

uint64_t Collective::BytesGiven(const Call& call, uint32_t rank, uint32_t ranks) {
  const KindFacts& facts = FactsOf(call.kind);
  const bool gives = facts.gives == Who::kAll || (facts.gives == Who::kRoot && rank == call.root);
  if (!gives) return 0;
  uint64_t elements = call.count * (facts.parts ? ranks : 1);
  if (!call.send_counts.empty()) elements = EndOf(call.send_counts, call.send_places);
  return elements * FactsOf(call.dtype).bytes;
}

uint64_t Collective::BytesTaken(const Call& call, uint32_t rank, uint32_t ranks) {
  const KindFacts& facts = FactsOf(call.kind);
  const bool takes = facts.takes == Who::kAll || (facts.takes == Who::kRoot && rank == call.root);
  if (!takes) return 0;
  const bool gathers = facts.gives == Who::kAll && !facts.reduces;
  uint64_t elements = call.count * (gathers ? ranks : 1);
  if (!call.recv_counts.empty()) elements = EndOf(call.recv_counts, call.recv_places);
  return elements * FactsOf(call.dtype).bytes;
}

void Collective::Begin() { state_ = State::kWaitsForTurn; }

void Collective::GiveUp() {
  const Part* own = this;
  communicator_.windows.compare_exchange_strong(own, nullptr);
}

bool Collective::Advance() {
  while (true) {
    switch (state_) {
      case State::kWaitsForTurn: {
        const Part* nobody = nullptr;
        if (!communicator_.windows.compare_exchange_strong(nobody, this)) return false;
        Arrive();
        state_ = State::kWaitsForAll;
        break;
      }
      case State::kWaitsForAll:
        if (!AllHere()) return false;
        if (step_ == steps_) {
          End();
          return true;
        }
        state_ = reads_ ? State::kReads : State::kFills;
        break;
      case State::kReads:
        if (!ReadOthers()) return false;
        state_ = State::kWaitsForReaders;
        break;
      case State::kWaitsForReaders:
        if (!OthersHaveRead()) return false;
        if (++step_ == steps_) {
          End();
          return true;
        }
        state_ = State::kReads;
        break;
      case State::kFills:
        if (!CanFill()) return false;
        Fill();
        state_ = State::kTakes;
        break;
      case State::kTakes:
        if (!CanTake()) return false;
        Take();
        if (++step_ == steps_) {
          End();
          return true;
        }
        state_ = State::kFills;
        break;
    }
  }
}

void Collective::Arrive() {
  Meeting& meeting = communicator_.meeting();
  RankCell& own = meeting.cell(rank_);
  number_ = own.arrived.load() + 1;
  first_step_ = own.filled.load();
  step_ = 0;
  agreed_.assign(ranks_, false);
  gone_.reset();
  uint64_t elements = call_.count;
  if (facts_.has_counts) elements = std::max(Most(call_.send_counts), Most(call_.recv_counts));
  if (in_two_steps_) elements = (elements + ranks_ - 1) / ranks_;
  steps_ = (elements + step_elements_ - 1) / step_elements_ * (in_two_steps_ ? 2 : 1);
  const bool has_root = facts_.gives == Who::kRoot || facts_.takes == Who::kRoot;
  own.described[number_ % 2] = {static_cast<uint32_t>(call_.kind),
                                static_cast<uint32_t>(call_.dtype),
                                facts_.reduces ? static_cast<uint32_t>(call_.op) : 0,
                                has_root ? call_.root : 0,
                                facts_.has_counts ? 0 : call_.count,
                                capture_,
                                steps_,
                                CanBeReadWhereItLies(),
                                reinterpret_cast<uintptr_t>(call_.send),
                                reinterpret_cast<uintptr_t>(call_.recv)};
  if (facts_.has_counts) {
    // Ranks compare the counts of what they give; for a gathering all have the same list.
    const std::vector<uint64_t>& counts =
        call_.send_counts.empty() ? call_.recv_counts : call_.send_counts;
    std::copy(counts.begin(), counts.end(), meeting.Counts(rank_, number_));
  }
  own.arrived.store(number_);
  meeting.RingOthers(rank_);
}

bool Collective::AllHere() {
  bool all = true;
  for (uint32_t other = 0; other < ranks_; ++other) {
    if (agreed_[other]) continue;
    if (other != rank_ && communicator_.meeting().cell(other).arrived.load() < number_) {
      all = false;
      continue;
    }
    if (other != rank_ && !Agrees(other)) return false;
    agreed_[other] = true;
    steps_ = std::max(steps_, Said(other).steps);
  }
  if (!all) return false;
  reads_ = true;
  for (uint32_t rank = 0; rank < ranks_; ++rank) reads_ = reads_ && Said(rank).readable;
  if (reads_) steps_ = in_two_steps_ ? 2 : 1;
  return true;
}

const Described& Collective::Said(uint32_t rank) const {
  return communicator_.meeting().cell(rank).described[number_ % 2];
}

bool Collective::Agrees(uint32_t other) {
  Meeting& meeting = communicator_.meeting();
  const Described& own = Said(rank_);
  const Described& its = Said(other);
  struct {
    const char* what;
    uint64_t own, its;
  } pairs[] = {{"kind", own.kind, its.kind},    {"dtype", own.dtype, its.dtype},
               {"op", own.op, its.op},          {"root", own.root, its.root},
               {"count", own.count, its.count}, {"captured call", own.capture, its.capture}};
  std::string differs;
  for (const auto& pair : pairs) {
    if (pair.own == pair.its || !differs.empty()) continue;
    differs = std::string("parameter ") + pair.what + ", rank " + std::to_string(rank_) + " " +
              std::to_string(pair.own) + ", rank " + std::to_string(other) + " " +
              std::to_string(pair.its);
  }
  if (differs.empty() && facts_.has_counts) {
    const uint64_t* its_counts = meeting.Counts(other, number_);
    if (call_.kind == Kind::kAlltoAllV) {
      if (its_counts[rank_] != call_.recv_counts[other]) {
        differs = "rank " + std::to_string(other) + " sends " + std::to_string(its_counts[rank_]) +
                  " elements to rank " + std::to_string(rank_) + ", which wants " +
                  std::to_string(call_.recv_counts[other]);
      }
    } else {
      const uint64_t* own_counts = meeting.Counts(rank_, number_);
      for (uint32_t i = 0; i < ranks_ && differs.empty(); ++i) {
        if (own_counts[i] == its_counts[i]) continue;
        differs = "count of rank " + std::to_string(i) + ", rank " + std::to_string(rank_) +
                  " says " + std::to_string(own_counts[i]) + ", rank " + std::to_string(other) +
                  " says " + std::to_string(its_counts[i]);
      }
    }
  }
  if (differs.empty()) return true;
  const auto call = [](const Described& described) {
    std::string text = hccl::Describe(static_cast<Kind>(described.kind), described.count,
                                      static_cast<HcclDataType>(described.dtype),
                                      static_cast<HcclReduceOp>(described.op), described.root);
    if (described.capture == 0) return text + ", not captured";
    return text + ", captured call " + std::to_string(described.capture);
  };
  meeting.Fail(HCCL_E_PARA,
               "EI0005: the arguments for collective communication are inconsistent between "
               "ranks: " +
                   differs + ". Collective " + std::to_string(number_) + " of communicator \"" +
                   communicator_.name() + "\" is " + call(own) + " on rank " +
                   std::to_string(rank_) + ", and " + call(its) + " on rank " +
                   std::to_string(other));
  return false;
}

bool Collective::Gives(uint32_t rank) const {
  return facts_.gives == Who::kAll || (facts_.gives == Who::kRoot && rank == call_.root);
}
bool Collective::Takes(uint32_t rank) const {
  return facts_.takes == Who::kAll || (facts_.takes == Who::kRoot && rank == call_.root);
}

bool Collective::CanFill() const {
  // The window was last used two steps ago.
  const uint64_t step = first_step_ + step_;
  for (uint32_t other = 0; other < ranks_; ++other) {
    if (other == rank_) continue;
    if (communicator_.meeting().cell(other).taken.load() + 1 < step) return false;
  }
  return true;
}

bool Collective::CanTake() const {
  if (!Takes(rank_)) return true;
  const uint64_t step = first_step_ + step_;
  for (uint32_t other = 0; other < ranks_; ++other) {
    if (other == rank_ || !Gives(other)) continue;
    if (communicator_.meeting().cell(other).filled.load() <= step) return false;
  }
  return true;
}

Collective::Piece Collective::PieceOf(uint64_t elements) const {
  const uint64_t first = std::min(elements, step_ * step_elements_);
  return {first, std::min(step_elements_, elements - first)};
}

Collective::Piece Collective::Share(uint32_t rank) const {
  const uint64_t begin = step_ / 2 * step_elements_ * ranks_;
  const uint64_t length = std::min(step_elements_ * ranks_, call_.count - begin);
  const uint64_t each = (length + ranks_ - 1) / ranks_;
  const uint64_t first = std::min(length, rank * each);
  return {begin + first, std::min(each, length - first)};
}

uint64_t Collective::ElementsFor(uint32_t to) const {
  if (!call_.send_counts.empty()) return call_.send_counts[to];
  if (call_.kind == Kind::kAllGatherV) return call_.recv_counts[rank_];
  return call_.count;
}

uint64_t Collective::ElementsFrom(uint32_t from) const {
  if (!call_.recv_counts.empty()) return call_.recv_counts[from];
  if (call_.kind == Kind::kReduceScatterV) return call_.send_counts[rank_];
  return call_.count;
}

const char* Collective::Given(uint32_t to) const {
  const auto* send = static_cast<const char*>(call_.send);
  if (!facts_.parts) return send;
  if (!call_.send_places.empty()) return send + call_.send_places[to] * element_;
  return send + to * call_.count * element_;
}

char* Collective::Taken(uint32_t from) const {
  auto* recv = static_cast<char*>(call_.recv);
  if (facts_.gives == Who::kRoot || facts_.reduces) return recv;
  if (!call_.recv_places.empty()) return recv + call_.recv_places[from] * element_;
  return recv + from * call_.count * element_;
}

// More than two ranks reduce in the order of the ranks, where the own share may not be first. In
// place the result would then write over it before it is read.
bool Collective::GivesOwn() const { return facts_.reduces && ranks_ > 2; }

void Collective::Fill() {
  Meeting& meeting = communicator_.meeting();
  const uint64_t step = first_step_ + step_;
  char* window = meeting.Window(rank_, step);
  const auto put = [&](uint64_t offset, const char* from, Piece piece) {
    if (piece.count != 0) {
      std::memcpy(window + offset, from + piece.first * element_, piece.count * element_);
    }
  };
  if (in_two_steps_ && step_ % 2 != 0) {
    put(0, static_cast<const char*>(call_.recv), Share(rank_));
  } else if (in_two_steps_) {
    for (uint32_t to = 0; to < ranks_; ++to) {
      if (to != rank_ || GivesOwn()) {
        put(to * part_bytes_, static_cast<const char*>(call_.send), Share(to));
      }
    }
  } else if (Gives(rank_)) {
    if (facts_.parts) {
      for (uint32_t to = 0; to < ranks_; ++to) {
        if (to == rank_ && !GivesOwn()) continue;
        put(to * part_bytes_, Given(to), PieceOf(ElementsFor(to)));
      }
    } else {
      put(0, Given(rank_), PieceOf(ElementsFor(rank_)));
    }
  }
  meeting.cell(rank_).filled.store(step + 1);
  meeting.RingOthers(rank_);
}

void Collective::ReducePiece(char* to, Piece piece, const char* own, uint64_t window_offset) {
  if (piece.count == 0) return;
  const uint64_t step = first_step_ + step_;
  const auto operand = [&](uint32_t rank) -> const char* {
    if (rank == rank_ && !GivesOwn()) return own + piece.first * element_;
    return communicator_.meeting().Window(rank, step) + window_offset;
  };
  to += piece.first * element_;
  if (ranks_ == 1) {
    if (to != operand(0)) std::memmove(to, operand(0), piece.count * element_);
    return;
  }
  Reduce(call_.dtype, call_.op, to, operand(0), operand(1), piece.count);
  for (uint32_t rank = 2; rank < ranks_; ++rank) {
    Reduce(call_.dtype, call_.op, to, to, operand(rank), piece.count);
  }
}

void Collective::Take() {
  Meeting& meeting = communicator_.meeting();
  const uint64_t step = first_step_ + step_;
  if (in_two_steps_ && step_ % 2 == 0) {
    ReducePiece(static_cast<char*>(call_.recv), Share(rank_), static_cast<const char*>(call_.send),
                rank_ * part_bytes_);
  } else if (in_two_steps_) {
    for (uint32_t from = 0; from < ranks_; ++from) {
      const Piece piece = Share(from);
      if (from == rank_ || piece.count == 0) continue;
      std::memcpy(static_cast<char*>(call_.recv) + piece.first * element_,
                  meeting.Window(from, step), piece.count * element_);
    }
  } else if (Takes(rank_) && facts_.reduces) {
    const uint64_t elements = ElementsFrom(rank_);
    ReducePiece(static_cast<char*>(call_.recv), PieceOf(elements), Given(rank_),
                facts_.parts ? rank_ * part_bytes_ : 0);
  } else if (Takes(rank_)) {
    const uint64_t offset = facts_.parts ? rank_ * part_bytes_ : 0;
    for (uint32_t i = 0; i < ranks_; ++i) {
      const uint32_t from = (rank_ + i) % ranks_;
      const Piece piece = PieceOf(ElementsFrom(from));
      if (!Gives(from) || piece.count == 0) continue;
      char* to = Taken(from) + piece.first * element_;
      if (from != rank_) {
        std::memcpy(to, meeting.Window(from, step) + offset, piece.count * element_);
      } else if (to != Given(rank_) + piece.first * element_) {
        std::memmove(to, Given(rank_) + piece.first * element_, piece.count * element_);
      }
    }
  }
  meeting.cell(rank_).taken.store(step + 1);
  // Ranks that take as well as give have waited for this one's next window anyway.
  if (facts_.gives != facts_.takes) meeting.RingOthers(rank_);
}

void Collective::End() {
  communicator_.windows.store(nullptr);
  communicator_.meeting().Ring(rank_);
}

std::string Collective::Describe() const {
  return "collective " + std::to_string(number_) + ", " +
         hccl::Describe(call_.kind, call_.count, call_.dtype, call_.op, call_.root) + ",";
}

std::vector<uint32_t> Collective::Waiting() const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const RankCell& cell = communicator_.meeting().cell(rank);
    if (rank == rank_ || (cell.arrived.load() >= number_ && communicator_.meeting().Lives(rank))) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<Part::Missing> Collective::WaitsFor() const {
  std::vector<Missing> missing;
  if (state_ == State::kWaitsForTurn) return missing;
  const uint64_t step = first_step_ + step_;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const RankCell& cell = communicator_.meeting().cell(rank);
    const uint64_t arrived = cell.arrived.load();
    if (rank == rank_) continue;
    if (arrived < number_) {
      missing.push_back({rank, "has come to " + std::to_string(arrived) + " collectives of it"});
    } else if (gone_ == rank || (state_ == State::kWaitsForReaders && cell.filled.load() <= step) ||
               (state_ == State::kFills && cell.taken.load() + 1 < step) ||
               (state_ == State::kTakes && Takes(rank_) && Gives(rank) &&
                cell.filled.load() <= step)) {
      missing.push_back({rank, "has come to it and does not go on"});
    }
  }
  return missing;
}

}  // namespace acltape::hccl

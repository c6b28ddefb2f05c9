#include "runtime/hccl/meeting.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime/hccl/process.h"

namespace acltape::hccl {
namespace {

constexpr uint64_t kMagic = 0x32676E697465654D;
constexpr uint64_t kMeetingPage = 4096;

static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share these");
static_assert(std::atomic<uint32_t>::is_always_lock_free, "processes share these");

uint64_t ToPages(uint64_t bytes) {
  return (bytes + kMeetingPage - 1) / kMeetingPage * kMeetingPage;
}

// Offsets of the parts, in their order (Note [Layout of a meeting]).
struct Layout {
  explicit Layout(uint64_t ranks)
      : channels(kMeetingPage + ToPages(ranks * sizeof(RankCell))),
        counts(channels + ToPages(ranks * ranks * sizeof(Channel))),
        windows(counts + ToPages(ranks * 2 * ranks * sizeof(uint64_t))),
        rooms(windows + ranks * 2 * Meeting::kWindowBytes),
        end(rooms + ranks * ranks * 2 * Meeting::kRoomBytes) {}

  static constexpr uint64_t cells = kMeetingPage;
  const uint64_t channels, counts, windows, rooms, end;
};

// The meetings that this process has mapped, by the number of the file.
struct Mapped {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Meeting>> by_file;
};
Mapped& GetMapped() {
  static Mapped& mapped = *new Mapped;
  return mapped;
}

}  // namespace

struct Meeting::Head {
  std::atomic<uint64_t> magic;
  uint32_t ranks;
  char name[COMM_NAME_MAX_LENGTH];
  std::atomic<uint32_t> failing;  // 1: a rank writes the failure
  std::atomic<uint32_t> failure;  // HcclResult
  char text[1024];
};

Meeting::Meeting(int file, char* memory, uint64_t bytes, uint32_t ranks)
    : file_(file), memory_(memory), bytes_(bytes), ranks_(ranks) {}

Meeting::~Meeting() {
  munmap(memory_, bytes_);
  close(file_);
}

std::shared_ptr<Meeting> Meeting::Create(uint32_t ranks) {
  const int file = memfd_create("acltape-communicator", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  const uint64_t bytes = Layout(ranks).end;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return nullptr;
  }
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) < 0) random = static_cast<uint64_t>(getpid());
  Head head{};
  head.ranks = ranks;
  std::snprintf(head.name, sizeof head.name, "soft_group_%016llx",
                static_cast<unsigned long long>(random));
  head.magic.store(kMagic);
  if (pwrite(file, &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head)) {
    close(file);
    return nullptr;
  }
  return Attach(file);
}

std::shared_ptr<Meeting> Meeting::Attach(int file) {
  struct stat status {};
  Head head{};
  if (fstat(file, &status) != 0 ||
      pread(file, static_cast<void*>(&head), sizeof head, 0) != static_cast<ssize_t>(sizeof head) ||
      head.magic.load() != kMagic || head.ranks == 0 || head.ranks > kMostRanks ||
      static_cast<uint64_t>(status.st_size) != Layout(head.ranks).end) {
    close(file);
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(GetMapped().mutex);
  std::weak_ptr<Meeting>& known = GetMapped().by_file[status.st_ino];
  if (std::shared_ptr<Meeting> meeting = known.lock()) {
    close(file);
    return meeting;
  }
  const uint64_t bytes = Layout(head.ranks).end;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  std::shared_ptr<Meeting> meeting(
      new Meeting(file, static_cast<char*>(memory), bytes, head.ranks));
  known = meeting;
  return meeting;
}

const char* Meeting::name() const { return reinterpret_cast<const Head*>(memory_)->name; }

RankCell& Meeting::cell(uint32_t rank) const {
  return reinterpret_cast<RankCell*>(memory_ + Layout::cells)[rank];
}

Channel& Meeting::channel(uint32_t from, uint32_t to) const {
  return reinterpret_cast<Channel*>(memory_ + Layout(ranks_).channels)[from * ranks_ + to];
}

uint64_t* Meeting::Counts(uint32_t rank, uint64_t number) const {
  return reinterpret_cast<uint64_t*>(memory_ + Layout(ranks_).counts) +
         (uint64_t{rank} * 2 + number % 2) * ranks_;
}

char* Meeting::Window(uint32_t rank, uint64_t number) const {
  return memory_ + Layout(ranks_).windows + (uint64_t{rank} * 2 + number % 2) * kWindowBytes;
}

char* Meeting::Room(uint32_t from, uint32_t to, uint64_t number) const {
  return memory_ + Layout(ranks_).rooms +
         ((uint64_t{from} * ranks_ + to) * 2 + number % 2) * kRoomBytes;
}

bool Meeting::Join(uint32_t rank) {
  RankCell& own = cell(rank);
  const auto process = static_cast<uint32_t>(getpid());
  uint32_t nobody = 0;
  if (!own.process.compare_exchange_strong(nobody, process)) return false;
  own.process_start.store(StartOf(process));
  own.pid_namespace.store(PidNamespace());
  own.mapped_at.store(reinterpret_cast<uintptr_t>(memory_));
  AllowReaders();
  own.state.store(RankState::kHere);
  RingAll();
  return true;
}

void Meeting::Leave(uint32_t rank) {
  cell(rank).state.store(RankState::kLeft);
  RingAll();
}

bool Meeting::Lives(uint32_t rank) const {
  const RankCell& other = cell(rank);
  if (other.pid_namespace.load() != PidNamespace()) return true;
  return StartOf(other.process.load()) == other.process_start.load();
}

bool Meeting::MayRead(uint32_t rank) const {
  const RankCell& other = cell(rank);
  uint64_t magic = 0;
  return other.pid_namespace.load() == PidNamespace() &&
         ReadMemory(other.process.load(), other.mapped_at.load(), &magic, sizeof magic) == 0 &&
         magic == kMagic;
}

void Meeting::Ring(uint32_t rank) const {
  RankCell& other = cell(rank);
  other.bell.fetch_add(1);
  if (other.sleepers.load() == 0) return;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&other.bell), FUTEX_WAKE, INT_MAX, nullptr,
          nullptr, 0);
}

void Meeting::RingAll() const {
  for (uint32_t rank = 0; rank < ranks_; ++rank) Ring(rank);
}

void Meeting::RingOthers(uint32_t own) const {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != own) Ring(rank);
  }
}

void Meeting::Fail(HcclResult code, const std::string& text) {
  auto* head = reinterpret_cast<Head*>(memory_);
  if (head->failing.exchange(1) != 0) return;
  std::snprintf(head->text, sizeof head->text, "%s", text.c_str());
  head->failure.store(code);
  RingAll();
}

HcclResult Meeting::failure() const {
  return static_cast<HcclResult>(reinterpret_cast<const Head*>(memory_)->failure.load());
}

std::string Meeting::FailureText() const {
  return failure() == HCCL_SUCCESS ? "" : reinterpret_cast<const Head*>(memory_)->text;
}

}  // namespace acltape::hccl

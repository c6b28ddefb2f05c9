#include "runtime/device/ipc_cell.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "runtime/device/futex.h"
#include "runtime/device/standstill.h"

namespace acltape::device {
namespace {

constexpr uint64_t kMagic = 0x746E65766543504A;
constexpr size_t kBytes = 4096;

struct Payload {
  IpcCell* cell;
  IpcCell::Numbers* numbers;
  uint64_t number;  // counts the records of the event
  int64_t timeout_ns;
};

Payload& PayloadOf(void* argument) { return *static_cast<Payload*>(argument); }

aclError RunCellRecord(void* argument) {
  Payload& record = PayloadOf(argument);
  // Streams may reach records out of the order in which they were submitted.
  uint64_t reached = record.numbers->reached.load();
  while (reached < record.number &&
         !record.numbers->reached.compare_exchange_weak(reached, record.number)) {
  }
  return ACL_SUCCESS;
}

bool Ready(void* argument) {
  Payload& wait = PayloadOf(argument);
  return wait.numbers->reached.load(std::memory_order_acquire) >= wait.number;
}

aclError RunCellWait(void* argument) {
  int64_t timeout = PayloadOf(argument).timeout_ns;
  // Nobody signals across processes, so this looks again and again.
  return PollUntil(Ready, argument, timeout == 0 ? 0 : NowNs() + timeout)
             ? ACL_SUCCESS
             : ACL_ERROR_RT_WAIT_TIMEOUT;
}

void DropCellRecord(void* argument) {
  RunCellRecord(argument);  // one that was dropped must still let its waiters pass
  PayloadOf(argument).cell->Release();
}

void DropCellWait(void* argument) { PayloadOf(argument).cell->Release(); }

IpcCell::Numbers* Map(int file) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<IpcCell::Numbers*>(memory);
}

}  // namespace

IpcCell* IpcCell::Create() {
  int file = memfd_create("acltape-event", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  Numbers* numbers = ftruncate(file, kBytes) == 0 ? Map(file) : nullptr;
  if (numbers == nullptr) {
    close(file);
    return nullptr;
  }
  numbers->magic.store(kMagic);
  Standstill::MemoryIsShared();
  return new IpcCell(file, numbers);
}

IpcCell* IpcCell::Open(const aclrtIpcEventHandle& handle) {
  char text[sizeof(handle.reserved) + 1] = {};
  std::memcpy(text, handle.reserved, sizeof(handle.reserved));
  int process = 0;
  int number = 0;
  if (std::sscanf(text, "acltape event %d %d", &process, &number) != 2) return nullptr;
  std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(number);
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  // The number may be another file by now.
  Numbers* numbers = lseek(file, 0, SEEK_END) == static_cast<off_t>(kBytes) ? Map(file) : nullptr;
  if (numbers != nullptr && numbers->magic.load() == kMagic) {
    Standstill::MemoryIsShared();
    return new IpcCell(file, numbers);
  }
  if (numbers != nullptr) munmap(numbers, kBytes);
  close(file);
  return nullptr;
}

IpcCell::~IpcCell() {
  munmap(numbers_, kBytes);
  close(file_);
}

void IpcCell::Export(aclrtIpcEventHandle* handle) const {
  std::memset(handle, 0, sizeof(*handle));
  std::snprintf(handle->reserved, sizeof(handle->reserved), "acltape event %d %d",
                static_cast<int>(getpid()), file_);
}

Task IpcCell::RecordTask() {
  Retain();
  Payload payload{this, numbers_, numbers_->recorded.fetch_add(1) + 1, 0};
  Task task = MakeTask(TaskKind::kEventRecord, "EVENT_RECORD", payload, RunCellRecord);
  task.drop = DropCellRecord;
  return task;
}

Task IpcCell::WaitTask(int64_t timeout_ns) {
  Retain();
  Payload payload{this, numbers_, numbers_->recorded.load(), timeout_ns};
  Task task = MakeTask(TaskKind::kEventWait, "EVENT_WAIT", payload, RunCellWait);
  task.drop = DropCellWait;
  task.ready = Ready;
  return task;
}

bool IpcCell::Reached() const { return numbers_->reached.load() >= numbers_->recorded.load(); }

bool IpcCell::Wait(int64_t deadline_ns) {
  Payload payload{this, numbers_, numbers_->recorded.load(), 0};
  return PollUntil(Ready, &payload, deadline_ns);
}

}  // namespace acltape::device

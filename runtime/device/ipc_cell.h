// Memory by which processes share an event (EVT-23). It holds the numbers of the event's records,
// and every process that has opened the event maps it.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/event.h"

namespace acltape::device {

class IpcCell : public Shared<IpcCell> {
 public:
  // A cell of this process; null when the system has no memory for it.
  static IpcCell* Create();
  // The cell that a handle names; null when its process has destroyed it or has ended.
  static IpcCell* Open(const aclrtIpcEventHandle& handle);
  ~IpcCell();

  // Names the cell for other processes, as long as this one lives and has it.
  void Export(aclrtIpcEventHandle* handle) const;

  // Tasks that record the event, and wait for the record that is the newest now.
  Task RecordTask();
  Task WaitTask(int64_t timeout_ns);
  // True when the newest record was reached, and also before the first record.
  bool Reached() const;
  // The host's wait for the newest record; false when `deadline_ns` (0: none) passed.
  bool Wait(int64_t deadline_ns);

  struct Numbers {
    std::atomic<uint64_t> magic;
    std::atomic<uint64_t> recorded;  // records submitted
    std::atomic<uint64_t> reached;   // the newest record that ran
  };

 private:
  IpcCell(int file, Numbers* numbers) : file_(file), numbers_(numbers) {}

  const int file_;
  Numbers* const numbers_;
};

}  // namespace acltape::device

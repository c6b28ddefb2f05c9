// The destination of records that are taken from the rings: the backlog while the collector lives,
// the spool alone after its death (takeover.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/collector/spool.h"

namespace acltape::collector {

class RecordSink {
 public:
  // Opens a log for a thread that was met. Logs are counted from 0.
  virtual uint32_t Open(const LogOrigin& origin) = 0;
  virtual void Append(uint32_t log, std::span<const std::byte> records) = 0;
  // Ends a log after its last records.
  virtual void AppendEnd(uint32_t log, const SlotEnd& end) = 0;
  // Drops what waits, because the trace cannot be written any more.
  virtual void Clear() = 0;

 protected:
  ~RecordSink() = default;
};

}  // namespace acltape::collector

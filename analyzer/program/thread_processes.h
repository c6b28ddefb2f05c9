// The process of each thread of a trace.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "storage/database.h"
#include "storage/reader.h"

namespace acltape::analyzer {

class ThreadProcesses {
 public:
  explicit ThreadProcesses(const storage::Reader& trace) {
    storage::Statement rows(trace.database(), "SELECT thread_id, process_id FROM thread");
    while (rows.Next()) process_of_[rows.Integer(0)] = rows.Integer(1);
  }

  // 0: the trace does not say.
  int64_t Of(int64_t thread) const {
    const auto process = process_of_.find(thread);
    return process == process_of_.end() ? 0 : process->second;
  }

 private:
  std::unordered_map<int64_t, int64_t> process_of_;
};

}  // namespace acltape::analyzer

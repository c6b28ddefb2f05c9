// The calls of threads as slices.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "storage/database.h"
#include "timeline/names.h"
#include "timeline/source.h"

namespace acltape::timeline {

// A row of call_row with what is needed of call_extra.
struct CallRow {
  int64_t call_id = 0;
  int64_t parent_id = 0;
  int64_t signature_id = 0;
  int64_t thread_id = 0;
  int64_t bits = 0;  // phase in bits 0 and 1, leaf in bit 2
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t scope_id = 0;
  int64_t stream_id = 0;
  int64_t forward_call = 0;
  int64_t status = 0;
  int64_t prepare_ns = 0;
  int64_t model_id = 0;
};

// Reads calls in order of call_id and says which are shown.
class CallLookup {
 public:
  CallLookup(const storage::Reader& trace, const TimelineOptions& options);

  // False when there is no further one.
  bool Next(CallRow& row);
  void Rewind() { all_.Reset(); }
  // True when the trace has the call and it is shown.
  bool Shown(int64_t call_id);
  bool Shown(const CallRow& row);
  int64_t StepOf(int64_t call_id) const;  // -1: none
  CallForms& forms() { return forms_; }
  bool restricted() const { return static_cast<bool>(options_.wanted); }

 private:
  CallRow Read(const storage::Statement& row) const;
  const TimelineOptions& options_;
  int64_t base_ns_;
  int64_t process_;  // the one that is shown, 0: all
  CallForms forms_;
  std::vector<storage::Step> steps_;
  std::vector<int64_t> threads_;  // threads of that process, ascending
  storage::Statement all_;
  storage::Statement one_;
};

std::unique_ptr<Source> MakeCallSource(Output& output);

}  // namespace acltape::timeline

// Writes a trace: the collector's side. Creates the file (never overwrites one unless told),
// interns, batches rows in large transactions, and closes into one self-contained file. Every
// failure of the disk is an Error of kind kDevice, after which the file is still an openable trace
// of all that was committed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/error.h"
#include "storage/trace.h"

namespace acltape::storage {

class Writer {
 public:
  struct Options {
    bool overwrite = false;
    int64_t commit_rows = 200000;  // rows per transaction
    int compression_level = 1;     // zstd; 0 stores raw
  };
  Writer(const std::string& path, const Options& options);
  ~Writer();  // closes as "partial" unless Finish was called
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void SetMeta(const std::string& key, const std::string& value);
  void AddProcess(int64_t process_id, int64_t pid, const std::string& name);
  void AddThread(int64_t thread_id, int64_t process_id, int64_t tid, const std::string& name);

  int64_t InternOp(const Op& op);              // ignores op.op_id
  int64_t InternLayout(const Layout& layout);  // ignores layout.layout_id
  // `arguments` name slots in TensorRef::buffer_id (slot + 1; 0 for undefined). The caller keeps a
  // map from its own key to the returned id.
  int64_t AddSignature(int64_t op_id, const std::vector<Argument>& arguments);
  int64_t InternScope(int64_t parent_scope, const std::string& kind, const std::string& name);

  void AddCall(const Call& call, int64_t scope_id);
  void AddBuffer(const Buffer& buffer);  // replaces an earlier row of this id
  bool HasPayload(const std::string& digest) const;
  void AddPayload(const std::string& digest, const void* data, size_t bytes);
  struct Statistics {
    double min, max, mean, l2;
    int64_t nan_count, inf_count;
  };
  void AddSnapshot(const Snapshot& snapshot, const std::optional<Statistics>& statistics);
  void AddStep(const Step& step);
  void AddLedger(const LedgerEntry& entry);  // counts of the same kind and subject add up

  void Commit();
  // Writes state ("complete" or "partial"), folds the journal into the one file and closes it.
  void Finish(const std::string& state);

 private:
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace acltape::storage

// Traces of the ranks of one program that become one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/tables/temporary_folder.h"
#include "storage/call_numbers.h"
#include "storage/reader.h"

namespace acltape::cli {

class MergedTraces {
 public:
  // Opens the traces and finds how their clocks belong together. Throws as storage::Reader.
  explicit MergedTraces(const std::vector<std::string>& paths);

  const std::vector<storage::MergeSource>& sources() const { return sources_; }
  // Writes the trace, and shows how far it is. Throws as storage::Merge.
  void Write(const std::string& output, bool overwrite, bool contents) const;

 private:
  std::vector<std::unique_ptr<storage::Reader>> traces_;
  std::vector<storage::MergeSource> sources_;
};

// A merged trace in the folder for temporary files, without contents of tensors. It is removed with
// this object.
class TemporaryMerge {
 public:
  explicit TemporaryMerge(const std::vector<std::string>& paths);

  const std::string& path() const { return path_; }
  const std::vector<storage::MergeSource>& sources() const { return traces_.sources(); }

 private:
  MergedTraces traces_;
  TemporaryFolder folder_;
  std::string path_;
};

// "the same clock", or "within 41 us, by 120 collectives with t.rank0.db".
std::string ClockText(const storage::MergeSource& source);

}  // namespace acltape::cli

// The file that a timeline is written to, compressed where its name ends in ".gz". It appears under
// its name when it is whole (storage/new_file.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "storage/new_file.h"

namespace acltape::timeline {

class OutputFile {
 public:
  // Throws as storage::NewFile.
  OutputFile(const std::string& path, const storage::OutputRules& rules);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view bytes);  // Error kDevice, such as a full disk
  void Finish();
  int64_t bytes() const;  // written so far, before compression

 private:
  struct Target;
  std::unique_ptr<Target> target_;
};

}  // namespace acltape::timeline

// The file that a timeline is written to, compressed where its name ends in ".gz". It appears under
// its name when it is whole; until then it is NAME.part, which is removed when writing fails.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace acltape::timeline {

class OutputFile {
 public:
  // Error kUsage when the file exists and may not be overwritten, kDevice when it cannot be made.
  OutputFile(const std::string& path, bool overwrite);
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

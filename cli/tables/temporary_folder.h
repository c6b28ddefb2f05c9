// A folder for temporary files, which goes with the object, and all that is in it.
#pragma once

#include <string>

namespace acltape::cli {

class TemporaryFolder {
 public:
  // Throws Error kDevice if the folder for temporary files cannot be written.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace acltape::cli

// A new trace file that one process writes. Another that is told to overwrite it would take it away
// while it is written, and all that was recorded would be lost.
#pragma once

#include <string>

namespace acltape::storage {

// Removes a trace with its journals.
void RemoveTraceFiles(const std::string& path) noexcept;

// Throws Error kDevice if another process writes the trace. Nothing where there is no file.
void RequireUnclaimed(const std::string& path);

class FileClaim {
 public:
  // Creates the empty file and keeps others from it, by flock, as long as this lives. Throws Error
  // kUsage when it exists and may not be overwritten, or is no file; kDevice when another process
  // writes it, or when it cannot be created.
  FileClaim(const std::string& path, bool overwrite);
  // Closes the file. Connections of SQLite to it must be closed before: closing any descriptor of a
  // file gives up all its POSIX locks.
  ~FileClaim();
  FileClaim(const FileClaim&) = delete;
  FileClaim& operator=(const FileClaim&) = delete;

  // The descriptor that holds the file. A forked process that keeps it open holds the file too.
  int file() const { return file_; }

 private:
  int file_ = -1;
};

}  // namespace acltape::storage

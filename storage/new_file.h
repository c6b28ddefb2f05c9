// The files that commands write. What is the user's is never destroyed: not the trace, not what
// lies under the name of an output, not what a link leads to. Every output of every command is
// opened by one of these:
//
//   WriteNewFile("plan.json", text, {.overwrite = force, .trace = trace});     // a text
//
//   NewFile file("page.html", {.overwrite = force, .trace = trace});           // anything else
//   ... write file.partial() ...
//   file.Accept();                                                               // takes the name
//
// A new trace is written by storage/trace_copy.h, which uses NewFile, and recorded under its own
// name (storage/file_claim.h and storage/set_aside.h); a journal of a bisection grows in place
// (RequirePlainFile).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::storage {

struct OutputRules {
  bool overwrite = false;  // --force: what is there may be replaced
  // The trace that the command reads, and other files that it reads. They and what belongs to a
  // trace (kSqliteSuffixes, kSpoolSuffix) are no output under any name, also with `overwrite`.
  std::string trace = {};
  std::vector<std::string> reads = {};
  // Says of a file that it was written by an earlier run of the same command, which replaces it
  // without `overwrite`. Null: no file is.
  std::function<bool(const std::string&)> is_own = nullptr;
  // The output is a trace, which has files beside it: those that are there count as the output.
  bool is_trace = false;
  // How the user goes on where a file may not be replaced.
  std::string_view remedy = {};
};

// Throws Error kUsage if the path names the trace, what belongs to it, or one of `reads`.
void RefuseWhatIsRead(const std::string& path, const std::string& trace,
                      const std::vector<std::string>& reads);

// Throws Error kUsage unless the path is free, or is a plain file that may be replaced.
void JudgeOutput(const std::string& path, const OutputRules& rules);

// Throws Error kUsage if there is something at the path that is no plain file, or if it is the
// trace or belongs to it. For what is opened in place.
void RequirePlainFile(const std::string& path, const std::string& trace);

// A file that is written beside its name and takes the name when it is whole. Until then, and when
// anything fails, whatever has the name stays as it is.
//
// A process that is killed leaves its partial file, NAME.PID.partial. The next NewFile of that name
// removes it: a plain file of this user, which no living process has numbered or holds locked.
class NewFile {
 public:
  // Judges the path and creates the empty partial file, with the rights of the file that it
  // replaces. Throws Error kUsage as JudgeOutput, kDevice if the folder cannot be written.
  NewFile(std::string path, OutputRules rules);
  // Removes the partial file, unless it was accepted.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // The file to write until Accept. Nobody else has its name. Connections of SQLite to it must be
  // closed before this one ends or Accept, because it holds the file (storage/file_claim.h).
  const std::string& partial() const { return partial_; }
  const std::string& path() const { return path_; }
  // Gives the written and closed file its name. Throws Error kUsage if a file came to have that
  // name meanwhile which may not be replaced, kDevice if the system refuses.
  void Accept();

 private:
  std::string path_;
  std::string partial_;
  int file_ = -1;  // holds the lock on the partial file
  OutputRules rules_;
};

// Writes a whole file. Throws as NewFile, and Error kDevice if the disk is full.
void WriteNewFile(const std::string& path, std::string_view text, const OutputRules& rules);

}  // namespace acltape::storage

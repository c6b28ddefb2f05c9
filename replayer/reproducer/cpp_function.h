// Writes one script as the body of a C++ function that uses the preamble's classes.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "replayer/engine/script.h"

namespace acltape::replayer::reproducer {

// The contents of all scripts of a program. Equal contents are stored once.
class CppContents {
 public:
  // Creates `file` and writes the contents to it. Throws Error kDevice if it cannot be written.
  explicit CppContents(const std::string& file);
  // Returns the index in the table kContents of content `number` of a script.
  int IndexOf(const Script& script, int number);
  std::string TableText() const;
  void Finish();

 private:
  struct Row {
    std::string name;
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::string path_;
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };
  std::unique_ptr<FILE, Closer> file_;
  int64_t bytes_ = 0;
  std::vector<Row> rows_;
  std::map<std::pair<const Script*, int>, int> indices_;
  std::map<std::string, int> by_digest_;
};

class CppFunction {
 public:
  // `describe_call` returns the comment above a launch and the names of results.
  CppFunction(const Script& script, CppContents& contents,
              const std::function<std::string(int64_t)>& describe_call,
              std::set<std::string>& headers);

  // Returns the function "static Results NAME() { ... }". Adds the headers that it needs. Throws
  // Error kUsage if an operation cannot be expressed.
  std::string Text(const std::string& name, const std::string& comment);

 private:
  std::string At(const Spot& spot) const;
  void NameBlocks();
  void Line(const std::string& text);

  // One function for each kind of operation.
  void Print(const UploadTo& own);
  void Print(const UploadTogether& own);
  void Print(const UploadStrided& own);
  void Print(const CopyBytes& own);
  void Print(const FillBytes& own);
  void Print(const Launch& own);
  void Print(const RecordEvent& own);
  void Print(const WaitEvent& own);
  void Print(const BeginCapture& own);
  void Print(const EndCapture& own);
  void Print(const ExecuteGraph& own);
  void Print(const BeginGroup& own);
  void Print(const EndGroup& own);
  void Print(const BeginUpdate& own);
  void Print(const EndUpdate& own);
  void Print(const DisableCalls& own);
  void Print(const ChurnMemory& own);
  void Print(const SynchronizeAll& own);
  void Print(const Observe& own);
  void Print(const ReadOnHost& own);

  const Script& script_;
  CppContents& contents_;
  const std::function<std::string(int64_t)>& describe_call_;
  std::set<std::string>& headers_;
  std::vector<std::string> block_names_;
  std::string body_;
};

}  // namespace acltape::replayer::reproducer

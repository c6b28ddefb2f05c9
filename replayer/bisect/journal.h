// The journal of a bisection: every experiment with its outcome, on disk before the next begins, so
// that a bisection that was killed goes on where it stopped.
//
// A file of JSON lines. The first names what is bisected:
//   {"acltape_journal": 1, "subject": {...}}
// each other one is an experiment, written and fsynced when its outcome is known:
//   {"experiment": "search", "altered": "0-41,57", "verdict": "bad", "executions": 5,
//    "bad_executions": 5, "fingerprint": "...", "evidence": {...}, "seconds": 0.12}
// "experiment" is "search" or the name of a counter-experiment. A last line without its line end
// was torn by a crash and is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

class Journal {
 public:
  // Opens the journal or begins one. `subject` is a JSON object; everything that the outcomes
  // depend on belongs into it. With `restart` an existing journal is emptied. Throws Error kUsage
  // when the journal is of another subject or in use by another process, kTrace when a line cannot
  // be read, kDevice when the file cannot be read or written.
  Journal(std::string path, const std::string& subject, bool restart);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The outcome of the earliest experiment of this kind that an earlier run wrote down and that was
  // not asked for yet.
  std::optional<Outcome> Take(const std::string& experiment, const ElementSet& altered);
  // Throws Error kDevice when the line cannot be written.
  void Append(const std::string& experiment, const ElementSet& altered, const Outcome& outcome,
              double seconds);

  const std::string& path() const { return path_; }
  // Experiments that earlier runs left.
  int64_t found() const { return found_; }

 private:
  struct Recorded {
    std::vector<Outcome> outcomes;
    size_t taken = 0;
  };
  void ReadLines(const std::string& text);
  void AddLine(const std::string& line);
  void WriteLine(const std::string& line);

  std::string path_;
  int file_ = -1;
  int64_t found_ = 0;
  std::map<std::string, Recorded> recorded_;  // by kind and set
};

}  // namespace acltape::replayer

// The journal of a bisection. Every experiment is written to disk with its outcome before the next
// one begins. So a bisection that was killed continues where it stopped.
//
// It is a file of JSON lines. The first line names the subject of the bisection:
//   {"acltape_journal": 1, "subject": {...}}
// Each other line is an experiment. It is written and fsynced when the outcome is known:
//   {"experiment": "search", "altered": "0-41,57", "verdict": "bad", "executions": 5,
//    "bad_executions": 5, "fingerprint": "...", "evidence": {...}, "seconds": 0.12}
// "experiment" is "search" or the name of a counter-experiment. If the last line has no line end, a
// crash has torn it, and it is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replayer/script/experiment.h"

namespace acltape::replayer::bisect {

// The file in which a bisection of a trace is written down when no name was given: the first of
// TRACE.bisect.jsonl, TRACE.bisect.2.jsonl, TRACE.bisect.3.jsonl, ... that is not the journal of
// another subject. So bisections with other options stand beside each other, and one that is
// repeated finds its own journal. A file that cannot be read as a journal is given, too: opening it
// says what is wrong with it.
std::string DefaultJournal(const std::string& trace, const std::string& subject);

// Throws Error kUsage if the file is the trace, belongs to it or is no plain file, and kUsage
// (`restart`) or kTrace if there is something in it that is no journal. Opening a journal does the
// same; this can be asked before long work.
void JudgeJournal(const std::string& path, const std::string& trace, bool restart);

class Journal {
 public:
  // Opens a journal or creates one. `subject` is a JSON object with everything that the outcomes
  // depend on. With `restart` an existing journal is emptied, and nothing that is no journal.
  // `trace` is no journal under any name (storage/new_file.h). Throws Error kUsage if the path is
  // the trace or no plain file, if the journal has another subject, or if another
  // process uses it, kTrace if a line cannot be parsed, kDevice if
  // the file cannot be read or written.
  Journal(std::string path, const std::string& subject, bool restart,
          const std::string& trace = {});
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Returns an outcome that an earlier run wrote for this kind of experiment and this set. Each
  // outcome is returned once, the earliest first. Nothing if there are no more.
  std::optional<script::Outcome> Take(const std::string& experiment,
                                      const script::ElementSet& altered);
  // Writes one line. Throws Error kDevice if that fails.
  void Append(const std::string& experiment, const script::ElementSet& altered,
              const script::Outcome& outcome, double seconds);

  const std::string& path() const { return path_; }
  // Number of experiments that earlier runs left in the journal.
  int64_t found() const { return found_; }

 private:
  struct Recorded {
    std::vector<script::Outcome> outcomes;
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

}  // namespace acltape::replayer::bisect

// The grammar by which every command picks calls:
//
//   selection = term { "/" term }          a call is picked when every term holds for it
//   term      = ranges                     its call_id
//             | "step:" ranges             the step it lies in
//             | "op:" name { "," name }    its op, with or without overload; "*" is any text
//             | "stream:" ranges           the stream it was put on
//             | "line:" file [ ":" ranges ]  the line of source that it comes from; "*" is any text
//             | "rank:" N                  the process of this rank, at which the command then
//             looks
//   ranges    = range { "," range }        one of them
//   range     = N | N "-" M | N "-"        both ends belong to it
//
// A file is named as it ends: alone, or with as many of its folders as one likes
// ("line:llm/model.py:31-39"). "line:train.py:41" are the calls of that line, those of its
// backward pass too. "step:3/op:aten::mm,aten::addmm" are the matrix products of step 3; "100-200"
// are the calls 100 to 200. The empty text picks every call. A rank is picked when the trace is
// opened (cli/frame/trace_part_options.h), so its term holds for every call here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/calls/work.h"
#include "storage/reader.h"

namespace acltape::cli {

// The facts about one call that a term can ask for.
struct SelectionSubject {
  int64_t call_id = 0;
  int64_t step = -1;           // -1: outside every step; no step: term holds for it
  int64_t stream = -1;         // -1: on no stream
  std::string_view name;       // "aten::add"
  std::string_view full_name;  // "aten::add.Tensor"
  std::string_view file;       // "/home/me/train.py"; empty: its line is not known
  int64_t line = 0;
};

class Selection {
 public:
  // Throws Error kUsage with the grammar's words for what is wrong.
  static Selection Parse(const std::string& text);

  bool empty() const { return terms_.empty(); }
  bool asks_stream() const { return Asks(Kind::kStream); }
  bool asks_step() const { return Asks(Kind::kStep); }
  bool asks_line() const { return Asks(Kind::kLine); }
  bool Contains(const SelectionSubject& subject) const;
  // Throws Error kUsage if it asks for steps and the trace has none.
  void RequireSteps(const storage::Reader& reader) const;

 private:
  enum class Kind { kCall, kStep, kOp, kStream, kLine, kRank };
  struct Range {
    int64_t first;
    int64_t last;
  };
  struct Term {
    Kind kind;
    std::vector<Range> ranges;  // ranges of lines; empty for all of the file
    std::vector<std::string> names;
  };
  static Term ParseLine(std::string_view text);
  static Term ParseTerm(std::string_view text);
  static Range ParseRange(std::string_view text);
  bool Asks(Kind kind) const;

  std::vector<Term> terms_;
};

// The lines of source of all calls of a trace, for the terms that ask for lines.
class CallLines {
 public:
  // Reads nothing unless `wanted`, as few selections ask. Throws Error kUsage if they are wanted
  // and the trace has none.
  CallLines(const storage::Reader& reader, bool wanted);

  // Fills in the line of a call; leaves the subject as it is where the line is not known.
  void Tell(int64_t call_id, SelectionSubject& subject) const;

 private:
  std::unordered_set<std::string> files_;
  std::unordered_map<int64_t, std::pair<const std::string*, int64_t>> lines_;
};

// The leaves of a trace that a selection picks, in order of call_id. Throws Error kUsage when it
// asks for steps and the trace has none.
std::vector<storage::Call> SelectLeaves(const storage::Reader& reader, const Selection& selection);

// The calls that a selection picks of a program in compact form, as indices in Work::calls. Errors
// as for SelectLeaves.
std::vector<size_t> SelectCalls(const analyzer::Work& work, const Selection& selection);

// Makes a function that is true for the leaves that a selection picks. It is an empty function for
// the empty text, which picks every call.
std::function<bool(int64_t call_id)> PickedBy(const storage::Reader& reader,
                                              const std::string& text);

}  // namespace acltape::cli

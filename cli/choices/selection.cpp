#include "cli/choices/selection.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/level.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/program/leaves.h"
#include "analyzer/program/source_lines.h"
#include "meaning/options.h"
#include "storage/database.h"
#include "storage/process_choice.h"

namespace acltape::cli {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void Refuse(std::string_view part, const char* expected) {
  throw Error(ErrorKind::kUsage,
              fmt::format("selection: '{}' is not {}; examples: 100-200, step:3, op:aten::mm, "
                          "stream:1, line:train.py:41, step:3/op:aten::mm, rank:2/step:3.",
                          part, expected));
}

int64_t ParseNumber(std::string_view text, std::string_view whole) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    Refuse(whole, "a number or a range such as 100-200");
  }
  return number;
}

// "*" stands for any text, also none.
bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t from = star; from <= text.size(); ++from) {
    if (Matches(rest, text.substr(from))) return true;
  }
  return false;
}

// True if the file's path is the pattern, or ends with it at the start of a folder or of a name.
bool EndsWithPath(std::string_view pattern, std::string_view path) {
  for (size_t from = 0;;) {
    if (Matches(pattern, path.substr(from))) return true;
    const size_t folder = path.find('/', from);
    if (folder == std::string_view::npos) return false;
    from = folder + 1;
  }
}

constexpr std::string_view kWords[] = {"step:", "op:", "stream:", "line:", storage::kRankPrefix};
constexpr std::string_view kLine = "line:";

bool BeginsTerm(std::string_view part) {
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return part.starts_with(word); });
}

// Splits at the slashes between terms. Those in the path of a file are no such slashes: a part that
// is neither a term with a word nor ranges belongs to the file before it, with all parts between.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '/');
  std::vector<std::string_view> terms;
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t last = i;
    if (parts[i].starts_with(kLine)) {
      for (size_t next = i + 1; next < parts.size() && !BeginsTerm(parts[next]); ++next) {
        const bool ranges = parts[next].find_first_not_of("0123456789,-") == std::string_view::npos;
        if (!ranges || parts[next].empty()) last = next;
      }
    }
    const char* end = parts[last].data() + parts[last].size();
    terms.push_back({parts[i].data(), static_cast<size_t>(end - parts[i].data())});
    i = last;
  }
  return terms;
}

// Streams are read on demand: only traces of the ACL level have them, and few selections ask.
std::unordered_map<int64_t, int64_t> StreamOfCalls(const storage::Reader& reader) {
  std::unordered_map<int64_t, int64_t> streams;
  storage::Statement rows(reader.database(),
                          "SELECT call_id, stream_id FROM call WHERE stream_id IS NOT NULL");
  while (rows.Next()) streams[rows.Integer(0)] = rows.Integer(1);
  return streams;
}

[[noreturn]] void RefuseSteps(const std::string& path) {
  throw Error(ErrorKind::kUsage,
              fmt::format("{} has no steps to pick from; record with @steps-from RANGE or pick "
                          "calls by number."_cli,
                          path));
}

}  // namespace

CallLines::CallLines(const storage::Reader& reader, bool wanted) {
  if (!wanted) return;
  const analyzer::SourceLines lines(reader);
  if (!lines.any()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has no lines of source to pick by; record with @stacks top."_cli,
                            reader.path()));
  }
  lines.Visit([this](int64_t call_id, const analyzer::SourceLine& line) {
    lines_[call_id] = {&*files_.insert(line.file).first, line.line};
  });
}

void CallLines::Tell(int64_t call_id, SelectionSubject& subject) const {
  const auto found = lines_.find(call_id);
  if (found == lines_.end()) return;
  subject.file = *found->second.first;
  subject.line = found->second.second;
}

Selection Selection::Parse(const std::string& text) {
  Selection selection;
  if (text.empty()) return selection;
  for (const std::string_view part : SplitTerms(text)) selection.terms_.push_back(ParseTerm(part));
  return selection;
}

Selection::Term Selection::ParseTerm(std::string_view text) {
  static constexpr Kind kKinds[] = {Kind::kStep, Kind::kOp, Kind::kStream, Kind::kLine,
                                    Kind::kRank};
  Term term{Kind::kCall, {}, {}};
  std::string_view rest = text;
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    if (!text.starts_with(kWords[kind])) continue;
    term.kind = kKinds[kind];
    rest.remove_prefix(kWords[kind].size());
  }
  if (rest.empty()) Refuse(text, "a term");
  if (term.kind == Kind::kLine) return ParseLine(rest);
  if (term.kind == Kind::kRank) {
    const bool digits = rest.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits) Refuse(text, "one rank, such as rank:2; a command looks at one");
    return term;
  }
  for (const std::string_view part : Split(rest, ',')) {
    if (term.kind != Kind::kOp) {
      term.ranges.push_back(ParseRange(part));
    } else if (part.empty()) {
      Refuse(text, "a list of op names");
    } else {
      term.names.emplace_back(part);
    }
  }
  return term;
}

Selection::Term Selection::ParseLine(std::string_view text) {
  Term term{Kind::kLine, {}, {}};
  const size_t colon = text.rfind(':');
  term.names.emplace_back(text.substr(0, colon));
  if (term.names.front().empty()) Refuse(text, "a file, or a file and its lines");
  if (colon == std::string_view::npos) return term;
  for (const std::string_view part : Split(text.substr(colon + 1), ',')) {
    term.ranges.push_back(ParseRange(part));
  }
  return term;
}

Selection::Range Selection::ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const int64_t number = ParseNumber(text, text);
    return {number, number};
  }
  const int64_t first = ParseNumber(text.substr(0, dash), text);
  if (dash + 1 == text.size()) return {first, std::numeric_limits<int64_t>::max()};
  const int64_t last = ParseNumber(text.substr(dash + 1), text);
  if (last < first) Refuse(text, "a range whose first number is the smaller one");
  return {first, last};
}

bool Selection::Asks(Kind kind) const {
  return std::any_of(terms_.begin(), terms_.end(),
                     [kind](const Term& term) { return term.kind == kind; });
}

void Selection::RequireSteps(const storage::Reader& reader) const {
  if (asks_step() && reader.Steps().empty()) RefuseSteps(reader.path());
}

bool Selection::Contains(const SelectionSubject& subject) const {
  const auto holds = [&](const Term& term) {
    if (term.kind == Kind::kRank) return true;
    if (term.kind == Kind::kOp) {
      return std::any_of(term.names.begin(), term.names.end(), [&](const std::string& name) {
        return Matches(name, subject.name) || Matches(name, subject.full_name);
      });
    }
    if (term.kind == Kind::kLine) {
      if (subject.file.empty() || !EndsWithPath(term.names.front(), subject.file)) return false;
      if (term.ranges.empty()) return true;
    }
    const int64_t number = term.kind == Kind::kCall   ? subject.call_id
                           : term.kind == Kind::kStep ? subject.step
                           : term.kind == Kind::kLine ? subject.line
                                                      : subject.stream;
    return std::any_of(term.ranges.begin(), term.ranges.end(), [number](const Range& range) {
      return range.first <= number && number <= range.last;
    });
  };
  return std::all_of(terms_.begin(), terms_.end(), holds);
}

std::vector<storage::Call> SelectLeaves(const storage::Reader& reader, const Selection& selection) {
  std::vector<storage::Call> leaves = reader.Calls(/*leaves_only=*/true);
  if (selection.empty()) return leaves;
  const std::vector<storage::Step> steps = reader.Steps();
  if (selection.asks_step() && steps.empty()) RefuseSteps(reader.path());
  const auto streams =
      selection.asks_stream() ? StreamOfCalls(reader) : std::unordered_map<int64_t, int64_t>();
  const CallLines lines(reader, selection.asks_line());
  std::vector<storage::Call> picked;
  for (storage::Call& call : leaves) {
    const storage::Op& op = reader.GetOp(call.op_id);
    const std::string full_name = op.FullName();
    SelectionSubject subject{call.call_id, -1, -1, op.name, full_name, "", 0};
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), call.call_id,
        [](int64_t id, const storage::Step& step) { return id < step.first_call; });
    if (after != steps.begin() && call.call_id <= std::prev(after)->last_call) {
      subject.step = std::prev(after)->step;
    }
    if (const auto found = streams.find(call.call_id); found != streams.end()) {
      subject.stream = found->second;
    }
    lines.Tell(call.call_id, subject);
    if (selection.Contains(subject)) picked.push_back(std::move(call));
  }
  return picked;
}

std::vector<size_t> SelectCalls(const analyzer::Work& work, const Selection& selection) {
  if (selection.asks_step() && work.steps.empty()) RefuseSteps(work.trace->path());
  const CallLines lines(*work.trace, selection.asks_line());
  std::vector<std::string> names;  // by form
  for (const analyzer::WorkForm& form : work.forms) names.push_back(form.op->FullName());
  std::vector<size_t> picked;
  for (size_t call = 0; call < work.size(); ++call) {
    const analyzer::WorkCall& row = work.calls[call];
    SelectionSubject subject;
    subject.call_id = row.call_id;
    subject.step = row.step;
    subject.stream = row.stream_id == 0 ? -1 : row.stream_id;
    subject.name = work.op(call).name;
    subject.full_name = names[row.form];
    lines.Tell(analyzer::RecordedCall(row.call_id), subject);
    bool wanted = selection.Contains(subject);
    if (!wanted && work.dialect == analyzer::Dialect::kAclLeaves) {
      // The number of a call of a graph stands for all its executions.
      subject.call_id = analyzer::RecordedCall(row.call_id);
      wanted = selection.Contains(subject);
    }
    if (wanted) picked.push_back(call);
  }
  return picked;
}

std::function<bool(int64_t)> PickedBy(const storage::Reader& reader, const std::string& text) {
  if (text.empty()) return {};
  const auto picked = std::make_shared<std::unordered_set<int64_t>>();
  if (analyzer::ChooseLevel(reader) == analyzer::Level::kAcl) {
    const analyzer::Work work = analyzer::LoadLeaves(reader, nullptr);
    for (const size_t call : SelectCalls(work, Selection::Parse(text))) {
      picked->insert(work.calls[call].call_id);
    }
    return [picked](int64_t call_id) { return picked->count(call_id) != 0; };
  }
  for (const storage::Call& call : SelectLeaves(reader, Selection::Parse(text))) {
    picked->insert(call.call_id);
  }
  return [picked](int64_t call_id) { return picked->count(call_id) != 0; };
}

}  // namespace acltape::cli

#include "replayer/bisect/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "meaning/options.h"
#include "replayer/bisect/element_text.h"
#include "storage/error.h"
#include "storage/new_file.h"
#include "storage/plain_file.h"

namespace acltape::replayer::bisect {
namespace {

using nlohmann::json;

constexpr int kJournalVersion = 1;

std::string KeyOf(const std::string& experiment, const std::string& altered) {
  return experiment + ':' + altered;
}

[[noreturn]] void FailSystem(const std::string& path, const char* what) {
  throw Error(ErrorKind::kDevice, "cannot " + std::string(what) + " the journal " + path + ": " +
                                      std::strerror(errno) +
                                      "; @journal names another place for it."_cli);
}

[[noreturn]] void FailContent(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::kTrace, "the journal " + path + " cannot be read: " + what +
                                     "; @restart begins a new one."_cli);
}

std::string HeadOf(const std::string& subject) {
  return json{{"acltape_journal", kJournalVersion}, {"subject", json::parse(subject)}}.dump();
}

// True of a file with nothing in it, with a journal, or with the torn first line of one.
bool IsEmptyOrJournal(int file) {
  constexpr std::string_view kHead = "{\"acltape_journal\":";
  char head[kHead.size()] = {};
  const ssize_t bytes = pread(file, head, sizeof head, 0);
  return bytes >= 0 && kHead.starts_with(std::string_view(head, static_cast<size_t>(bytes)));
}

// Gives the file this text alone. What is after the text is cut off last.
bool StartsAnew(int file, const std::string& text) {
  const auto bytes = static_cast<off_t>(text.size());
  return pwrite(file, text.data(), text.size(), 0) == bytes && ftruncate(file, bytes) == 0 &&
         fdatasync(file) == 0;
}

// Nothing is changed before the file is known as a journal.
void RequireJournal(int file, const std::string& path, bool restart) {
  if (IsEmptyOrJournal(file)) return;
  throw Error(restart ? ErrorKind::kUsage : ErrorKind::kTrace,
              "the file " + path +
                  " is no journal: it does not begin as a journal does; @journal names "
                  "another place."_cli);
}

bool IsOfAnother(const std::string& path, const std::string& head) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const std::string text = storage::ReadPlainFile(path).value_or("");
  const json found = json::parse(text.substr(0, text.find('\n')), nullptr, false);
  return found.is_object() && found.contains("acltape_journal") && found.dump() != head;
}

bool IsDigest(const json& value) { return value.is_string(); }
bool IsDigests(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), IsDigest);
}

// One member of an outcome's evidence that is read, and the check of its value.
struct EvidenceMember {
  const char* name;
  bool (*fits)(const json& value);
};
constexpr EvidenceMember kEvidence[] = {
    {"error", [](const json& value) { return value.is_string(); }},
    {"sentence", [](const json& value) { return value.is_string(); }},
    {"code", [](const json& value) { return value.is_number_integer(); }},
    {"call", [](const json& value) { return value.is_number_integer(); }},
    {"output", [](const json& value) { return value.is_number_integer(); }},
    {"eager_varies", [](const json& value) { return value.is_boolean(); }},
    {"reference", [](const json& value) {
       return value.is_array() && std::all_of(value.begin(), value.end(), IsDigests);
     }}};

bool IsEvidence(const json& evidence) {
  if (!evidence.is_object()) return false;
  return std::all_of(std::begin(kEvidence), std::end(kEvidence), [&](const EvidenceMember& member) {
    const auto found = evidence.find(member.name);
    return found == evidence.end() || member.fits(*found);
  });
}

script::Outcome OutcomeOf(const json& line) {
  script::Outcome outcome;
  outcome.verdict = ParseVerdict(line.at("verdict").get<std::string>());
  outcome.executions = line.at("executions").get<int>();
  outcome.bad_executions = line.at("bad_executions").get<int>();
  outcome.fingerprint = line.at("fingerprint").get<std::string>();
  const json& evidence = line.at("evidence");
  if (evidence.is_null()) return outcome;
  if (!IsEvidence(evidence)) {
    throw Error(ErrorKind::kTrace, "the evidence of an experiment is not as a bisection writes it");
  }
  outcome.evidence = evidence.dump();
  return outcome;
}

}  // namespace

std::string DefaultJournal(const std::string& trace, const std::string& subject) {
  const std::string head = HeadOf(subject);
  std::string path = trace + ".bisect.jsonl";
  for (int number = 2; IsOfAnother(path, head); ++number) {
    path = trace + ".bisect." + std::to_string(number) + ".jsonl";
  }
  return path;
}

void JudgeJournal(const std::string& path, const std::string& trace, bool restart) {
  storage::RequirePlainFile(path, trace);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;  // opening it for writing says why
  try {
    RequireJournal(file, path, restart);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
}

Journal::Journal(std::string path, const std::string& subject, bool restart,
                 const std::string& trace)
    : path_(std::move(path)) {
  storage::RequirePlainFile(path_, trace);
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (file_ < 0) FailSystem(path_, "open");
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    close(file_);
    throw Error(ErrorKind::kUsage, "the journal " + path_ +
                                       " is in use by another bisection; wait for it, or name "
                                       "another place with @journal."_cli);
  }
  try {
    RequireJournal(file_, path_, restart);
    const std::string head = HeadOf(subject);
    if (restart) {
      if (!StartsAnew(file_, head + '\n')) FailSystem(path_, "empty");
      if (lseek(file_, 0, SEEK_END) < 0) FailSystem(path_, "write");
      return;
    }
    std::string text;
    char buffer[1 << 16];
    for (ssize_t count = 0; (count = read(file_, buffer, sizeof buffer)) != 0;) {
      if (count < 0) FailSystem(path_, "read");
      if (text.size() > storage::kMostPlainBytes) {
        throw Error(ErrorKind::kTrace, "the file " + path_ +
                                           " is larger than any journal; @journal names another "
                                           "place."_cli);
      }
      text.append(buffer, static_cast<size_t>(count));
    }
    const size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
    if (whole != text.size()) {
      if (ftruncate(file_, static_cast<off_t>(whole)) != 0) FailSystem(path_, "mend");
      text.resize(whole);
    }
    if (lseek(file_, 0, SEEK_END) < 0) FailSystem(path_, "write");

    if (text.empty()) {
      WriteLine(head);
      return;
    }
    const size_t head_end = text.find('\n');
    const json found = json::parse(text.substr(0, head_end), nullptr, false);
    if (!found.is_object()) FailContent(path_, "its first line is not whole");
    if (found.dump() != head) {
      throw Error(ErrorKind::kUsage,
                  "the journal " + path_ +
                      " belongs to another bisection (trace, plan, options or device differ); "
                      "@restart begins anew, @journal names another place."_cli);
    }
    ReadLines(text.substr(head_end + 1));
  } catch (...) {
    close(file_);
    throw;
  }
}

Journal::~Journal() { close(file_); }

void Journal::ReadLines(const std::string& text) {
  int number = 1;
  for (size_t line = 0; line < text.size();) {
    const size_t end = text.find('\n', line);
    ++number;
    try {
      AddLine(text.substr(line, end - line));
    } catch (const std::exception&) {
      FailContent(path_, "line " + std::to_string(number) + " is no experiment");
    }
    line = end + 1;
  }
}

void Journal::AddLine(const std::string& line) {
  const json object = json::parse(line);
  const std::string altered = object.at("altered").get<std::string>();
  ParseElements(altered);
  recorded_[KeyOf(object.at("experiment").get<std::string>(), altered)].outcomes.push_back(
      OutcomeOf(object));
  ++found_;
}

std::optional<script::Outcome> Journal::Take(const std::string& experiment,
                                             const script::ElementSet& altered) {
  const auto found = recorded_.find(KeyOf(experiment, ElementText(altered)));
  if (found == recorded_.end() || found->second.taken == found->second.outcomes.size()) {
    return std::nullopt;
  }
  return found->second.outcomes[found->second.taken++];
}

void Journal::Append(const std::string& experiment, const script::ElementSet& altered,
                     const script::Outcome& outcome, double seconds) {
  json evidence = outcome.evidence.empty() ? json() : json::parse(outcome.evidence);
  WriteLine(json{
      {"experiment", experiment},
      {"altered", ElementText(altered)},
      {"verdict", VerdictName(outcome.verdict)},
      {"executions", outcome.executions},
      {"bad_executions", outcome.bad_executions},
      {"fingerprint", outcome.fingerprint},
      {"evidence", std::move(evidence)},
      {"seconds",
       seconds}}.dump());
}

void Journal::WriteLine(const std::string& line) {
  const std::string text = line + '\n';
  for (size_t written = 0; written < text.size();) {
    const ssize_t count = write(file_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailSystem(path_, "write");
    written += static_cast<size_t>(count);
  }
  if (fsync(file_) != 0) FailSystem(path_, "write");
}

}  // namespace acltape::replayer::bisect

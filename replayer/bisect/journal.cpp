#include "replayer/bisect/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "meaning/options.h"
#include "replayer/bisect/element_text.h"
#include "storage/error.h"

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

bool IsOfAnother(const std::string& path, const std::string& head) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line)) return false;
  const json found = json::parse(line, nullptr, false);
  return found.is_object() && found.contains("acltape_journal") && found.dump() != head;
}

script::Outcome OutcomeOf(const json& line) {
  script::Outcome outcome;
  outcome.verdict = ParseVerdict(line.at("verdict").get<std::string>());
  outcome.executions = line.at("executions").get<int>();
  outcome.bad_executions = line.at("bad_executions").get<int>();
  outcome.fingerprint = line.at("fingerprint").get<std::string>();
  if (!line.at("evidence").is_null()) outcome.evidence = line.at("evidence").dump();
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

Journal::Journal(std::string path, const std::string& subject, bool restart)
    : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) FailSystem(path_, "open");
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    close(file_);
    throw Error(ErrorKind::kUsage, "the journal " + path_ +
                                       " is in use by another bisection; wait for it, or name "
                                       "another place with @journal."_cli);
  }
  try {
    if (restart && ftruncate(file_, 0) != 0) FailSystem(path_, "empty");
    std::string text;
    char buffer[1 << 16];
    for (ssize_t count = 0; (count = read(file_, buffer, sizeof buffer)) != 0;) {
      if (count < 0) FailSystem(path_, "read");
      text.append(buffer, static_cast<size_t>(count));
    }
    const size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
    if (whole != text.size()) {
      if (ftruncate(file_, static_cast<off_t>(whole)) != 0) FailSystem(path_, "mend");
      text.resize(whole);
    }
    if (lseek(file_, 0, SEEK_END) < 0) FailSystem(path_, "write");

    const std::string head = HeadOf(subject);
    if (text.empty()) {
      WriteLine(head);
      return;
    }
    const size_t head_end = text.find('\n');
    const json found = json::parse(text.substr(0, head_end), nullptr, false);
    if (!found.is_object() || !found.contains("acltape_journal")) {
      FailContent(path_, "it does not begin as a journal does");
    }
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
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    ++number;
    try {
      AddLine(text.substr(at, end - at));
    } catch (const std::exception&) {
      FailContent(path_, "line " + std::to_string(number) + " is no experiment");
    }
    at = end + 1;
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
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = write(file_, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailSystem(path_, "write");
    at += static_cast<size_t>(count);
  }
  if (fsync(file_) != 0) FailSystem(path_, "write");
}

}  // namespace acltape::replayer::bisect

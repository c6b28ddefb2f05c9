#include "analyzer/lint/failures.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/program/source_lines.h"
#include "generated/meaning/interface_numbers.h"
#include "meaning/last_errors.h"
#include "meaning/recorded_values.h"
#include "storage/columns.h"
#include "storage/database.h"
#include "storage/nesting.h"

namespace acltape::analyzer::lint {
namespace {

using storage::Statement;
using K = AclCallKind;

// A call that failed, with the calls around it.
struct FailedCall {
  int64_t call_id = 0;
  int64_t parent = 0;
  int64_t thread = 0;
  int64_t process = 0;
  int64_t stream = 0;
  int64_t stack = 0;
  int64_t op_id = 0;
  int32_t status = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  bool launched = false;
  bool of_torch = false;
  std::string name;
};

// The calls around a call.
struct Around {
  int64_t leaf = 0;
  bool leaf_threw = false;
  int64_t stack = 0;  // the innermost call that has one gives it
  std::string op;     // the outermost operator of PyTorch
};

struct Capture {
  int64_t model = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t thread = 0;
  int64_t stream = 0;
};

// Codes of tasks and of the device, which stay until somebody resets the device (rules ERR-03 to
// ERR-05), lie in one range. A launch on a stream that stopped is refused with the code of the
// operator library, and its text holds that of the task.
bool IsOfDeviceWork(const Failure& failure) {
  constexpr int32_t kFirst = meaning::kAclErrorRtLostHeartbeat, kEnd = 508000;
  if (failure.code >= kFirst && failure.code < kEnd) return true;
  return failure.launched && failure.code == meaning::kAclnnErrRuntimeError && failure.capture == 0;
}

// True for calls that end something. Programs make them while they end, and often ignore that
// they fail.
bool EndsSomething(const std::string& function) {
  const AclFunction& row = FindAclFunction(function);
  return row.kind == K::kStreamDestroy || row.kind == K::kEventDestroy ||
         row.kind == K::kNotifyDestroy || row.kind == K::kModelDestroy ||
         row.variant == AclVariant::kFree || function.starts_with("aclFinalize") ||
         function.starts_with("aclrtResetDevice") || function.starts_with("aclrtDestroy");
}

// True for calls that put work on a device or make a graph of it.
bool IsWork(const std::string& dialect, const std::string& function) {
  if (dialect == "aten" || dialect == "aclnn") return true;
  const K kind = FindAclFunction(function).kind;
  return IsDeviceWork(kind) || kind == K::kExecute || kind == K::kExecuteNow ||
         kind == K::kCaptureBegin;
}

// True for calls without which values or graphs are not what the program meant.
bool LosesWork(const Failure& failure) {
  if (failure.code == 0) return false;
  // A first phase asks whether the library takes the arguments.
  if (failure.function.starts_with("aclnn")) return failure.launched;
  const K kind = FindAclFunction(failure.function).kind;
  return IsWork("", failure.function) || kind == K::kCaptureEnd || kind == K::kUpdateBegin ||
         kind == K::kUpdateEnd || kind == K::kGroupBegin || kind == K::kGroupEnd ||
         kind == K::kEventRecord || kind == K::kEventWait;
}

class FailureSearch {
 public:
  explicit FailureSearch(const storage::Reader& trace)
      : trace_(trace),
        database_(trace.database()),
        has_texts_(storage::HasColumns(trace, "failure_text", "call_id,text")) {}

  Failures Run() {
    const std::vector<FailedCall> calls = LoadFailedCalls();
    if (calls.empty()) return std::move(result_);
    const std::string code = trace_.Meta("exit_code", "0"), signal = trace_.Meta("signal", "0");
    if (signal != "0" && !signal.empty()) {
      result_.ended = "the program was ended by signal " + signal;
    } else if (code != "0" && !code.empty()) {
      result_.ended = "the program ended with code " + code;
    }
    LoadCaptures();
    LoadWork(calls);
    lines_.emplace(trace_);
    std::unordered_set<int64_t> told;  // leaves whose failure a call of the interface tells
    std::vector<std::pair<const FailedCall*, Around>> rows;
    for (const FailedCall& call : calls) {
      rows.emplace_back(&call, CallsAround(call));
      if (!call.of_torch && rows.back().second.leaf != 0) told.insert(rows.back().second.leaf);
    }
    for (const auto& [call, around] : rows) {
      if (call->of_torch && told.contains(call->call_id)) continue;
      Add(*call, around);
    }
    // An operator of PyTorch throws because of work that another thread launched, so it comes last.
    for (const bool thrown : {false, true}) {
      for (size_t i = 0; i < result_.rows.size(); ++i) {
        if ((result_.rows[i].code == 0) == thrown) Judge(i);
      }
    }
    JudgeHowItWentOn();
    for (Failure& failure : result_.rows) {
      if (failure.role == FailureRole::kEnded || failure.role == FailureRole::kWentOn) {
        FindOperator(failure);
      }
    }
    return std::move(result_);
  }

 private:
  std::vector<FailedCall> LoadFailedCalls() {
    std::vector<FailedCall> calls;
    // A status of -1 is that of a call that had not ended when its thread did.
    Statement rows(database_,
                   "SELECT x.call_id, c.parent_id, c.thread_id, t.process_id, x.stream_id, "
                   "coalesce(c.stack_id, x.stack_id), s.op_id, x.status, o.dialect, o.name, "
                   "x.launch_ns, c.begin_ns, c.duration_ns FROM call_extra x JOIN call_row c ON "
                   "c.call_id = x.call_id "
                   "JOIN signature s ON s.signature_id = c.signature_id "
                   "JOIN op o ON o.op_id = s.op_id JOIN thread t ON t.thread_id = c.thread_id "
                   "WHERE x.status IS NOT NULL AND x.status NOT IN (0, -1) ORDER BY x.call_id");
    while (rows.Next()) {
      if (trace_.process() != 0 && rows.Integer(3) != trace_.process()) continue;
      const std::string dialect(rows.Text(8));
      if (!dialect.starts_with("acl") && dialect != "aten") continue;
      FailedCall call;
      call.call_id = rows.Integer(0);
      call.parent = rows.Integer(1);
      call.thread = rows.Integer(2);
      call.process = rows.Integer(3);
      call.stream = rows.Integer(4);
      call.stack = rows.Integer(5);
      call.op_id = rows.Integer(6);
      call.status = static_cast<int32_t>(rows.Integer(7));
      call.of_torch = dialect == "aten";
      call.name = rows.Text(9);
      call.launched = !rows.IsNull(10);
      call.begin_ns = rows.Integer(11);
      call.end_ns = call.begin_ns + rows.Integer(12);
      if (!meaning::TellsOfEarlierFailure(call.name)) calls.push_back(std::move(call));
    }
    return calls;
  }

  void LoadCaptures() {
    if (!storage::HasColumns(trace_, "model", "model_id,begin_call,end_call,destroy_call")) return;
    Statement rows(database_,
                   "SELECT m.model_id, m.begin_call, coalesce(m.end_call, m.destroy_call), "
                   "c.thread_id, x.stream_id FROM model m JOIN call_row c ON c.call_id = "
                   "m.begin_call LEFT JOIN call_extra x ON x.call_id = m.begin_call");
    while (rows.Next()) {
      Capture& capture = captures_.emplace_back();
      capture.model = rows.Integer(0);
      capture.begin = rows.Integer(1);
      capture.end = rows.IsNull(2) ? INT64_MAX : rows.Integer(2);
      capture.thread = rows.Integer(3);
      capture.stream = rows.Integer(4);
    }
  }

  // One look at all calls: the last work of each process, tried and done, and the last success of
  // each function that failed.
  void LoadWork(const std::vector<FailedCall>& calls) {
    std::set<int64_t> failed_ops;
    for (const FailedCall& call : calls) failed_ops.insert(call.op_id);
    std::unordered_map<int64_t, bool> wanted;  // by op: is it work?
    Statement ops(database_, "SELECT op_id, dialect, name FROM op");
    while (ops.Next()) {
      const std::string dialect(ops.Text(1));
      const bool known = dialect == "aten" || dialect.starts_with("acl");
      const bool work = known && IsWork(dialect, std::string(ops.Text(2)));
      if (work || failed_ops.contains(ops.Integer(0))) wanted.emplace(ops.Integer(0), work);
    }
    Statement rows(database_,
                   "SELECT c.call_id, c.parent_id, c.thread_id, t.process_id, "
                   "coalesce(c.stack_id, x.stack_id), s.op_id, coalesce(x.status, 0), c.bits "
                   "FROM call_row c JOIN signature s ON s.signature_id = c.signature_id "
                   "JOIN thread t ON t.thread_id = c.thread_id "
                   "LEFT JOIN call_extra x ON x.call_id = c.call_id ORDER BY c.call_id");
    while (rows.Next()) {
      const auto row = wanted.find(rows.Integer(5));
      if (row == wanted.end()) continue;
      const int64_t call_id = rows.Integer(0), process = rows.Integer(3);
      const bool succeeded = rows.Integer(6) == 0;
      if (row->second) {
        last_tried_[process] = call_id;
        if (succeeded) last_work_[process] = call_id;
      }
      if (!succeeded || !failed_ops.contains(row->first)) continue;
      last_success_[{row->first, rows.Integer(2), rows.Integer(1), 0}] = call_id;
      last_success_[{row->first, rows.Integer(2), 0, rows.Integer(4)}] = call_id;
    }
  }

  Around CallsAround(const FailedCall& call) {
    Around around;
    around.stack = call.stack;
    if (call.parent == 0 && !call.of_torch && call.name != "") return around;
    Statement up(
        database_,
        "WITH RECURSIVE up(call_id, depth) AS (SELECT ?1, 0 UNION ALL SELECT c.parent_id, "
        "depth + 1 FROM up JOIN call_row c ON c.call_id = up.call_id WHERE c.parent_id > 0 AND "
        "depth < ?2) "
        "SELECT c.call_id, c.thread_id, coalesce(c.stack_id, x.stack_id), c.bits, "
        "coalesce(x.status, 0), o.dialect, o.name FROM up JOIN call_row c ON c.call_id = "
        "up.call_id LEFT JOIN call_extra x ON x.call_id = c.call_id JOIN signature s ON "
        "s.signature_id = c.signature_id JOIN op o ON o.op_id = s.op_id ORDER BY depth");
    up.Bind(1, call.call_id);
    up.Bind(2, storage::kMostAround);
    while (up.Next()) {
      if (around.stack == 0) around.stack = up.Integer(2);
      const std::string name(up.Text(6));
      if (up.Text(5) != "aten" || name.find("::") == std::string::npos) continue;
      around.op = name;
      const bool leaf = (up.Integer(3) & meaning::kLeafBit) != 0 && up.Integer(1) == call.thread;
      if (!leaf || around.leaf != 0) continue;
      around.leaf = up.Integer(0);
      around.leaf_threw = up.Integer(4) == 1;
    }
    return around;
  }

  void Add(const FailedCall& call, const Around& around) {
    const Key key = {call.process, call.op_id, call.status, around.stack, around.op};
    const auto [entry, created] = by_key_.try_emplace(key, result_.rows.size());
    if (!created) {
      Failure& known = result_.rows[entry->second];
      last_of_[entry->second] = call;
      if (around.leaf == 0 || around.leaf != last_leaf_[entry->second]) ++known.count;
      last_leaf_[entry->second] = around.leaf;
      known.leaf_threw = known.leaf_threw || around.leaf_threw;
      return;
    }
    Failure& failure = result_.rows.emplace_back();
    last_of_.push_back(call);
    last_leaf_.push_back(around.leaf);
    failure.call_id = call.call_id;
    failure.process = call.process;
    failure.thread = call.thread;
    failure.stream = call.stream;
    failure.leaf = around.leaf;
    failure.leaf_threw = around.leaf_threw;
    failure.launched = call.launched;
    failure.code = call.of_torch ? 0 : call.status;
    if (!call.of_torch) failure.function = call.name;
    failure.op = around.op;
    failure.where = lines_->OfStack(around.stack);
    failure.text = TextOf(call.call_id);
    for (const Capture& capture : captures_) {
      if (call.call_id <= capture.begin || call.call_id > capture.end) continue;
      if (call.thread != capture.thread && (call.stream == 0 || call.stream != capture.stream)) {
        continue;
      }
      failure.capture = capture.model;
      failure.capture_begin = capture.begin;
    }
  }

  std::string TextOf(int64_t call_id) {
    if (!has_texts_) return "";
    Statement text(database_, "SELECT text FROM failure_text WHERE call_id = ?");
    text.Bind(1, call_id);
    if (!text.Next()) return "";
    std::string one(text.Text(0));
    while (!one.empty() && (one.back() == '\n' || one.back() == ' ')) one.pop_back();
    return one;
  }

  bool SucceededLater(const FailedCall& call, int64_t leaf) const {
    const auto success = last_success_.find(
        leaf != 0 ? std::make_tuple(call.op_id, call.thread, call.parent, int64_t{0})
                  : std::make_tuple(call.op_id, call.thread, int64_t{0}, call.stack));
    return success != last_success_.end() && success->second > call.call_id;
  }

  // True if `failure` follows from `first`.
  bool Follows(size_t first, size_t failure) const {
    const Failure& before = result_.rows[first];
    const Failure& after = result_.rows[failure];
    if (before.process != after.process) return false;
    if (after.code == 0) {
      return IsOfDeviceWork(before) && last_of_[first].begin_ns <= last_of_[failure].end_ns;
    }
    if (first >= failure) return false;
    if (IsOfDeviceWork(before) && IsOfDeviceWork(after)) return true;
    if (before.leaf != 0 && before.leaf == after.leaf) return true;
    return before.capture != 0 && before.capture == after.capture;
  }

  // The failure from which it follows, -1: none.
  int64_t CauseOf(size_t index) const {
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      if (i != index && judged_[i] && result_.rows[i].role == FailureRole::kEnded &&
          Follows(i, index)) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  }

  bool IsTeardown(const Failure& failure) const {
    const auto tried = last_tried_.find(failure.process);
    if (tried != last_tried_.end() && failure.call_id < tried->second) return false;
    if (failure.leaf != 0 || failure.code == 0) return false;
    return EndsSomething(failure.function) || (lines_->any() && failure.where.empty());
  }

  void Judge(size_t index) {
    Failure& failure = result_.rows[index];
    judged_.resize(result_.rows.size());
    failure.cause = CauseOf(index);
    judged_[index] = true;
    // The failure of device work may show at the end of the program alone.
    if (IsTeardown(failure) && (failure.cause >= 0 || !IsOfDeviceWork(failure))) {
      failure.role = FailureRole::kTeardown;
    } else if (failure.cause >= 0) {
      failure.role = FailureRole::kConsequence;
    } else if (!IsOfDeviceWork(failure)) {
      const bool leaf_went_on = failure.leaf != 0 && !failure.leaf_threw;
      const bool retried = !failure.leaf_threw && SucceededLater(last_of_[index], failure.leaf);
      if (leaf_went_on || retried) failure.role = FailureRole::kHandled;
    }
  }

  // Tells what the program did after a failure and after all that follows from it.
  void JudgeHowItWentOn() {
    std::vector<int64_t> last;
    for (const FailedCall& call : last_of_) last.push_back(call.call_id);
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      const Failure& failure = result_.rows[i];
      if (failure.role != FailureRole::kConsequence) continue;
      int64_t& of_cause = last[static_cast<size_t>(failure.cause)];
      of_cause = std::max(of_cause, last[i]);
    }
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      Failure& failure = result_.rows[i];
      if (failure.role != FailureRole::kEnded) continue;
      const auto work = last_work_.find(failure.process);
      if (work == last_work_.end() || work->second <= last[i]) continue;
      // An exception that the program caught is one that it expected, unless work is lost with it
      // that it cannot do again.
      const bool lost = IsOfDeviceWork(failure) || failure.capture != 0 ||
                        (!failure.leaf_threw && LosesWork(failure));
      failure.role = lost ? FailureRole::kWentOn : FailureRole::kHandled;
    }
  }

  // The operator that the device's text names: among the calls since the last wait that went well,
  // else in the graph that was executed last.
  void FindOperator(Failure& failure) {
    size_t begin = failure.text.find("aclnn");
    if (failure.text.compare(std::min(begin, failure.text.size()), failure.function.size(),
                             failure.function) == 0) {
      begin = failure.text.find("aclnn", begin + 1);
    }
    if (begin == std::string::npos) return;
    size_t end = begin;
    while (end < failure.text.size() &&
           std::isalnum(static_cast<unsigned char>(failure.text[end]))) {
      ++end;
    }
    const std::string name = failure.text.substr(begin, end - begin);
    const int64_t waited = LastWait(failure);
    Statement calls(
        database_,
        "SELECT max(c.call_id), count(*), max(coalesce(x.model_id, 0)) FROM call_row c "
        "JOIN signature s USING (signature_id) JOIN op o USING (op_id) JOIN thread t "
        "USING (thread_id) LEFT JOIN call_extra x USING (call_id) WHERE o.name = ?1 AND "
        "c.call_id BETWEEN ?2 AND ?3 AND t.process_id = ?4 AND coalesce(x.model_id, 0) = "
        "0 AND coalesce(x.status, 0) = 0");
    calls.Bind(1, name);
    calls.Bind(2, waited);
    calls.Bind(3, failure.call_id);
    calls.Bind(4, failure.process);
    if (calls.Next() && calls.Integer(1) > 0) return Name(failure, name, calls);
    const auto [execution, model] = LastExecution(failure);
    if (execution == 0) return;
    Statement captured(database_,
                       "SELECT max(c.call_id), count(*) FROM call_row c JOIN signature s USING "
                       "(signature_id) JOIN op o USING (op_id) JOIN call_extra x USING (call_id) "
                       "WHERE o.name = ?1 AND x.model_id = ?2");
    captured.Bind(1, name);
    captured.Bind(2, model);
    if (!captured.Next() || captured.Integer(1) == 0) return;
    failure.execution = execution;
    Name(failure, name, captured);
  }

  void Name(Failure& failure, const std::string& name, Statement& calls) {
    failure.operator_call = calls.Integer(0);
    failure.operator_candidates = calls.Integer(1);
    failure.operator_name = name;
    FailedCall call;
    call.call_id = failure.operator_call;
    failure.operator_where = lines_->OfStack(CallsAround(call).stack);
  }

  std::vector<int64_t> OpsOf(bool (*wanted)(K kind)) {
    std::vector<int64_t> ids;
    Statement ops(database_, "SELECT op_id, name FROM op WHERE dialect LIKE 'acl%'");
    while (ops.Next()) {
      if (wanted(FindAclFunction(std::string(ops.Text(1))).kind)) ids.push_back(ops.Integer(0));
    }
    return ids;
  }

  // The last call before the failure of one of these functions that went well; 0: none.
  int64_t LastOf(const std::vector<int64_t>& ops, const Failure& failure) {
    int64_t last = 0;
    Statement row(
        database_,
        "SELECT max(c.call_id) FROM call_row c JOIN signature s USING (signature_id) JOIN "
        "thread t USING (thread_id) LEFT JOIN call_extra x USING (call_id) WHERE s.op_id = "
        "?1 AND c.call_id < ?2 AND t.process_id = ?3 AND coalesce(x.status, 0) = 0");
    for (const int64_t op : ops) {
      row.Reset();
      row.Bind(1, op);
      row.Bind(2, failure.call_id);
      row.Bind(3, failure.process);
      if (row.Next()) last = std::max(last, row.Integer(0));
    }
    return last;
  }

  int64_t LastWait(const Failure& failure) {
    return LastOf(OpsOf([](K kind) { return kind == K::kDeviceSync || kind == K::kStreamSync; }),
                  failure);
  }

  std::pair<int64_t, int64_t> LastExecution(const Failure& failure) {
    const int64_t call = LastOf(
        OpsOf([](K kind) { return kind == K::kExecute || kind == K::kExecuteNow; }), failure);
    if (call == 0) return {0, 0};
    Statement model(database_,
                    "SELECT integer FROM argument WHERE call_id = ? AND name = 'modelRI'");
    model.Bind(1, call);
    return {call, model.Next() ? model.Integer(0) : 0};
  }

  using Key = std::tuple<int64_t, int64_t, int32_t, int64_t, std::string>;

  const storage::Reader& trace_;
  storage::Database& database_;
  const bool has_texts_;
  std::optional<SourceLines> lines_;
  std::vector<Capture> captures_;
  std::map<int64_t, int64_t> last_tried_;  // work, by process
  std::map<int64_t, int64_t> last_work_;   // work that was done, by process
  // By operator, thread, and the call around it or its line.
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int64_t> last_success_;
  std::map<Key, size_t> by_key_;
  std::vector<FailedCall> last_of_;  // the last call of each row
  std::vector<int64_t> last_leaf_;
  std::vector<bool> judged_;
  Failures result_;
};

}  // namespace

std::string_view FailureRoleName(FailureRole role) {
  constexpr std::string_view kNames[] = {"first failure", "the program went on", "handled",
                                         "consequence", "while the program ended"};
  return kNames[static_cast<size_t>(role)];
}

const Failure* Failures::First() const {
  for (const Failure& failure : rows) {
    if (failure.role == FailureRole::kEnded || failure.role == FailureRole::kWentOn) {
      return &failure;
    }
  }
  return nullptr;
}

bool Failures::InCapture() const {
  const Failure* first = First();
  return first != nullptr && first->capture != 0;
}

Failures FindFailures(const storage::Reader& trace) { return FailureSearch(trace).Run(); }

std::string FailureSentence(const Failures& failures, const Failure& failure) {
  std::string text = failure.Subject();
  if (!failure.where.empty()) text += " at " + failure.where;
  text += " failed";
  if (failure.count > 1) text += " " + std::to_string(failure.count) + " times";
  if (failure.capture != 0) {
    text += " in the capture that call " + std::to_string(failure.capture_begin) + " began";
  }
  if (failure.code != 0) {
    text += ": ";
    text += failure.op.empty() ? "it" : failure.function;
    text += " gave " + std::to_string(failure.code);
  }
  text += failure.text.empty() ? "; what the device said is not known"
                               : ", the device said \"" + failure.text + "\"";
  if (failure.operator_call != 0) {
    text += failure.operator_candidates == 1
                ? "; the operator is call "
                : "; the operator is one of " + std::to_string(failure.operator_candidates) +
                      " calls, the last is call ";
    text += std::to_string(failure.operator_call) + " " + failure.operator_name;
    if (!failure.operator_where.empty()) text += " at " + failure.operator_where;
    if (failure.execution != 0) {
      text += ", in the graph that call " + std::to_string(failure.execution) + " executed";
    }
  }
  if (failure.role == FailureRole::kWentOn) text += "; the program went on without it";
  if (failure.role == FailureRole::kHandled) text += "; the program went on";
  if (failure.role == FailureRole::kEnded) {
    text += "; " + (failures.ended.empty() ? "no work of the program follows" : failures.ended);
  }
  return text;
}

}  // namespace acltape::analyzer::lint

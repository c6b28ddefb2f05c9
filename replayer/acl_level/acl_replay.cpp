#include "replayer/acl_level/acl_replay.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "meaning/acl_operators.h"
#include "meaning/options.h"
#include "replayer/acl_level/acl_coverage.h"
#include "replayer/acl_level/flat_walk.h"
#include "replayer/acl_level/graph_sink.h"
#include "replayer/acl_level/recorded_walk.h"
#include "replayer/session.h"
#include "storage/results.h"

namespace acltape::replayer::acl_level {
namespace {

// Operators that communicate are left out for the reason of collectives.
std::string_view WhyLeftOut(const std::string& name) {
  return analyzer::FindAclFunction(meaning::Communicates(name) ? "HcclAllReduce" : name).reason;
}

class AclReplayer {
 public:
  AclReplayer(const storage::Reader& trace, const ReplayOptions& options, storage::Results* results,
              AclVerifier::Digests* collect, const AclVerifier::Digests* reference)
      : trace_(trace), options_(options), results_(results), session_(trace, options, report_) {
    if (session_.program.has_results) return;
    if (collect != nullptr || reference != nullptr) analyzer::NameResults(session_.program);
    session_.verifier.UseDigests(collect, reference);
  }

  bool has_results() const { return session_.program.has_results; }

  ReplayReport Run() {
    Describe();
    OpenRun();
    session_.verifier.log().WriteTo(results_, report_.run_id);
    try {
      session_.binder.Probe();
      Replay();
    } catch (const UnsupportedOperator& cause) {
      throw Error(ErrorKind::kDevice, cause.what());
    }
    AddNotes();
    WriteNotes(report_.notes, results_);
    if (results_ != nullptr) {
      results_->FinishRun(report_.run_id, report_.ExitCode());
      results_->Commit();
    }
    return std::move(report_);
  }

 private:
  void Replay() {
    std::unique_ptr<WorkSink> sink;
    GraphSink* graphs = nullptr;
    if (options_.mode == Mode::kCaptured) {
      auto made = std::make_unique<GraphSink>(session_);
      graphs = made.get();
      sink = std::move(made);
    } else {
      sink = std::make_unique<EagerSink>(session_);
    }
    CountCalls(session_.program, session_.ranks != nullptr, report_.acl);
    if (options_.streams == Streams::kFlat) {
      FlatWalk(session_, *sink).Run();
    } else {
      std::optional<WaitEdits> edits;
      if (!options_.edits.empty()) {
        AddedWaits waits = FindAddedWaits(trace_, options_.edits);
        report_.acl.waits_added = waits.count;
        edits.emplace(session_, std::move(waits));
      }
      RecordedWalk(session_, *sink, edits ? &*edits : nullptr).Run();
    }
    if (graphs != nullptr) graphs->Describe(report_.capture, report_.acl);
    report_.coverage = CoverageOf(
        session_.program,
        [this](const analyzer::AclCall& call) {
          // An operator that was left out of a graph computed in the recording, and nothing tells
          // of it.
          const bool left_out = call.kind() == analyzer::AclCallKind::kOperator &&
                                analyzer::IsCapturedCollective(call);
          const bool given = call.TakesFromRanks() && session_.ranks == nullptr && !left_out;
          return !session_.binder.IsRefused(call) && !given;
        },
        session_.verifier.compared());
  }

  void Describe() {
    const analyzer::AclProgram& program = session_.program;
    report_.device = session_.device.description();
    report_.device_bytes = session_.rooms.device_bytes();
    report_.acl.calls = static_cast<int64_t>(program.calls.size());
    report_.acl.streams = static_cast<int64_t>(program.streams.size());
    report_.acl.events = static_cast<int64_t>(program.trace->Events().size());
    report_.acl.models = static_cast<int64_t>(program.models.size());
    for (const analyzer::AclCall& call : program.calls) {
      const bool issued = call.fate == analyzer::AclFate::kIssued;
      if (issued && call.kind() == analyzer::AclCallKind::kOperator) ++report_.acl.operators;
    }
    report_.leaves = report_.acl.operators;
    report_.steps = static_cast<int64_t>(trace_.Steps().size());
  }

  void OpenRun() {
    if (results_ == nullptr) return;
    storage::Run run;
    run.mode = options_.mode == Mode::kEager ? "eager" : "captured";
    run.device = report_.device;
    run.options =
        nlohmann::json{{"outputs", options_.outputs == Outputs::kLeaf ? "leaf" : "step"},
                       {"streams", options_.streams == Streams::kFlat ? "flat" : "recorded"},
                       {"standard", options_.standard ? options_.standard->given() : "bitwise"}}
            .dump();
    report_.run_id = results_->AddRun(run);
  }

  void Add(const char* rule, const char* severity, int64_t call_id, int64_t count,
           std::string message) {
    Note note;
    note.rule = rule;
    note.severity = severity;
    note.call_id = call_id;
    note.count = count;
    note.message = std::move(message);
    report_.notes.push_back(std::move(note));
  }

  int64_t FirstCall(const std::function<bool(const analyzer::AclCall&)>& wanted) const {
    for (const analyzer::AclCall& call : session_.program.calls) {
      if (wanted(call)) return call.call.call_id;
    }
    return 0;
  }

  void AddNotes() {
    const analyzer::AclProgram& program = session_.program;
    for (const auto& [name, refusal] : session_.binder.refusals()) {
      report_.substituted += refusal.calls;
      Add("LOWER-SUBSTITUTED", "notice", refusal.first_call, refusal.calls,
          name + " takes its recorded results: " + refusal.reason);
    }
    for (const auto& [name, count] : report_.acl.unknown) {
      Add("ACL-UNKNOWN", "error",
          FirstCall([&name = name](const auto& call) { return call.op->FullName() == name; }),
          count,
          "the replay does not know " + name +
              ": the call was left out, and what depends on it may differ");
    }
    for (const auto& [name, count] : report_.acl.left_out) {
      // Nobody follows what depends on other calls that are left out.
      const bool followed =
          FirstCall([&name = name](const auto& call) {
            return call.op->FullName() == name && analyzer::IsCapturedCollective(call);
          }) != 0;
      Add("ACL-LEFT-OUT", "warning",
          FirstCall([&name = name](const auto& call) { return call.op->FullName() == name; }),
          count,
          name +
              (followed && report_.acl.in_doubt > 0
                   ? " was left out, and bytes that depend on it were not compared: "
                   : " was left out, and what depends on it may differ: ") +
              std::string(WhyLeftOut(name)));
    }
    if (report_.acl.unreleased_waits > 0) {
      Add("ACL-VALUE-WAIT", "notice", FirstCall([&](const auto& call) {
            return program.unreleased_waits.count(call.index) != 0;
          }),
          report_.acl.unreleased_waits,
          "the stream waited for a value in memory that no recorded call writes; the replay has "
          "it at once: work that relied on the wait is ordered by other waits alone");
    }
    if (report_.acl.host_functions > 0) {
      Add("ACL-HOST-FUNCTION", "notice", FirstCall([](const auto& call) {
            return call.kind() == analyzer::AclCallKind::kHostFunction;
          }),
          report_.acl.host_functions,
          "the program's own functions in stream order are not in the trace and were left out: "
          "device work that reads what they write, or that they hold back, may differ");
    }
    if (report_.acl.waits_added > 0 && report_.differing > 0) {
      Add("ACL-EDITED", "notice", report_.mismatches.empty() ? 0 : report_.mismatches[0].call_id,
          report_.differing,
          "the recording was made without the added waits: results that raced then differ from "
          "these; replay @streams leaves shows those of an order without races"_cli);
    }
    if (program.devices > 1) {
      Add("ACL-DEVICES", "notice", 0, program.devices,
          "the program used " + std::to_string(program.devices) +
              " devices; the replay runs all of it on one");
    }
  }

  const storage::Reader& trace_;
  const ReplayOptions& options_;
  storage::Results* results_;
  ReplayReport report_;
  AclSession session_;
};

}  // namespace

ReplayReport ReplayAcl(const storage::Reader& trace, const ReplayOptions& options,
                       storage::Results* results) {
  if (options.data == Data::kSynthesised) {
    throw Error(ErrorKind::kUsage,
                "a program recorded at the ACL level replays from recorded values only; leave "
                "@data at recorded"_cli);
  }
  // Without recorded results a captured replay is compared with an eager one.
  AclVerifier::Digests reference;
  if (options.mode == Mode::kCaptured) {
    ReplayOptions eager = options;
    eager.mode = Mode::kEager;
    AclReplayer replayer(trace, eager, nullptr, &reference, nullptr);
    if (!replayer.has_results()) replayer.Run();
  }
  return AclReplayer(trace, options, results, nullptr, &reference).Run();
}

}  // namespace acltape::replayer::acl_level

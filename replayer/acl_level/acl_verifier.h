// Compares the results of an ACL program in a replay with those in the recording: outputs of
// operators, bytes that copies brought to the host, and buffers after the execution of a graph.
#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "replayer/acl_level/known_bytes.h"
#include "replayer/acl_level/task.h"
#include "replayer/values/comparison_log.h"

namespace acltape::replayer::acl_level {

class AclVerifier {
 public:
  using GetPayload = std::function<Bytes(const std::string& digest)>;
  AclVerifier(const analyzer::AclProgram& program, const Rooms& rooms, const ReplayOptions& options,
              ReplayReport& report, GetPayload get_payload)
      : program_(program),
        rooms_(rooms),
        options_(options),
        log_(options, report),
        get_payload_(std::move(get_payload)) {}

  ComparisonLog& log() { return log_; }

  // Says what to do with results that have no digest in the recording: `collect` is filled, and
  // `reference`, which another replay has filled, is compared with. Either may be null. The key is
  // call, position and tensor.
  using Digests = std::map<std::tuple<int64_t, int, int64_t>, std::string>;
  void UseDigests(Digests* collect, const Digests* reference) {
    collect_ = collect;
    reference_ = reference;
  }

  // Returns the contents to take right after a call. `known` must already contain the bytes that
  // the call writes.
  std::vector<Take> TakesOf(const analyzer::AclCall& call, KnownBytes& known);
  // Returns the contents to take after the execution of a graph. `written` is the bytes of each
  // buffer that the graph writes.
  std::vector<Take> TakesOf(const analyzer::AclCall& execution, KnownBytes& known,
                            KnownBytes& written);

  // Compares one taken content. `bytes` is the content that was at the take's address.
  void Check(const Take& take, const uint8_t* bytes);

  // The recorded results that were compared.
  const std::unordered_set<const storage::Snapshot*>& compared() const { return compared_; }

 private:
  // Leaves the bytes that are in doubt out of a take. Returns false if none are left. Results that
  // the recording lacks are compared with those of another replay, which left out the same.
  bool LeaveOutDoubt(Take& take, const analyzer::ByteSet& doubt, int64_t first);
  void Note(const Take& take, const ComparedOutput& output, const ComparisonOutcome& outcome);
  Take WholeRange(const analyzer::AclCall& call, const storage::Snapshot& snapshot) const;
  bool SetRows(Take& take) const;
  bool LeftOut(const analyzer::AclCall& call);
  void CheckReference(const Take& take, const uint8_t* bytes, ComparedOutput output);
  void CheckPart(const Take& take, const uint8_t* bytes, const ComparedOutput& output);

  const analyzer::AclProgram& program_;
  const Rooms& rooms_;
  const ReplayOptions& options_;
  ComparisonLog log_;
  GetPayload get_payload_;
  std::unordered_set<const storage::Snapshot*> compared_;
  Digests* collect_ = nullptr;
  const Digests* reference_ = nullptr;
};

}  // namespace acltape::replayer::acl_level

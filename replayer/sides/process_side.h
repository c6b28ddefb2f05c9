// A side in a process of its own. This is needed because two ACL libraries define the same symbols
// and use the same device, and because an environment belongs to a process.
//
// The process is started at its first use, and again after it has died or failed, because a failure
// may leave its device unusable.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "replayer/sides/call_protocol.h"
#include "replayer/sides/call_side.h"

namespace acltape::replayer::sides {

struct ProcessSideOptions {
  std::string name;                      // kGoodSide or kBadSide
  std::string library;                   // the same as for Device
  std::vector<std::string> environment;  // all variables, as "NAME=VALUE"
  // The program that is started. It gets the words below and then "--socket", "N", and must call
  // ServeCalls(N).
  std::string executable = "/proc/self/exe";
  std::vector<std::string> words{"acltape", "serve-calls"};
  // A process is ended if an answer takes longer than this.
  std::optional<std::chrono::milliseconds> time_limit;
  // True: the output of its libraries to stdout is discarded. False: it goes to stderr.
  bool quiet = true;
};

class ProcessSide final : public CallSide {
 public:
  explicit ProcessSide(ProcessSideOptions options);
  ~ProcessSide() override;
  ProcessSide(const ProcessSide&) = delete;
  ProcessSide& operator=(const ProcessSide&) = delete;

  // Starts the process if it does not run. Throws SideFailed if it cannot open its library.
  std::string Description() override;
  void Prepare(const std::vector<int64_t>& block_bytes) override;
  std::vector<SideResult> Perform(const std::vector<SideCommand>& commands) override;

  int starts() const { return starts_; }

 private:
  void Start();
  // Sends a request and reads the answer with `decode`.
  template <typename Decode>
  auto Ask(CallMessage request, const std::string& body, CallMessage answer,
           const std::string& doing, const Decode& decode);
  // Ends the process. Returns the end of a sentence that says how it ended.
  std::string End(bool give_time);

  const ProcessSideOptions options_;
  pid_t child_ = -1;
  int socket_ = -1;
  int starts_ = 0;
  std::string description_;
};

}  // namespace acltape::replayer::sides

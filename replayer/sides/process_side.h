// A side in a process of its own, because two ACL libraries define the same symbols and want the
// same device, and because an environment belongs to a process.
//
// The process is started when it is first needed, and again after it has died or failed: what fails
// on a device may leave it unusable.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "replayer/sides/call_protocol.h"
#include "replayer/sides/call_side.h"

namespace acltape::replayer {

struct ProcessSideOptions {
  std::string name;                      // kGoodSide or kBadSide
  std::string library;                   // as for Device
  std::vector<std::string> environment;  // all of it, "NAME=VALUE"
  // Started with the words below and "--socket", "N" behind them; it then calls ServeCalls(N).
  std::string executable = "/proc/self/exe";
  std::vector<std::string> words{"acltape", "serve-calls"};
  // A process that takes longer for an answer is ended.
  std::optional<std::chrono::milliseconds> time_limit;
  bool quiet = true;  // what its libraries print to stdout goes nowhere, else to stderr
};

class ProcessSide final : public CallSide {
 public:
  explicit ProcessSide(ProcessSideOptions options);
  ~ProcessSide() override;
  ProcessSide(const ProcessSide&) = delete;
  ProcessSide& operator=(const ProcessSide&) = delete;

  // Starts the process. Throws SideFailed when it cannot open its library.
  std::string Description() override;
  void Prepare(const std::vector<int64_t>& block_bytes) override;
  std::vector<SideResult> Perform(const std::vector<SideCommand>& commands) override;

  int starts() const { return starts_; }

 private:
  void Start();
  // Asks, and reads the answer with `decode`.
  template <typename Decode>
  auto Ask(CallMessage request, const std::string& body, CallMessage answer,
           const std::string& doing, const Decode& decode);
  // Ends the process; a sentence's rest that says how it ended.
  std::string End(bool give_time);

  const ProcessSideOptions options_;
  pid_t child_ = -1;
  int socket_ = -1;
  int starts_ = 0;
  std::string description_;
};

}  // namespace acltape::replayer

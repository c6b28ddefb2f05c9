// Executes a script that captures nothing on two sides: each launch on the one it is given to.
//
// The script is walked in program order. For every byte of its memory is known which content it
// should have, and which one each side has; right before a launch the side gets what the launch
// reads and it lacks: from the contents of the script, or from the other side, by way of this
// process. So a side gets only what its calls need, keeps what does not change from run to run, and
// is idle when no call is given to it. Commands are held back until a result is needed, so that
// consecutive calls of one side are one request.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replayer/script/run_script.h"
#include "replayer/script/script.h"
#include "replayer/sides/byte_versions.h"
#include "replayer/sides/call_side.h"

namespace acltape::replayer {

class SidedRun {
 public:
  static constexpr int kGood = 0;
  static constexpr int kBad = 1;

  // Sides by number; they must outlive it. The script holds what an eager step consists of:
  // uploads, copies, launches and observations. What a launch reads and writes, the operator table
  // says.
  SidedRun(Script script, std::array<CallSide*, 2> sides);

  struct Watcher {
    // The side that a call runs on.
    std::function<int(int64_t call_id)> side_of;
    // Whether the content behind a digest is wanted; empty: never. `take` then gets it, packed.
    std::function<bool(int observation, int output, const std::string& digest)> wants;
    OutputSink take;
  };
  // What one execution of the script gave. Throws SideFailed; the next run begins with sides that
  // hold nothing.
  std::vector<Observed> Run(const Watcher& watcher);

  const Script& script() const { return script_; }
  // Bytes that went to the sides and came from them, in all runs.
  int64_t bytes_put() const { return bytes_put_; }
  int64_t bytes_taken() const { return bytes_taken_; }

 private:
  struct Held {
    bool prepared = false;
    std::vector<ByteVersions> blocks;  // what each block holds
    std::vector<SideCommand> pending;
    std::vector<std::function<void(SideResult&&)>> wanted;  // of the pending commands
    int64_t pending_bytes = 0;
  };

  void Begin();
  void Do(const UploadTo& upload);
  void Do(const UploadStrided& upload);
  void Do(const CopyBytes& copy);
  void Do(const Launch& launch);
  void Do(const Observe& observe);
  void Do(const SynchronizeAll&) {}
  template <typename T>
  void Do(const T&);

  // The side gets these bytes unless it has them.
  void Bring(int side, int block, int64_t first, int64_t end);
  // Whether this process has the content; else a side wrote it.
  bool IsHeldHere(const ByteVersion& version) const;
  PutBytes Source(int block, const ByteVersions::Range& range);
  int HolderOf(int block, const ByteVersions::Range& range) const;
  // What these bytes should be now, from wherever it is.
  std::vector<uint8_t> Fetch(int block, int64_t first, int64_t end);
  void NoteWritten(int side, int block, int64_t first, int64_t end);
  ByteVersion Keep(Bytes content, int64_t first_byte);
  void Send(int side, SideCommand command, int64_t bytes,
            std::function<void(SideResult&&)> wanted = nullptr);
  void Flush(int side);

  const Script script_;
  const std::array<CallSide*, 2> sides_;
  std::array<Held, 2> held_;
  std::vector<ByteVersions> truth_;  // by block
  std::map<int64_t, Bytes> kept_;    // contents that this process put together, by id
  int64_t last_id_ = 0;
  const Watcher* watcher_ = nullptr;
  int current_ = kGood;  // the side of the latest launch
  std::vector<Observed> observed_;
  int64_t bytes_put_ = 0;
  int64_t bytes_taken_ = 0;
};

}  // namespace acltape::replayer

// Executes a script without captures on two sides. Each launch runs on the side that it is given
// to.
//
// The script is executed in program order. The run knows the right content of every byte of its
// memory, and the content that each side has. Right before a launch, the side gets the inputs that
// it lacks, from the contents of the script or, through this process, from the other side. So a
// side gets only the inputs of its calls, keeps contents that do not change between runs, and is
// idle if no call is given to it. Commands are collected until a result is needed, so that
// consecutive calls of one side become one request.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replayer/engine/script.h"
#include "replayer/script/run_script.h"
#include "replayer/sides/byte_versions.h"
#include "replayer/sides/call_side.h"

namespace acltape::replayer::sides {

class SidedRun {
 public:
  static constexpr int kGood = 0;
  static constexpr int kBad = 1;

  // `sides` are by number and must outlive the object. The script must hold only the operations of
  // an eager step: uploads, copies, launches and observations. The operator table tells the tensors
  // that a launch reads and writes.
  SidedRun(Script script, std::array<CallSide*, 2> sides);

  struct Watcher {
    // Returns the side that a call runs on.
    std::function<int(int64_t call_id)> side_of;
    // Returns true if the content with this digest is wanted; `take` then gets it, packed. Empty:
    // no content is wanted.
    std::function<bool(int observation, int output, const std::string& digest)> wants;
    script::OutputSink take;
  };
  // Executes the script once and returns its observations. Throws SideFailed. The next run then
  // begins with empty sides.
  std::vector<script::Observed> Run(const Watcher& watcher);

  const Script& script() const { return script_; }
  // The number of bytes that were sent to the sides, and that came from them, in all runs.
  int64_t bytes_put() const { return bytes_put_; }
  int64_t bytes_taken() const { return bytes_taken_; }

 private:
  struct Held {
    bool prepared = false;
    std::vector<ByteVersions> blocks;  // the content of each block
    std::vector<SideCommand> pending;
    std::vector<std::function<void(SideResult&&)>> wanted;  // takes the results of pending commands
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

  // Sends these bytes to a side unless it has them.
  void Bring(int side, int block, int64_t first, int64_t end);
  // True if this process has the content. Otherwise a side wrote it.
  bool IsHeldHere(const ByteVersion& version) const;
  PutBytes Source(int block, const ByteVersions::Range& range);
  int HolderOf(int block, const ByteVersions::Range& range) const;
  // Returns the right content of these bytes, from wherever it is.
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
  std::map<int64_t, Bytes> kept_;    // contents that this process composed, by id
  int64_t last_id_ = 0;
  const Watcher* watcher_ = nullptr;
  int current_ = kGood;  // the side of the latest launch
  std::vector<script::Observed> observed_;
  int64_t bytes_put_ = 0;
  int64_t bytes_taken_ = 0;
};

}  // namespace acltape::replayer::sides

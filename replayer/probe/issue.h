// Issues one recorded call again as it was: one function per kind of call, a table by kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzer/work.h"
#include "replayer/device.h"
#include "replayer/probe/objects.h"

namespace acltape::replayer {

class Issuer {
 public:
  Issuer(Device& device, const analyzer::Work& work, ProbeObjects& objects)
      : device_(device), work_(work), objects_(objects) {}

  // Makes the call in this thread and returns its code. Returns nothing if the probe does not know
  // the call or the device cannot run the operator. With `pin` the host memory of a copy is pinned.
  std::optional<int32_t> Issue(size_t call, bool pin);

 private:
  struct Row;
  static const Row kRows[];
  using Arguments = std::vector<storage::Argument>;
  // The parts of a recorded call that issuing needs.
  struct Call {
    size_t index = 0;
    const analyzer::WorkForm* form = nullptr;
    Arguments arguments;
    aclrtStream stream = nullptr;  // null where it names none
    bool pin = false;
    int64_t Integer(int position) const {
      return position < 0 || position >= static_cast<int>(arguments.size())
                 ? 0
                 : arguments[position].integer;
    }
    int64_t object() const { return Integer(form->function->object); }
    int64_t detail() const { return Integer(form->function->detail); }
  };

  std::optional<int32_t> Operator(const Call& call);
  std::optional<int32_t> Copy(const Call& call);
  std::optional<int32_t> Copy2d(const Call& call);
  std::optional<int32_t> Fill(const Call& call);
  std::optional<int32_t> Fill32(const Call& call);
  std::optional<int32_t> ValueWrite(const Call& call);
  std::optional<int32_t> StreamCreate(const Call& call);
  std::optional<int32_t> StreamDestroy(const Call& call);
  std::optional<int32_t> EventCreate(const Call& call);
  std::optional<int32_t> EventDestroy(const Call& call);
  std::optional<int32_t> EventRecord(const Call& call);
  std::optional<int32_t> EventWait(const Call& call);
  std::optional<int32_t> EventReset(const Call& call);
  std::optional<int32_t> DeviceSync(const Call& call);
  std::optional<int32_t> StreamSync(const Call& call);
  std::optional<int32_t> EventSync(const Call& call);
  std::optional<int32_t> StreamQuery(const Call& call);
  std::optional<int32_t> EventQuery(const Call& call);
  std::optional<int32_t> EventTime(const Call& call);
  std::optional<int32_t> CaptureBegin(const Call& call);
  std::optional<int32_t> CaptureEnd(const Call& call);
  std::optional<int32_t> GroupBegin(const Call& call);
  std::optional<int32_t> GroupEnd(const Call& call);
  std::optional<int32_t> UpdateBegin(const Call& call);
  std::optional<int32_t> UpdateEnd(const Call& call);
  std::optional<int32_t> Execute(const Call& call);
  std::optional<int32_t> HostFunction(const Call& call);
  std::optional<int32_t> Memory(const Call& call);
  std::optional<int32_t> Other(const Call& call);

  Device& device_;
  const analyzer::Work& work_;
  ProbeObjects& objects_;
};

}  // namespace acltape::replayer

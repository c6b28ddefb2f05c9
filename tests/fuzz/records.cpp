// Records of a thread (recorder/wire/records.h), taken by a log whose trace is in memory.
#include <cstdlib>
#include <memory>

#include "recorder/collector/arena_owner.h"
#include "recorder/collector/ring_log.h"
#include "storage/writer.h"
#include "tests/fuzz/reader.h"
#include "tests/recorder/producer.h"

namespace acltape::fuzz {
namespace {

// One trace serves all inputs of the process; each is the log of another thread.
struct Trace {
  Trace() {
    char name[] = "/tmp/acltape-fuzz-XXXXXX";
    folder = mkdtemp(name);
    collector::ArenaOptions options;
    options.slots = 1;
    arena = std::make_unique<collector::ArenaOwner>(options);
    arena->header().next_call_id.store(100);
    arena->header().next_buffer_id.store(100);
    writer = std::make_unique<storage::Writer>(folder + "/t.db", storage::Writer::Options{});
    builder =
        std::make_unique<collector::TraceBuilder>(*writer, arena->header(), arena->clock(), "step");
  }
  ~Trace() {
    builder.reset();
    writer.reset();
    static_cast<void>(!std::system(("rm -r " + folder).c_str()));
  }
  std::string folder;
  std::unique_ptr<collector::ArenaOwner> arena;
  std::unique_ptr<storage::Writer> writer;
  std::unique_ptr<collector::TraceBuilder> builder;
};

Trace& OpenTrace() {
  static std::unique_ptr<Trace> trace;
  static int inputs = 0;
  if (trace == nullptr || ++inputs % 2000 == 0) {
    trace.reset();
    trace = std::make_unique<Trace>();
  }
  return *trace;
}

template <typename R>
std::string RecordOf(wire::RecordKind kind, R record, const std::string& rest = "") {
  record.header = {kind, 0, wire::RoundUp8(sizeof(R) + rest.size())};
  std::string bytes(record.header.bytes, '\0');
  std::memcpy(bytes.data(), &record, sizeof(R));
  std::memcpy(bytes.data() + sizeof(R), rest.data(), rest.size());
  return bytes;
}

}  // namespace

std::vector<std::string> SoundInputs() {
  using test::Producer;
  using wire::RecordKind;
  std::string all =
      RecordOf(RecordKind::kThreadName, wire::TextRecord{}, Producer::Texts({"main"}));
  all += RecordOf(RecordKind::kOp, wire::OpRecord{{}, 0, 0},
                  Producer::Texts({"aten::add", "Tensor", Producer::kAddSchema}));
  all +=
      RecordOf(RecordKind::kMeta, wire::TextRecord{}, Producer::Texts({"torch_version", "1.13"}));
  all += RecordOf(RecordKind::kWindow, wire::WindowRecord{{}, 1, 1, 3, 0});
  all += RecordOf(RecordKind::kScopeBegin, wire::ScopeBeginRecord{{}, 2, 1},
                  Producer::Texts({"step"}));
  wire::FrameBeginRecord frame{};
  frame.call_id = 1;
  all += RecordOf(RecordKind::kFrameBegin, frame);
  all += RecordOf(RecordKind::kBufferBirth, wire::BufferBirthRecord{{}, 1, 4096, 16, 3, 1});
  const std::string signature = Producer::AddSignature();
  const uint64_t slots[] = {1, 1, 1};
  const std::string buffers(reinterpret_cast<const char*>(slots), sizeof slots);
  wire::CallRecord call{};
  call.call_id = 2;
  call.parent_id = 1;
  call.signature_bytes = static_cast<uint32_t>(signature.size());
  call.slot_count = 3;
  all += RecordOf(RecordKind::kCall, call, signature + buffers);
  all += RecordOf(RecordKind::kData, wire::DataRecord{{}, 7, 8, 100, 0, 60}, std::string(60, 'x'));
  const std::string layout = test::Signature().Tensor(0, {4}).bytes;
  wire::SnapshotRecord snapshot{};
  snapshot.call_id = 2;
  snapshot.buffer_id = 1;
  snapshot.bytes = 16;
  snapshot.layout_bytes = static_cast<uint32_t>(layout.size());
  all += RecordOf(RecordKind::kSnapshot, snapshot, layout);
  all += RecordOf(RecordKind::kLedger, wire::LedgerRecord{{}, 3, 1, 0},
                  Producer::Texts({"kind", "subject", "cause", "remedy"}));
  all += RecordOf(RecordKind::kFrameEnd, wire::FrameEndRecord{{}, 1, 9});
  all += RecordOf(RecordKind::kScopeEnd, wire::ScopeEndRecord{{}, 9, 3});
  wire::AclCallRecord acl{};
  acl.call_id = 3;
  acl.signature_bytes = static_cast<uint32_t>(signature.size());
  acl.stream_id = 1;
  acl.slot_count = 3;
  acl.launched = 1;
  all += RecordOf(RecordKind::kAclCall, acl, signature + buffers);
  wire::HandleRecord handle{};
  handle.handle_id = 1;
  all += RecordOf(RecordKind::kHandle, handle);
  all += RecordOf(RecordKind::kPlace, wire::PlaceRecord{{}, 2, 17},
                  Producer::Texts({"train.py", "main"}));
  all += RecordOf(RecordKind::kDeviceSpan, wire::DeviceSpanRecord{{}, 3, 5000, 700, 1, 20});
  all += RecordOf(RecordKind::kFailureText, wire::FailureTextRecord{{}, 3},
                  Producer::Texts({"no room"}));
  all += RecordOf(RecordKind::kCommunicator, wire::CommunicatorRecord{{}, 2, 0x1000, 1, 2},
                  Producer::Texts({"world"}));
  all += RecordOf(RecordKind::kBufferDeath, wire::BufferDeathRecord{{}, 1, 9, 0});
  return {all};
}

}  // namespace acltape::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  acltape::fuzz::Trace& trace = acltape::fuzz::OpenTrace();
  static uint32_t thread = 0;
  acltape::collector::RingLog log(*trace.builder, 0, {1, ++thread, "program", {}});
  auto bytes = std::as_bytes(std::span(data, size));
  while (!bytes.empty()) bytes = bytes.subspan(log.Consume(bytes));
  log.Finish(1);
  return 0;
}

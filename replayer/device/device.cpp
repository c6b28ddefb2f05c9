#include "replayer/device/device.h"

#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/checked_row.h"

namespace acltape::replayer {
namespace {

// The newest version of the soft device's generator of random numbers that this acltape knows.
constexpr uint64_t kNewestGenerator = 2;

std::unique_ptr<acl::Library> OpenLibrary(const std::string& path) {
  acl::LibraryOptions options;
  options.path = path;
  try {
    auto library = std::make_unique<acl::Library>(options);
    library->Require({"aclInit", "aclrtSetDevice", "aclrtResetDevice", "aclrtCreateStream",
                      "aclrtDestroyStream", "aclrtSynchronizeStream", "aclrtMalloc", "aclrtFree",
                      "aclrtMallocHost", "aclrtFreeHost", "aclrtMemcpyAsync", "aclCreateTensor",
                      "aclDestroyTensor", "aclCreateScalar", "aclDestroyScalar"});
    return library;
  } catch (const acl::LoadError& cause) {
    throw Error(ErrorKind::kDevice, cause.what());
  }
}

}  // namespace

Block::Block(Device& device, Kind kind, size_t bytes)
    : device_(&device), kind_(kind), bytes_(bytes) {
  if (bytes == 0) return;
  void* address = nullptr;
  if (kind == Kind::kDevice) {
    const std::string call = "aclrtMalloc of " + std::to_string(bytes) + " bytes";
    device.Check(device.api().aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST),
                 call.c_str());
  } else {
    const std::string call = "aclrtMallocHost of " + std::to_string(bytes) + " bytes";
    device.Check(device.api().aclrtMallocHost(&address, bytes), call.c_str());
  }
  data_ = static_cast<uint8_t*>(address);
}

Block::~Block() {
  if (data_ == nullptr) return;
  // aclrtFree does not wait for queued tasks that use the memory (rule MEM-04). After an exception
  // there may be such tasks.
  device_->work().EndStream(device_->stream());
  if (kind_ == Kind::kDevice) {
    device_->api().aclrtFree(data_);
  } else {
    device_->api().aclrtFreeHost(data_);
  }
}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Block::Fill(int value) const {
  if (bytes_ != 0) device_->work().Fill(data_, bytes_, value, bytes_, kNow).Check();
}

Event::Event(const Device& device, uint32_t flags, std::string_view maker) : device_(&device) {
  aclrtEvent event = nullptr;
  device.work().CreateEvent(maker, flags, &event).Check();
  event_ = OwnedEvent(device.work(), event);
}

void Event::Record() const { Record(device_->stream()); }

void Event::Record(aclrtStream stream) const { device_->work().Record(get(), stream).Check(); }

void Event::MakeWait(aclrtStream stream) const { device_->work().Wait(get(), stream).Check(); }

void Event::Wait() const { device_->work().WaitForEvent(get()).Check(); }

double Event::NanosecondsSince(const Event& earlier) const {
  float milliseconds = 0;
  device_->Check(device_->api().aclrtEventElapsedTime(&milliseconds, earlier.get(), get()),
                 "aclrtEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e6;
}

Device::Device(const std::string& library, bool saturates)
    : library_(OpenLibrary(library)), work_(api()) {
  const int code = api().aclInit(nullptr);
  if (code != ACL_ERROR_REPEAT_INITIALIZE) Check(code, "aclInit");
  Check(api().aclrtSetDevice(0), "aclrtSetDevice");
  // The mode holds for streams that are created after it.
  if (saturates) {
    Check(api().aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), "aclrtSetDeviceSatMode");
  }
  stream_ = MakeStream(work_);
}

Device::~Device() {
  for (const OwnedStream& stream : side_streams_) work_.EndStream(stream.get());
  side_streams_.clear();
  work_.EndStream(stream());
  stream_ = {};
  api().aclrtResetDevice(0);
}

aclrtStream Device::SideStream(size_t index) {
  while (side_streams_.size() <= index) side_streams_.push_back(MakeStream(work_));
  return side_streams_[index].get();
}

std::string Device::description() const {
  const char* soc = api().aclrtGetSocName == nullptr ? nullptr : api().aclrtGetSocName();
  return library_->description() + (soc == nullptr ? "" : std::string(", ") + soc);
}

void Device::Check(int code, const char* call) const { CallResult(api(), call, code).Check(); }

void Device::Upload(void* device, const void* pinned, size_t bytes, aclrtStream stream) const {
  if (bytes == 0) return;
  work_.Copy(device, bytes, pinned, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream).Check();
}

void Device::Download(void* pinned, const void* device, size_t bytes) const {
  if (bytes == 0) return;
  work_.Copy(pinned, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream()).Check();
}

void Device::Copy(void* to, const void* from, size_t bytes, aclrtStream stream) const {
  if (bytes == 0 || to == from) return;
  work_.Copy(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream).Check();
}

std::string RecordedThreads(const storage::Reader& trace, const std::string& key) {
  std::string text = trace.Meta(key);
  if (text.empty()) return text;
  int64_t threads = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || threads < 1 ||
      threads > kMostRecordedThreads) {
    throw Error(ErrorKind::kTrace, "'" + trace.path() + "' cannot be used: the row '" + key +
                                       "' of its table meta has " + storage::ShownValue(text) +
                                       ", where a number of threads from 1 to " +
                                       std::to_string(kMostRecordedThreads) +
                                       " is expected; record the program again");
  }
  return text;
}

std::string RecordedGenerator(const storage::Reader& trace) {
  const std::string text = trace.Meta("soft_device");
  if (text.empty()) return "1";
  const auto facts = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (facts.is_object() && facts.contains("generator") && facts["generator"].is_number_unsigned()) {
    const auto version = facts["generator"].get<uint64_t>();
    if (version >= 1 && version <= kNewestGenerator) return std::to_string(version);
  }
  throw Error(ErrorKind::kTrace, "'" + trace.path() +
                                     "' cannot be used: the row 'soft_device' of " +
                                     "its table meta has " + storage::ShownValue(text) +
                                     ", where an object with a generator from 1 to " +
                                     std::to_string(kNewestGenerator) +
                                     " is expected; replay it with the acltape that recorded it");
}

bool RecordedSaturation(const storage::Reader& trace) {
  constexpr std::string_view kFunction = "aclrtSetDeviceSatMode";
  if (trace.Meta("results_saturate") == "1") return true;
  if (trace.database().Integer("SELECT count(*) FROM op WHERE name = 'aclrtSetDeviceSatMode'") ==
      0) {
    return false;
  }
  const storage::Reader acl(trace.path(), {trace.part().process, storage::Level::kAcl});
  bool saturates = false;
  acl.VisitCalls(/*leaves_only=*/false, [&](const storage::Call& call) {
    if (call.status != 0 || acl.GetOp(call.op_id).name != kFunction) return;
    const std::vector<storage::Argument> arguments = acl.Arguments(call);
    saturates |= !arguments.empty() && arguments[0].integer == ACL_RT_OVERFLOW_MODE_SATURATION;
  });
  return saturates;
}

void AdoptRecordedSettings(const storage::Reader& trace) {
  const std::string threads = RecordedThreads(trace, "torch_threads");
  const std::string blas = RecordedThreads(trace, "blas_threads");
  constexpr int kKeep = 0;  // do not overwrite what the user set
  setenv("ACLTAPE_SOFT_GENERATOR", RecordedGenerator(trace).c_str(), kKeep);
  setenv("ACLTAPE_TRIALS", "0", kKeep);  // the calls ran before
  setenv(kBlocks, kExactBlocks, kKeep);
  if (!blas.empty()) setenv("OPENBLAS_NUM_THREADS", blas.c_str(), kKeep);
  if (threads.empty()) return;
  setenv("OMP_NUM_THREADS", threads.c_str(), kKeep);
  setenv("ACLTAPE_SOFT_THREADS", threads.c_str(), kKeep);
}

}  // namespace acltape::replayer

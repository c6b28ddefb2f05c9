#include "runtime/device/profile.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace acltape::device {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t fallback, uint64_t least, uint64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  errno = 0;
  char* end = nullptr;
  unsigned long long value = std::strtoull(text, &end, 10);
  uint64_t scale = 1;
  if (*end == 'K' || *end == 'M' || *end == 'G') {
    scale = *end == 'K' ? uint64_t{1} << 10 : *end == 'M' ? uint64_t{1} << 20 : uint64_t{1} << 30;
    ++end;
  }
  if (errno != 0 || end == text || *end != '\0' || value > most / scale || value * scale < least) {
    std::fprintf(stderr, "acltape soft device: %s=%s is not a number from %llu to %llu; ignored\n",
                 name, text, static_cast<unsigned long long>(least),
                 static_cast<unsigned long long>(most));
    return fallback;
  }
  return value * scale;
}

uint32_t Count(const char* name, uint32_t fallback, uint32_t least = 1) {
  return static_cast<uint32_t>(FromEnvironment(name, fallback, least, 1u << 20));
}

Profile Read() {
  Profile profile;
  profile.devices = static_cast<uint32_t>(FromEnvironment("ACLTAPE_SOFT_DEVICES", 1, 1, 64));
  profile.streams = Count("ACLTAPE_SOFT_STREAMS", profile.streams);
  profile.events = Count("ACLTAPE_SOFT_EVENTS", profile.events);
  profile.notifies = Count("ACLTAPE_SOFT_NOTIFIES", profile.notifies);
  profile.models = Count("ACLTAPE_SOFT_MODELS", profile.models);
  profile.memory = FromEnvironment("ACLTAPE_SOFT_MEMORY", profile.memory, 1, uint64_t{1} << 46);
  profile.jitter_seed = FromEnvironment("ACLTAPE_SOFT_JITTER", 0, 0, UINT64_MAX);
  profile.poison = FromEnvironment("ACLTAPE_SOFT_POISON", 0, 0, 1) != 0;
  const char* info = std::getenv("ACLTAPE_SOFT_CAPTURE_INFO");
  profile.capture_info_from_source = info != nullptr && std::strcmp(info, "source") == 0;
  return profile;
}

}  // namespace

const Profile& GetProfile() {
  static const Profile profile = Read();
  return profile;
}

}  // namespace acltape::device

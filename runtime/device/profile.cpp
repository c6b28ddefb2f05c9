#include "runtime/device/profile.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

// The number that a macro of the interface stands for, as a word of a setting.
#define ACLTAPE_WORD(macro) ACLTAPE_LITERAL(macro)
#define ACLTAPE_LITERAL(number) #number

namespace acltape::device {
namespace {

// One setting: a number in a range or one of some words, whose index is stored. In a file it is
// written `key = value`, in the environment ACLTAPE_SOFT_KEY=value.
struct Setting {
  const char* key;
  void (*store)(Profile& profile, uint64_t value);
  uint64_t least = 0;
  uint64_t most = 0;
  const char* words[4] = {};
};

constexpr uint64_t kCounts = uint64_t{1} << 20;

// The values of the setting `toolkit`, in the order of its words.
constexpr Version kToolkits[] = {{"9", "0", "0"}, {"9", "1", "0"}};

constexpr Setting kSettings[] = {
    {"devices", [](Profile& p, uint64_t v) { p.devices = static_cast<uint32_t>(v); }, 1, 64},
    {"streams", [](Profile& p, uint64_t v) { p.streams = static_cast<uint32_t>(v); }, 1, kCounts},
    {"events", [](Profile& p, uint64_t v) { p.events = static_cast<uint32_t>(v); }, 1, kCounts},
    {"notifies", [](Profile& p, uint64_t v) { p.notifies = static_cast<uint32_t>(v); }, 1, kCounts},
    {"models", [](Profile& p, uint64_t v) { p.models = static_cast<uint32_t>(v); }, 1, kCounts},
    {"queues", [](Profile& p, uint64_t v) { p.queues = static_cast<uint32_t>(v); }, 1, kCounts},
    {"updates", [](Profile& p, uint64_t v) { p.updates = static_cast<uint32_t>(v); }, 1, kCounts},
    {"queue_depth", [](Profile& p, uint64_t v) { p.queue_depth = static_cast<uint32_t>(v); }, 4,
     kCounts},
    {"memory", [](Profile& p, uint64_t v) { p.memory = v; }, 1, uint64_t{1} << 46},
    {"host_memory", [](Profile& p, uint64_t v) { p.host_memory = v; }, 0, uint64_t{1} << 46},
    {"cube_cores", [](Profile& p, uint64_t v) { p.cube_cores = static_cast<uint32_t>(v); }, 1,
     1024},
    {"vector_cores", [](Profile& p, uint64_t v) { p.vector_cores = static_cast<uint32_t>(v); }, 1,
     1024},
    {"ai_cpu_cores", [](Profile& p, uint64_t v) { p.ai_cpu_cores = static_cast<uint32_t>(v); }, 1,
     1024},
    {"l2_bytes", [](Profile& p, uint64_t v) { p.l2_bytes = v; }, 1, uint64_t{1} << 40},
    {"jitter", [](Profile& p, uint64_t v) { p.jitter_seed = v; }, 0, UINT64_MAX},
    {"order", [](Profile& p, uint64_t v) { p.order = static_cast<uint32_t>(v); }, 0, 1024},
    {"poison", [](Profile& p, uint64_t v) { p.poison = v != 0; }, 0, 1},
    {"blocks", [](Profile& p, uint64_t v) { p.exact_blocks = v == 1; }, 0, 0, {"product", "exact"}},
    {"compute", [](Profile& p, uint64_t v) { p.computes = v == 0; }, 0, 0, {"all", "nothing"}},
    {"generator", [](Profile& p, uint64_t v) { p.generator = static_cast<uint32_t>(v); }, 1, 2},
    {"release_wait",
     [](Profile& p, uint64_t v) { p.release_wait_ns = static_cast<int64_t>(v) * 1000000; }, 0,
     uint64_t{1} << 32},
    {"synchronize_wait",
     [](Profile& p, uint64_t v) { p.synchronize_wait_ns = static_cast<int64_t>(v) * 1000000; }, 0,
     uint64_t{1} << 32},
    {"finalize",
     [](Profile& p, uint64_t v) { p.finalize_counts = v == 1; },
     0,
     0,
     {"once", "counted"}},
    {"synchronize_device",
     [](Profile& p, uint64_t v) { p.synchronize_whole_device = v == 1; },
     0,
     0,
     {"context", "device"}},
    {"no_stream_code",
     [](Profile& p, uint64_t v) {
       p.no_stream_code =
           v == 2 ? ACL_ERROR_RT_RESOURCE_ALLOC_FAIL : ACL_ERROR_RT_NO_STREAM_RESOURCE;
       p.no_capture_stream_code =
           v == 1 ? ACL_ERROR_RT_NO_STREAM_RESOURCE : ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
     },
     0,
     0,
     {"by_call", ACLTAPE_WORD(ACL_ERROR_RT_NO_STREAM_RESOURCE),
      ACLTAPE_WORD(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)}},
    {"ex_events",
     [](Profile& p, uint64_t v) { p.ex_events_counted = v == 1; },
     0,
     0,
     {"unlimited", "counted"}},
    {"peer_copy",
     [](Profile& p, uint64_t v) { p.peer_copy = static_cast<PeerCopy>(v); },
     0,
     0,
     {"refuse", "task_error", "allow"}},
    {"toolkit", [](Profile& p, uint64_t v) { p.toolkit = kToolkits[v]; }, 0, 0, {"9.0.0", "9.1.0"}},
    // Says which libopapi.so the program gets. The command that starts it chooses the folder.
    {"exports", [](Profile&, uint64_t) {}, 0, 0, {"all", "kernels"}},
    {"capture_info",
     [](Profile& p, uint64_t v) { p.capture_info_from_source = v == 1; },
     0,
     0,
     {"all", "source"}},
};

struct BuiltIn {
  const char* name;
  void (*apply)(Profile& profile);
};

constexpr BuiltIn kBuiltIns[] = {
    {"server", [](Profile&) {}},
    // It has the same limits. Its further functions are in the library in lib64/newer.
    {"newer", [](Profile&) {}},
    // A device that is never waited for.
    {"host_only", [](Profile& p) { p.computes = false; }},
    // The lowest limits that the rules name for any product class.
    {"small",
     [](Profile& p) {
       p.soc_name = "Ascend310B1";
       p.streams = 512;
       p.events = 1023;
       p.notifies = 1024;
       p.models = 512;
       p.queue_depth = 1024;
       p.memory = uint64_t{4} << 30;
       p.cube_cores = 1;
       p.vector_cores = 1;
       p.ai_cpu_cores = 3;
       p.l2_bytes = uint64_t{2} << 20;
     }},
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

// A number with an optional suffix K, M or G (powers of 1024).
bool ParseNumber(const std::string& text, uint64_t least, uint64_t most, uint64_t* result) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  errno = 0;
  char* end = nullptr;
  unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  uint64_t scale = 1;
  if (*end == 'K' || *end == 'M' || *end == 'G') {
    scale = *end == 'K' ? uint64_t{1} << 10 : *end == 'M' ? uint64_t{1} << 20 : uint64_t{1} << 30;
    ++end;
  }
  if (errno != 0 || *end != '\0' || value > most / scale || value * scale < least) return false;
  *result = value * scale;
  return true;
}

// Stores the value or reports why not; `where` names the variable or the line.
void Apply(const Setting& setting, const std::string& value, const std::string& where,
           Profile* profile) {
  if (setting.words[0] == nullptr) {
    uint64_t number = 0;
    if (ParseNumber(value, setting.least, setting.most, &number)) {
      setting.store(*profile, number);
      return;
    }
    std::fprintf(stderr, "acltape soft device: %s=%s is not a number from %llu to %llu; ignored\n",
                 where.c_str(), value.c_str(), static_cast<unsigned long long>(setting.least),
                 static_cast<unsigned long long>(setting.most));
    return;
  }
  std::string accepted;
  for (uint64_t i = 0; i < std::size(setting.words) && setting.words[i] != nullptr; ++i) {
    if (value == setting.words[i]) {
      setting.store(*profile, i);
      return;
    }
    accepted += (accepted.empty() ? "" : ", ") + std::string(setting.words[i]);
  }
  std::fprintf(stderr, "acltape soft device: %s=%s is none of %s; ignored\n", where.c_str(),
               value.c_str(), accepted.c_str());
}

const Setting* FindSetting(std::string_view key) {
  for (const Setting& setting : kSettings) {
    if (key == setting.key) return &setting;
  }
  return nullptr;
}

void ReportUnknownKey(const std::string& where, std::string_view key) {
  std::string accepted = "soc_name, fault";
  for (const Setting& setting : kSettings) accepted += std::string(", ") + setting.key;
  std::fprintf(stderr, "acltape soft device: %s: there is no setting \"%.*s\"; accepted are %s\n",
               where.c_str(), static_cast<int>(key.size()), key.data(), accepted.c_str());
}

// Lines `key = value`; # begins a comment line.
void ReadLines(std::istream& file, const std::string& path, Profile* profile) {
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::string_view text = Trim(line);
    if (text.empty() || text[0] == '#') continue;
    std::string where = path + ":" + std::to_string(number);
    size_t sign = text.find('=');
    if (sign == std::string_view::npos) {
      std::fprintf(stderr,
                   "acltape soft device: %s: \"%s\" is not of the form key = value; ignored\n",
                   where.c_str(), std::string(text).c_str());
      continue;
    }
    std::string_view key = Trim(text.substr(0, sign));
    std::string value(Trim(text.substr(sign + 1)));
    if (key == "soc_name") {
      profile->soc_name = value;
    } else if (key == "fault") {
      profile->faults.push_back(value);
    } else if (const Setting* setting = FindSetting(key)) {
      Apply(*setting, value, where + ": " + setting->key, profile);
    } else {
      ReportUnknownKey(where, key);
    }
  }
}

void ReadProfile(const std::string& name, Profile* profile) {
  for (const BuiltIn& built_in : kBuiltIns) {
    if (name == built_in.name) {
      built_in.apply(*profile);
      return;
    }
  }
  std::ifstream file(name);
  if (file && file.peek() != std::ifstream::traits_type::eof()) {
    ReadLines(file, name, profile);
    return;
  }
  std::string known;
  for (const BuiltIn& built_in : kBuiltIns) {
    known += (known.empty() ? "" : ", ") + std::string(built_in.name);
  }
  std::fprintf(
      stderr,
      "acltape soft device: ACLTAPE_SOFT_PROFILE=%s is neither a built-in profile (%s) nor "
      "a file that can be read; the profile server is used\n",
      name.c_str(), known.c_str());
}

const char* FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// "2,3": the program's devices 0 and 1 are those. The first number that is none of the machine's,
// or stands there twice, ends the list.
void ChooseDevices(const char* list, Profile* profile) {
  std::vector<uint32_t> chosen;
  for (const char* at = list; std::isdigit(static_cast<unsigned char>(*at)) != 0;) {
    char* end = nullptr;
    const auto number = static_cast<uint32_t>(std::strtoul(at, &end, 10));
    if (number >= profile->devices || std::count(chosen.begin(), chosen.end(), number) != 0) break;
    chosen.push_back(number);
    if (*end != ',') break;
    at = end + 1;
  }
  if (chosen.empty()) {
    std::fprintf(stderr,
                 "acltape soft device: ASCEND_RT_VISIBLE_DEVICES=%s names no device from 0 to %u; "
                 "ignored\n",
                 list, profile->devices - 1);
    return;
  }
  profile->devices = static_cast<uint32_t>(chosen.size());
  profile->visible = std::move(chosen);
}

Profile Read() {
  Profile profile;
  if (const char* name = FromEnvironment("ACLTAPE_SOFT_PROFILE")) ReadProfile(name, &profile);
  if (const char* name = FromEnvironment("ACLTAPE_SOFT_SOC_NAME")) profile.soc_name = name;
  for (const Setting& setting : kSettings) {
    std::string variable = "ACLTAPE_SOFT_";
    for (const char* c = setting.key; *c != '\0'; ++c) {
      variable += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
    }
    if (const char* value = FromEnvironment(variable)) Apply(setting, value, variable, &profile);
  }
  if (const char* list = FromEnvironment("ASCEND_RT_VISIBLE_DEVICES"))
    ChooseDevices(list, &profile);
  return profile;
}

}  // namespace

const Profile& GetProfile() {
  static const Profile& profile = *new Profile(Read());  // late calls at exit read it too
  return profile;
}

}  // namespace acltape::device

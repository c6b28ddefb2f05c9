#include "runtime/device/fault.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>

#include "base/hash.h"
#include "runtime/device/error.h"
#include "runtime/device/profile.h"

namespace acltape::device {

constinit std::atomic<FaultState> fault_state{FaultState::kUnread};

namespace {

enum class Effect : uint8_t { kNone, kReturn, kFail, kFlip, kDelay, kJitter };

struct Fault {
  std::string text;
  std::string target;       // name of a call or operator; a final * stands for any rest
  bool of_stream = false;   // the target is a stream
  int64_t stream = -1;      // its number; -1: every stream
  uint64_t nth = 0;         // only this occurrence; 0: all
  uint64_t every = 0;       // every so many occurrences; 0: all
  double probability = -1;  // applies to each occurrence; negative: always
  uint64_t seed = 1;
  Effect effect = Effect::kNone;
  aclError code = 0;
  uint64_t bit = 0;
  uint64_t output = 0;
  uint64_t time_ns = 0;
  std::atomic<uint64_t> seen{0};
};

// Never destroyed: tasks run late.
std::deque<Fault>& Faults() {
  static std::deque<Fault>& faults = *new std::deque<Fault>;
  return faults;
}

bool ParseNumber(const std::string& text, uint64_t most, uint64_t* value) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  errno = 0;
  char* end = nullptr;
  *value = std::strtoull(text.c_str(), &end, 10);
  return errno == 0 && *end == '\0' && *value <= most;
}

bool ParseCode(const std::string& text, aclError* code) {
  uint64_t value = 0;
  if (!ParseNumber(text, 999999, &value) || value == 0) return false;
  *code = static_cast<aclError>(value);
  return true;
}

bool ParseTime(const std::string& text, uint64_t* nanoseconds) {
  struct Unit {
    const char* suffix;
    uint64_t scale;
  };
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  for (const Unit& unit : kUnits) {
    std::string suffix = unit.suffix;
    uint64_t value = 0;
    if (text.size() > suffix.size() && text.ends_with(suffix) &&
        ParseNumber(text.substr(0, text.size() - suffix.size()), 3600000000000 / unit.scale,
                    &value)) {
      *nanoseconds = value * unit.scale;
      return true;
    }
  }
  return false;
}

bool ParseProbability(const std::string& text, double* probability) {
  char* end = nullptr;
  *probability = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && *probability >= 0 && *probability <= 1;
}

template <Effect kEffect>
bool SetEffect(Fault& fault) {
  if (fault.effect != Effect::kNone) return false;
  fault.effect = kEffect;
  return true;
}

// A word that may follow the target. All are key=value, except #N.
struct Word {
  const char* key;
  bool (*parse)(Fault& fault, const std::string& value);
};

constexpr Word kWords[] = {
    {"#",
     [](Fault& f, const std::string& v) { return ParseNumber(v, UINT64_MAX, &f.nth) && f.nth; }},
    {"every=",
     [](Fault& f, const std::string& v) {
       return ParseNumber(v, UINT64_MAX, &f.every) && f.every;
     }},
    {"p=", [](Fault& f, const std::string& v) { return ParseProbability(v, &f.probability); }},
    {"seed=", [](Fault& f, const std::string& v) { return ParseNumber(v, UINT64_MAX, &f.seed); }},
    {"return=",
     [](Fault& f, const std::string& v) {
       return SetEffect<Effect::kReturn>(f) && ParseCode(v, &f.code);
     }},
    {"fail=",
     [](Fault& f, const std::string& v) {
       return SetEffect<Effect::kFail>(f) && ParseCode(v, &f.code);
     }},
    {"flip=",
     [](Fault& f, const std::string& v) {
       return SetEffect<Effect::kFlip>(f) && ParseNumber(v, UINT64_MAX, &f.bit);
     }},
    {"output=", [](Fault& f, const std::string& v) { return ParseNumber(v, 255, &f.output); }},
    {"delay=",
     [](Fault& f, const std::string& v) {
       return SetEffect<Effect::kDelay>(f) && ParseTime(v, &f.time_ns);
     }},
    {"jitter=",
     [](Fault& f, const std::string& v) {
       return SetEffect<Effect::kJitter>(f) && ParseTime(v, &f.time_ns) && f.time_ns != 0;
     }},
};

bool ParseWord(Fault& fault, const std::string& word) {
  for (const Word& known : kWords) {
    if (word.starts_with(known.key)) {
      return known.parse(fault, word.substr(std::string(known.key).size()));
    }
  }
  return false;
}

bool ParseTarget(Fault& fault, const std::string& word) {
  constexpr const char* kStream = "stream=";
  if (!word.starts_with(kStream)) {
    fault.target = word;
    return word.find('=') == std::string::npos && word[0] != '#';
  }
  fault.of_stream = true;
  std::string number = word.substr(std::string(kStream).size());
  if (number == "*") return true;
  uint64_t stream = 0;
  if (!ParseNumber(number, UINT32_MAX, &stream)) return false;
  fault.stream = static_cast<int64_t>(stream);
  return true;
}

bool IsFunction(const std::string& function) {
  if (function.starts_with("aclnn")) return true;  // its library may not be loaded yet
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&aclrtMalloc), &self) == 0) return true;
  void* library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return true;
  bool found = dlsym(library, function.c_str()) != nullptr;
  dlclose(library);
  return found;
}

// Says why the words of a fault do not go together; empty when they do.
std::string Contradiction(const Fault& fault) {
  if (fault.effect == Effect::kNone) return "it has no effect";
  if ((fault.nth != 0) + (fault.every != 0) + (fault.probability >= 0) > 1) {
    return "#, every and p exclude each other";
  }
  if (fault.of_stream && fault.effect != Effect::kDelay && fault.effect != Effect::kJitter) {
    return "a stream can only have delay or jitter";
  }
  bool any = fault.target.ends_with('*');
  if (fault.effect == Effect::kReturn && !any && !IsFunction(fault.target)) {
    return "there is no function " + fault.target;
  }
  return "";
}

void Report(const std::string& text, const std::string& reason) {
  std::fprintf(
      stderr,
      "acltape soft device: fault \"%s\" ignored: %s; accepted is TARGET [#N | every=N | p=0..1] "
      "[seed=N] and one of return=CODE (of a call), fail=CODE, flip=BIT [output=N] (of an "
      "operator), "
      "delay=TIME, jitter=TIME (of an operator or stream=N), such as \"aclrtMalloc #3 "
      "return=207001; aclnnAdd every=10 fail=507015; stream=2 jitter=1ms\"\n",
      text.c_str(), reason.c_str());
}

void AddFault(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  if (!(words >> word) || word == "#") return;
  Fault& fault = Faults().emplace_back();
  fault.text = text.substr(text.find_first_not_of(" \t\r"));
  std::string reason;
  if (!ParseTarget(fault, word)) reason = "\"" + word + "\" is not a target";
  while (reason.empty() && words >> word) {
    if (!ParseWord(fault, word)) reason = "\"" + word + "\" is not understood";
  }
  if (reason.empty()) reason = Contradiction(fault);
  if (reason.empty()) return;
  Report(fault.text, reason);
  Faults().pop_back();
}

void AddFaults(const std::string& text) {
  std::string part;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (size_t first = line.find_first_not_of(" \t");
        first == std::string::npos || line[first] == '#') {
      continue;  // a comment
    }
    std::istringstream parts(line);
    while (std::getline(parts, part, ';')) AddFault(part);
  }
}

bool Matches(const Fault& fault, std::string_view name) {
  if (fault.of_stream) return false;
  std::string_view target = fault.target;
  if (!target.ends_with('*')) return target == name;
  return name.starts_with(target.substr(0, target.size() - 1));
}

// Counts an occurrence. Its number, from 1, when the fault is due; else 0.
uint64_t Fires(Fault& fault) {
  uint64_t occurrence = fault.seen.fetch_add(1) + 1;
  bool due = true;
  if (fault.nth != 0) due = occurrence == fault.nth;
  if (fault.every != 0) due = occurrence % fault.every == 0;
  if (fault.probability >= 0) {
    auto draw = static_cast<double>(base::MixBits(fault.seed ^ base::MixBits(occurrence)) >> 11);
    due = draw * 0x1p-53 < fault.probability;
  }
  return due ? occurrence : 0;
}

// The time by which occurrence `number` of a delay or jitter is late.
uint64_t Lateness(const Fault& fault, uint64_t number) {
  if (fault.effect == Effect::kDelay) return fault.time_ns;
  return base::MixBits(fault.seed ^ base::MixBits(number)) % fault.time_ns;
}

void Sleep(uint64_t nanoseconds) {
  timespec pause{static_cast<time_t>(nanoseconds / 1000000000),
                 static_cast<long>(nanoseconds % 1000000000)};
  nanosleep(&pause, nullptr);
}

// A task with the faults of its name around it.
struct FaultyTask {
  Task task;
  std::vector<Fault*> faults;
};

aclError RunFaulty(void* argument) {
  auto* faulty = static_cast<FaultyTask*>(argument);
  Fault* failing = nullptr;
  for (Fault* fault : faulty->faults) {
    uint64_t occurrence = Fires(*fault);
    if (occurrence == 0) continue;
    if (fault->effect == Effect::kFail) {
      failing = fault;
    } else {
      Sleep(Lateness(*fault, occurrence));
    }
  }
  if (failing == nullptr) return faulty->task.Run();
  SetMessage(("injected fault: " + failing->text).c_str());
  return failing->code;
}

bool FaultyReady(void* argument) {
  Task& task = static_cast<FaultyTask*>(argument)->task;
  return task.ready(task.Argument());
}

void DropFaulty(void* argument) {
  auto* faulty = static_cast<FaultyTask*>(argument);
  faulty->task.Drop();
  delete faulty;
}

}  // namespace

bool ReadFaults() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const std::string& text : GetProfile().faults) AddFaults(text);
    const char* given = std::getenv("ACLTAPE_SOFT_FAULTS");
    std::string text = given != nullptr ? given : "";
    if (text.starts_with('@')) {
      std::ifstream file(text.substr(1));
      std::stringstream content;
      if (file) {
        content << file.rdbuf();
      } else {
        Report(text, "the file cannot be read");
      }
      text = content.str();
    }
    AddFaults(text);
    fault_state.store(Faults().empty() ? FaultState::kNone : FaultState::kSome,
                      std::memory_order_release);
  });
  return fault_state.load(std::memory_order_acquire) == FaultState::kSome;
}

aclError InjectedFault(const char* call) {
  for (Fault& fault : Faults()) {
    if (fault.effect != Effect::kReturn || !Matches(fault, call) || !Fires(fault)) continue;
    return Fail(fault.code, "%s: injected fault: %s", call, fault.text.c_str());
  }
  return ACL_SUCCESS;
}

Task WithFaults(Task&& task) {
  std::vector<Fault*> faults;
  for (Fault& fault : Faults()) {
    bool of_task = fault.effect == Effect::kFail || fault.effect == Effect::kDelay ||
                   fault.effect == Effect::kJitter;
    if (of_task && Matches(fault, task.name)) faults.push_back(&fault);
  }
  if (faults.empty()) return task;
  Task around = task;
  around.run = RunFaulty;
  around.drop = DropFaulty;
  around.ready = task.ready != nullptr ? FaultyReady : nullptr;
  around.argument = new FaultyTask{task, std::move(faults)};
  around.inline_payload = false;
  return around;
}

void DelayTask(uint32_t stream, uint64_t position) {
  for (Fault& fault : Faults()) {
    if (!fault.of_stream || (fault.stream >= 0 && fault.stream != stream) || !Fires(fault)) {
      continue;
    }
    // The draw depends on the place in the stream, so that the interleaving of streams does not
    // change it.
    Sleep(Lateness(fault, (uint64_t{stream} << 40) + position));
  }
}

bool FlipsBits(const char* name) {
  auto& faults = Faults();
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return fault.effect == Effect::kFlip && Matches(fault, name);
  });
}

void FlipBits(const char* name, const SoftOutput* outputs, size_t count) {
  for (Fault& fault : Faults()) {
    if (fault.effect != Effect::kFlip || !Matches(fault, name) || !Fires(fault)) continue;
    if (fault.output >= count || outputs[fault.output].bytes == 0) continue;
    const SoftOutput& output = outputs[fault.output];
    uint64_t bit = fault.bit % (output.bytes * 8);
    static_cast<unsigned char*>(output.first)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
  }
}

}  // namespace acltape::device

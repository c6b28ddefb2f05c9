// Misuse of every interface function of libascendcl and libnnopbase: NULL, junk, ended handles,
// handles of another kind, freed addresses, calls made twice, calls after aclFinalize, calls from a
// thread without a context. Each call runs in a process of its own, on a fresh device.
//
// A misuse passes when the process ends by itself in time, and the call gives a documented code
// that is not success and a message that names it; functions without a code have the message alone.
// Where success is right, kAccepted says why.
//
//   ACLTAPE_MISUSE='aclrtRecordEvent(event): junk 0x1234'   runs this case alone
#include <dlfcn.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "tests/runtime/misuse/accepted.h"
#include "tests/runtime/misuse/bench.h"

namespace acltape::misuse {
namespace {

constexpr unsigned kSeconds = 20;  // the longest that a case may take

// The outcome of a call, in memory that both processes see.
struct Outcome {
  bool prepared;  // the arguments were made
  bool returned;
  int64_t code;
  char message[1024];
  int64_t later;  // result of a synchronisation of the device after the call
  char later_message[1024];
};

void TakeMessage(char (&to)[1024]) {
  const char* text = aclGetRecentErrMsg();
  std::snprintf(to, sizeof to, "%s", text != nullptr ? text : "");
}

void* Symbol(const Function& function) { return dlsym(RTLD_DEFAULT, function.name); }

void Call(const Function& function, const std::vector<Argument>& arguments, Outcome& outcome) {
  while (aclGetRecentErrMsg() != nullptr) {
  }
  outcome.prepared = true;
  outcome.code = function.call(Symbol(function), arguments.data());
  TakeMessage(outcome.message);
  outcome.later = aclrtSynchronizeDeviceWithTimeout(1000);
  TakeMessage(outcome.later_message);
  outcome.returned = true;
}

struct Case {
  const Function* function;
  std::string parameter;  // empty: the call as a whole
  std::string misuse;
  std::function<void(Outcome&)> run;

  std::string name() const {
    return std::string(function->name) + (parameter.empty() ? "" : "(" + parameter + ")") + ": " +
           misuse;
  }
};

// A case in which one argument is replaced.
Case Replaced(const Function& function, size_t index, const std::string& misuse,
              const std::function<Argument(Argument right)>& wrong) {
  return {&function, std::string(function.parameters[index].name), misuse,
          [&function, index, wrong](Outcome& o) {
            std::vector<Argument> arguments = RightArguments(function);
            arguments[index] = wrong(arguments[index]);
            Call(function, arguments, o);
          }};
}

Case Whole(const Function& function, const std::string& misuse,
           const std::function<void(Outcome&)>& run) {
  return {&function, "", misuse, run};
}

// Runs the case in a process of its own. Empty when it ended as it should, else how it ended.
std::string RunAlone(const Case& test, Outcome* outcome) {
  static auto* shared = static_cast<Outcome*>(
      mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *shared = {};
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    try {
      SetUp();
      test.run(*shared);
    } catch (const std::exception& error) {
      std::snprintf(shared->message, sizeof shared->message, "%s", error.what());
    }
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  *outcome = *shared;
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? "hangs"
                                       : std::string("ends by ") + strsignal(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) != 0) return "exits with " + std::to_string(WEXITSTATUS(status));
  if (!outcome->prepared) return std::string("cannot be prepared: ") + outcome->message;
  return outcome->returned ? "" : std::string("throws: ") + outcome->message;
}

// A `*` in the pattern stands for any text.
bool Fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool IsAccepted(const Case& test) {
  // Functions that return no code, and objects of the operator library, need no initialised device.
  if (test.misuse == "after finalize" && test.function->returns != Returns::kCode) return true;
  for (const Accepted& row : kAccepted) {
    if (Fits(row.function, test.function->name) && Fits(row.parameter, test.parameter) &&
        Fits(row.misuse, test.misuse)) {
      return true;
    }
  }
  return false;
}

std::string Described(const Case& test, const Outcome& outcome, const std::string& what) {
  return test.name() + " " + what + " (code " + std::to_string(outcome.code) + ", message \"" +
         outcome.message + "\", then " + std::to_string(outcome.later) + " \"" +
         outcome.later_message + "\")";
}

// Says what is wrong with the outcome of a misuse; empty when it is as it should be.
std::string Judge(const Case& test, const Outcome& outcome) {
  const bool has_code = test.function->returns != Returns::kOther;
  if (has_code && outcome.code == 0) {
    // A task may fail where its call could not know.
    if (outcome.later == 0 || outcome.later_message[0] == '\0') return "passes in silence";
    return DocumentedCodes().count(outcome.later) != 0 ? "" : "fails later with an unknown code";
  }
  if (has_code && DocumentedCodes().count(outcome.code) == 0) return "gives an unknown code";
  if (outcome.message[0] == '\0') return has_code ? "gives no message" : "passes in silence";
  return strstr(outcome.message, test.function->name) != nullptr
             ? ""
             : "gives a message that does not name it";
}

void RunMisuses(const std::vector<Case>& tests) {
  const char* only = std::getenv("ACLTAPE_MISUSE");
  for (const Case& test : tests) {
    if (only != nullptr && !Fits(only, test.name())) continue;
    Outcome outcome;
    std::string wrong = RunAlone(test, &outcome);
    if (wrong.empty() && !IsAccepted(test)) wrong = Judge(test, outcome);
    if (!wrong.empty()) ADD_FAILURE() << Described(test, outcome, wrong);
    if (only != nullptr) std::puts(Described(test, outcome, wrong).c_str());
  }
}

using Each = std::function<void(const Function&, std::vector<Case>&)>;

std::vector<Case> CasesOf(const Each& add) {
  std::vector<Case> cases;
  for (const Function& function : Functions()) {
    if (Symbol(function) != nullptr) add(function, cases);
  }
  return cases;
}

// Misuses of each parameter for which `wanted` holds.
std::vector<Case> CasesOfParameters(
    const std::function<bool(const Function&, const Parameter&)>& wanted,
    const std::vector<std::pair<std::string, std::function<Argument(const Parameter&)>>>& misuses) {
  return CasesOf([&](const Function& function, std::vector<Case>& cases) {
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      const Parameter& parameter = function.parameters[i];
      if (!wanted(function, parameter)) continue;
      for (const auto& [name, make] : misuses) {
        cases.push_back(Replaced(function, i, name,
                                 [&parameter, make = make](Argument) { return make(parameter); }));
      }
    }
  });
}

bool IsHandle(const Function&, const Parameter& parameter) {
  return FindHandleType(parameter.type) != nullptr;
}

bool IsPointer(const Function& function, const Parameter& parameter) {
  return parameter.type.ends_with('*') || IsHandle(function, parameter) ||
         parameter.type.ends_with("Func") || parameter.type.ends_with("Callback");
}

Argument Junk(Argument value) { return value; }

Argument MadeHandle(const char* type) { return FindHandleType(type)->make(); }

TEST(Misuse, EveryFunctionHasARowAndEveryParameterAnArgument) {
  std::set<std::string> known;
  std::string missing;
  for (const Function& function : Functions()) {
    known.insert(function.name);
    if (Symbol(function) != nullptr) missing += ParametersWithoutArgument(function);
  }
  EXPECT_EQ(missing, "");
  EXPECT_GT(known.size(), 300u);
}

// Without this the other tests could pass for a wrong reason.
TEST(Misuse, RightArgumentsAreAccepted) {
  const char* only = std::getenv("ACLTAPE_MISUSE");
  for (const Case& test : CasesOf([](const Function&function, std::vector<Case>&cases) {
         cases.push_back(Whole(function, "right", [&function](Outcome& outcome) {
           Call(function, RightArguments(function), outcome);
         }));
       })) {
    if (only != nullptr && !Fits(only, test.name())) continue;
    Outcome outcome;
    std::string wrong = RunAlone(test, &outcome);
    const bool failed = test.function->returns != Returns::kOther && outcome.code != 0;
    if (wrong.empty() && failed && !IsAccepted(test)) wrong = "is refused";
    if (!wrong.empty()) ADD_FAILURE() << Described(test, outcome, wrong);
  }
}

TEST(Misuse, NullIsRefused) {
  RunMisuses(CasesOfParameters(IsPointer, {{"null", [](const Parameter&) { return Junk(0); }}}));
}

TEST(Misuse, GEN_09_JunkHandlesAreRefused) {
  RunMisuses(CasesOfParameters(
      IsHandle,
      {{"junk 0x1234", [](const Parameter&) { return Junk(0x1234); }},
       {"junk 0xdeadbeefdeadbeef", [](const Parameter&) { return Junk(0xdeadbeefdeadbeef); }},
       {"junk heap",
        [](const Parameter&) { return reinterpret_cast<Argument>(std::calloc(1, 4096)); }},
       {"junk inside", [](const Parameter& parameter) {
          const HandleType& type = *FindHandleType(parameter.type);
          return type.make != nullptr ? type.make() + 8 : Junk(0x1000);
        }}}));
}

TEST(Misuse, GEN_09_EndedHandlesAreRefused) {
  const auto ends = [](const Function&, const Parameter& parameter) {
    const HandleType* type = FindHandleType(parameter.type);
    return type != nullptr && type->end != nullptr;
  };
  RunMisuses(CasesOfParameters(ends, {{"ended", [](const Parameter& parameter) {
                                         const HandleType& type = *FindHandleType(parameter.type);
                                         const Argument handle = type.make();
                                         type.end(handle);
                                         return handle;
                                       }}}));
}

TEST(Misuse, GEN_09_HandlesOfAnotherKindAreRefused) {
  RunMisuses(CasesOfParameters(
      IsHandle, {{"a runtime's object",
                  [](const Parameter& parameter) {
                    return MadeHandle(parameter.type == "aclrtNotify" ? "aclrtEvent"
                                                                      : "aclrtNotify");
                  }},
                 {"an operator's object", [](const Parameter& parameter) {
                    return MadeHandle(parameter.type == "aclScalar*" ? "aclTensor*" : "aclScalar*");
                  }}}));
}

TEST(Misuse, MEM_04_AddressesOfNoMemoryAreRefused) {
  RunMisuses(CasesOfParameters(
      IsAddress,
      {{"address 0x1234", [](const Parameter&) { return Junk(0x1234); }},
       {"address 0xdeadbeefdeadbeef", [](const Parameter&) { return Junk(0xdeadbeefdeadbee0); }}}));
  RunMisuses(CasesOf([](const Function& function, std::vector<Case>& cases) {
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      const Parameter& parameter = function.parameters[i];
      if (!IsAddress(function, parameter)) continue;
      cases.push_back(Replaced(function, i, "freed", [&function, &parameter](Argument) {
        return FreedAddress(function, parameter);
      }));
    }
  }));
}

// Functions that end something, which the second call finds ended.
TEST(Misuse, GEN_09_WhatHasEndedDoesNotEndAgain) {
  const auto ends = [](std::string_view name) {
    if (name.find("Set") != name.npos) return false;
    for (const char* word :
         {"Destroy", "Free", "Release", "Unmap", "Unregister", "UnSubscribe", "Unbind",
          "CaptureEnd", "GrpEnd", "UpdateEnd", "BuildEnd", "EndTask"}) {
      if (name.find(word) != name.npos) return true;
    }
    return false;
  };
  RunMisuses(CasesOf([&](const Function& function, std::vector<Case>& cases) {
    if (!ends(function.name)) return;
    cases.push_back(Whole(function, "twice", [&function](Outcome& outcome) {
      const std::vector<Argument> arguments = RightArguments(function);
      function.call(Symbol(function), arguments.data());
      Call(function, arguments, outcome);
    }));
  }));
}

TEST(Misuse, INIT_01_CallsAfterTheEndAreRefused) {
  RunMisuses(CasesOf([](const Function& function, std::vector<Case>& cases) {
    cases.push_back(Whole(function, "after finalize", [&function](Outcome& outcome) {
      const std::vector<Argument> arguments = RightArguments(function);
      aclFinalize();
      Call(function, arguments, outcome);
    }));
  }));
}

// CTX-01: another thread has no context. What needs none works there.
TEST(Misuse, CTX_01_CallsFromAThreadWithoutContextEndWell) {
  for (const Case& test : CasesOf([](const Function&function, std::vector<Case>&cases) {
         cases.push_back(Whole(function, "another thread", [&function](Outcome& outcome) {
           const std::vector<Argument> arguments = RightArguments(function);
           std::thread([&] { Call(function, arguments, outcome); }).join();
         }));
       })) {
    Outcome outcome;
    std::string wrong = RunAlone(test, &outcome);
    const bool failed = test.function->returns != Returns::kOther && outcome.code != 0;
    if (wrong.empty() && failed) wrong = Judge(test, outcome);
    if (!wrong.empty()) ADD_FAILURE() << Described(test, outcome, wrong);
  }
}

// Look-ups take no lock, and objects come and go meanwhile. Of two threads that end one object, one
// is told that it has ended.
TEST(Objects, ThreadsMakeAndEndThemAtTheSameTime) {
  constexpr int kRounds = 5000;
  const int64_t four = 4;
  std::vector<aclIntArray*> contested(kRounds);
  for (aclIntArray*& array : contested) array = aclCreateIntArray(&four, 1);
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (aclIntArray* array : contested) {
        aclIntArray* own = aclCreateIntArray(&four, 1);
        uint64_t size = 0;
        EXPECT_EQ(aclGetIntArraySize(own, &size), 0);
        EXPECT_EQ(size, 1u);
        EXPECT_EQ(aclDestroyIntArray(own), 0);
        ended += aclDestroyFloatArray(reinterpret_cast<aclFloatArray*>(array)) == 0;
        EXPECT_EQ(aclGetIntArraySize(reinterpret_cast<aclIntArray*>(&size), &size), 161002);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 0);
  threads.clear();
  // No other objects are made now, so no place is given out again.
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (aclIntArray* array : contested) ended += aclDestroyIntArray(array) == 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kRounds);
}

}  // namespace
}  // namespace acltape::misuse

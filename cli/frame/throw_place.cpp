#include "cli/frame/throw_place.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <typeinfo>
#include <variant>

#include "recorder/collector/address_lines.h"

namespace acltape::cli {
namespace {

constexpr int kMaxDepth = 32;

struct Thrown {
  const void* exception = nullptr;
  int depth = 0;
  std::array<void*, kMaxDepth> stack = {};
};

// The last programming errors, by the exceptions' addresses. An exception can travel to another
// thread before it is caught.
struct LastThrown {
  std::mutex mutex;
  std::array<Thrown, 8> thrown;
  size_t next = 0;
};

LastThrown& Last() {
  static LastThrown last;
  return last;
}

bool IsProgrammingType(const std::type_info* type) {
  // Those that are bases; each exception of this kind has one base at most.
  while (type != nullptr) {
    if (*type == typeid(std::logic_error) || *type == typeid(std::bad_variant_access) ||
        *type == typeid(std::bad_optional_access) || *type == typeid(std::bad_cast) ||
        *type == typeid(std::bad_function_call) || *type == typeid(nlohmann::json::exception)) {
      return true;
    }
    const auto* derived = dynamic_cast<const abi::__si_class_type_info*>(type);
    type = derived != nullptr ? derived->__base_type : nullptr;
  }
  return false;
}

void Note(const void* exception, const std::type_info* type) noexcept {
  if (!IsProgrammingType(type)) return;
  Thrown thrown;
  thrown.exception = exception;
  thrown.depth = backtrace(thrown.stack.data(), kMaxDepth);
  LastThrown& last = Last();
  const std::lock_guard lock(last.mutex);
  last.thrown[last.next++ % last.thrown.size()] = thrown;
}

std::optional<Thrown> Find(const void* exception) {
  LastThrown& last = Last();
  const std::lock_guard lock(last.mutex);
  for (size_t back = 1; back <= last.thrown.size(); ++back) {
    const Thrown& thrown =
        last.thrown[(last.next + last.thrown.size() - back) % last.thrown.size()];
    if (thrown.exception == exception) return thrown;
  }
  return std::nullopt;
}

// Files of the system and generic code: the place of an error is where these were called.
bool IsOfLibrary(const collector::AddressLine& line) {
  return line.line == 0
             ? line.function.starts_with("std::") || line.function.starts_with("_ZSt") ||
                   line.function.starts_with("+") || line.function == "__cxa_throw"
             : line.file.starts_with("/usr/") || line.file.ends_with("cli/frame/throw_place.cpp");
}

}  // namespace

bool IsProgrammingError(const std::exception& error) { return IsProgrammingType(&typeid(error)); }

ThrowPlace PlaceOf(const std::exception& error) {
  const std::optional<Thrown> thrown = Find(dynamic_cast<const void*>(&error));
  if (!thrown) return {};
  collector::AddressLines addresses;
  for (int i = 0; i < thrown->depth; ++i) {
    // The address before the one that the call returns to is in the call.
    const auto address = reinterpret_cast<uintptr_t>(thrown->stack.at(i)) - 1;
    Dl_info object;
    link_map* map = nullptr;
    if (dladdr1(reinterpret_cast<void*>(address), &object, reinterpret_cast<void**>(&map),
                RTLD_DL_LINKMAP) == 0 ||
        map == nullptr) {
      continue;
    }
    // The program itself has no name in the list.
    const std::string file = map->l_name[0] == '\0' ? "/proc/self/exe" : map->l_name;
    for (const collector::AddressLine& line : addresses.FindInlined(file, address - map->l_addr)) {
      if (IsOfLibrary(line)) continue;
      return {line.line == 0 ? "" : line.file, line.line, line.function};
    }
  }
  return {};
}

}  // namespace acltape::cli

// GCC declares the function below itself, with another type than <cxxabi.h> does.
#ifdef __clang__
using ThrownType = std::type_info*;
#else
using ThrownType = void*;
#endif

// Stands before the runtime's own, for all libraries of the process.
extern "C" __attribute__((noreturn, visibility("default"))) void __cxa_throw(
    void* exception, ThrownType type, void (*destroy)(void*)) {
  using Throw = void (*)(void*, ThrownType, void (*)(void*));
  static const auto next = reinterpret_cast<Throw>(dlsym(RTLD_NEXT, "__cxa_throw"));
  acltape::cli::Note(exception, static_cast<const std::type_info*>(type));
  next(exception, type, destroy);
  std::abort();
}

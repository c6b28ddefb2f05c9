// Interface functions by name, and calls of them with packed arguments.
#pragma once

#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace acltape::misuse {

// An argument of any type: a number, a pointer, or, for a structure, a pointer to it.
using Argument = uint64_t;

template <typename T>
std::remove_const_t<T> Unpack(Argument argument) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_pointer_v<Plain>) {
    return reinterpret_cast<Plain>(argument);
  } else if constexpr (std::is_class_v<Plain>) {
    return *reinterpret_cast<const Plain*>(argument);
  } else {
    return static_cast<Plain>(argument);
  }
}

template <typename T>
int64_t Pack(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<int64_t>(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

template <typename F>
struct Caller;

template <typename Result, typename... Ts>
struct Caller<Result (*)(Ts...)> {
  static int64_t Call(void* function, const Argument* arguments) {
    return CallWith(reinterpret_cast<Result (*)(Ts...)>(function), arguments,
                    std::index_sequence_for<Ts...>());
  }
  template <size_t... I>
  static int64_t CallWith(Result (*function)(Ts...), [[maybe_unused]] const Argument* arguments,
                          std::index_sequence<I...>) {
    if constexpr (std::is_void_v<Result>) {
      function(Unpack<Ts>(arguments[I])...);
      return 0;
    } else {
      return Pack(function(Unpack<Ts>(arguments[I])...));
    }
  }
};

template <typename Result, typename... Ts>
struct Caller<Result (*)(Ts..., ...)> : Caller<Result (*)(Ts...)> {};

enum class Returns { kCode, kStatus, kOther };

struct Parameter {
  std::string_view type;  // without const and blanks
  std::string_view name;
  bool is_const;  // somewhere in its type
};

struct Function {
  const char* name;
  int64_t (*call)(void* function, const Argument* arguments);
  Returns returns;
  std::span<const Parameter> parameters;
};

// Every function of the interface, also those that the soft device does not export.
std::span<const Function> Functions();

// The codes of the headers, and the statuses of the operator library.
const std::set<int64_t>& DocumentedCodes();

}  // namespace acltape::misuse

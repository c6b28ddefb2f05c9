#include "cli/frame/failure.h"

#include <fmt/format.h>

#include <new>
#include <string_view>
#include <system_error>
#include <typeinfo>

#include "cli/frame/command.h"
#include "cli/frame/memory_limit.h"
#include "cli/frame/throw_place.h"
#include "cli/frame/version.h"
#include "storage/error.h"
#include "storage/internal_error.h"

namespace acltape::cli {
namespace {

Failure InternalFailure(const std::exception& error) {
  const ThrowPlace place = PlaceOf(error);
  std::string where = place.file;
  if (where.empty()) where = place.function.empty() ? "an unknown place" : place.function;
  return {fmt::format("{}; acltape {}", InternalErrorText(where, place.line, error.what()),
                      VersionNumber()),
          static_cast<int>(ErrorKind::kInternal)};
}

Failure NoMemory(std::string_view cause, const std::string& otherwise, int code) {
  if (!MemoryIsLimited()) return {otherwise, code};
  return {NeedsMoreMemory(cause), kExitDevice, /*refused=*/true};
}

}  // namespace

Failure FailureOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const int code = static_cast<int>(error.kind());
    return SaysNoMemory(error) ? NoMemory(error.what(), error.what(), code)
                               : Failure{error.what(), code};
  } catch (const std::bad_alloc&) {
    return NoMemory("", "out of memory.", kExitDevice);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe) return {"", kExitReaderGone, false, true};
    const std::string otherwise = fmt::format("unexpected failure: {}", error.what());
    // A thread that gets no stack.
    return error.code() == std::errc::resource_unavailable_try_again
               ? NoMemory("a thread cannot be started", otherwise, kExitDevice)
               : Failure{otherwise, kExitDevice};
  } catch (const std::exception& error) {
    if (IsProgrammingError(error)) return InternalFailure(error);
    return {fmt::format("unexpected failure: {}", error.what()), kExitDevice};
  } catch (...) {
    return {"unexpected failure", kExitDevice};
  }
}

}  // namespace acltape::cli

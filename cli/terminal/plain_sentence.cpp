#include "cli/terminal/plain_sentence.h"

#include <sys/uio.h>
#include <unistd.h>

#include <new>

namespace acltape::cli {
namespace {

iovec PartOf(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

}  // namespace

void SayPlainly(std::string_view sentence, std::string_view more) noexcept {
  const iovec parts[] = {PartOf("acltape: "), PartOf(sentence), PartOf(more), PartOf("\n")};
  static_cast<void>(!writev(STDERR_FILENO, parts, 4));
}

std::string_view PlainCause(const std::exception& error) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  return error.what();
}

}  // namespace acltape::cli

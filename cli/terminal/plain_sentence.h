// Sentences on standard error that take no memory and never fail, for when there is no memory, and
// for when nothing that fails may hide the exit code of a recorded program.
#pragma once

#include <exception>
#include <string_view>

namespace acltape::cli {

// Prints "acltape: ", the two parts and the end of the line.
void SayPlainly(std::string_view sentence, std::string_view more = {}) noexcept;

// Says an exception in words that a user knows.
std::string_view PlainCause(const std::exception& error) noexcept;

}  // namespace acltape::cli

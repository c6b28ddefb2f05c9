// Where the libraries of communicators and of operators meet (runtime/rank_groups.h).
#include "runtime/rank_groups.h"

#include <atomic>

namespace {
std::atomic<const SoftGroupFunctions*> g_functions{nullptr};
}  // namespace

void SoftOfferGroups(const SoftGroupFunctions* functions) { g_functions.store(functions); }

const SoftGroupFunctions* SoftGroups(void) { return g_functions.load(); }

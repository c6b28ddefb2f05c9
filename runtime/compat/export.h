// Functions of interfaces that have no header here; each is as its callers declare it.
#pragma once

#define ACLTAPE_COMPAT extern "C" __attribute__((visibility("default")))

// The part of a program in which callgrind counts. The program is Python, which calls these two
// functions by ctypes. Outside of valgrind they do nothing.
#if defined(__has_include) && __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)name
#endif

// Nothing is instrumented before the first window, so that the import of torch does not take
// minutes.
void count_begin(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void count_end(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }

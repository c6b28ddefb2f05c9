/* Marks ranges and steps of a program, for acltape and for the person who reads its output.
 *
 *   acltape_range_begin("prefill");
 *   ...
 *   acltape_range_end();
 *
 * Ranges nest, and belong to the thread that begins them. A range of the name ACLTAPE_STEP is a
 * step of the program: `acltape record` takes these as the steps when it is not told others.
 *
 * Where the recording begins closed (`acltape record --start-closed`), the program opens it for
 * what it wants to see; calls outside of a window cost little and are not in the trace:
 *
 *   acltape_window_open();
 *   ...
 *   acltape_window_close();
 *
 * This opens and closes the recording of the whole process tree. A window is best opened where no
 * other thread works.
 *
 * The header needs no library of acltape: it looks for the recorder in the process once. In a
 * program that is not recorded a call costs a load and a branch. C99 or C++11, Linux; with a glibc
 * before 2.34 the program links -ldl. All functions may be called from any thread.
 */
#ifndef ACLTAPE_H
#define ACLTAPE_H

#include <dlfcn.h>

#define ACLTAPE_STEP "acltape.step"

#ifdef __cplusplus
extern "C" {
#endif

/* The recorder's function of this name; a function that does nothing where there is no recorder. */
static inline void acltape_nothing_begin(const char* name) { (void)name; }
static inline void acltape_nothing_end(void) {}

/* Calls a function of the recorder that takes nothing; `known` keeps where it is. */
static inline void acltape_call(const char* name, void (**known)(void)) {
  void (*function)(void) = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (function == 0) {
    *(void**)&function = dlsym(RTLD_DEFAULT, name);
    if (function == 0) function = acltape_nothing_end;
    __atomic_store_n(known, function, __ATOMIC_RELAXED);
  }
  function();
}

/* Begins a range. The name is copied. */
static inline void acltape_range_begin(const char* name) {
  typedef void (*acltape_begin)(const char*);
  static acltape_begin known = 0;
  acltape_begin begin = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (begin == 0) {
    *(void**)&begin = dlsym(RTLD_DEFAULT, "acltape_agent_range_begin");
    if (begin == 0) begin = acltape_nothing_begin;
    __atomic_store_n(&known, begin, __ATOMIC_RELAXED);
  }
  begin(name);
}

/* Ends the innermost range of the thread. */
static inline void acltape_range_end(void) {
  static void (*known)(void) = 0;
  acltape_call("acltape_agent_range_end", &known);
}

/* Begins to record calls, where the recording is closed. */
static inline void acltape_window_open(void) {
  static void (*known)(void) = 0;
  acltape_call("acltape_agent_window_open", &known);
}

/* Records no more calls until the recording is opened again. */
static inline void acltape_window_close(void) {
  static void (*known)(void) = 0;
  acltape_call("acltape_agent_window_close", &known);
}

#ifdef __cplusplus
}

namespace acltape_ranges {

/* A range that lasts as long as the object. */
class Range {
 public:
  explicit Range(const char* name) { acltape_range_begin(name); }
  ~Range() { acltape_range_end(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

/* A window that lasts as long as the object. */
class Window {
 public:
  Window() { acltape_window_open(); }
  ~Window() { acltape_window_close(); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};

}  // namespace acltape_ranges
#endif

#endif

/* Marks ranges and steps of a program, for acltape and for the person who reads its output.
 *
 *   acltape_range_begin("prefill");
 *   ...
 *   acltape_range_end();
 *
 * Ranges nest, and belong to the thread that begins them. A range of the name ACLTAPE_STEP is a
 * step of the program: `acltape record` takes these as the steps when it is not told others.
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
  typedef void (*acltape_end)(void);
  static acltape_end known = 0;
  acltape_end end = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (end == 0) {
    *(void**)&end = dlsym(RTLD_DEFAULT, "acltape_agent_range_end");
    if (end == 0) end = acltape_nothing_end;
    __atomic_store_n(&known, end, __ATOMIC_RELAXED);
  }
  end();
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

}  // namespace acltape_ranges
#endif

#endif

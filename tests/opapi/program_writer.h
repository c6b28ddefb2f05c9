// Writes calls of operators that the tests made, and that gave what the tests' references say, as C
// programs: plain two-phase calls through the public headers, and the bytes that must come out.
// Where the number of results depends on the data, the program asks the output for its size.
//
// The folder is named by the environment variable ACLTAPE_WRITE_PROGRAMS; without it nothing is
// written. The programs are a consequence of tests that passed, so the folder counts only when the
// test program ends with 0. tests/programs/generated_test.py builds and runs them.
#pragma once

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

// Sees each call of RunOperator, before its first phase and after its end.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  virtual void Before(const char* name, const Args& args) = 0;
  virtual void After(int status, const Shapes& reported) = 0;
};

// The watcher that RunOperator calls; null at first.
CallWatcher*& Watcher();

}  // namespace acltape::opapi

// A program over the real agent whose collector, its parent, does not answer for a while.
//
//   frozen_program CALLS   stops the collector, records CALLS calls and lets the collector go on
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/recorder/agent_call.h"

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  acltape::test::RecordOneCall();
  kill(getppid(), SIGSTOP);
  for (int call = atoi(argv[1]); call > 1; --call) acltape::test::RecordOneCall();
  kill(getppid(), SIGCONT);
  return 0;
}

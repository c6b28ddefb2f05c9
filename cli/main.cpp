#include "cli/command.h"
#include "cli/standard_streams.h"

int main(int argc, char** argv) {
  acltape::cli::ReserveStandardStreams();
  return acltape::cli::Main(argc, argv);
}

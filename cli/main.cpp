#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/terminal/standard_streams.h"

int main(int argc, char** argv) {
  acltape::cli::ReserveStandardStreams();
  return acltape::cli::Main(argc, argv, acltape::cli::AllCommands());
}

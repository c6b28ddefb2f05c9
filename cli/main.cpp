#include "cli/command.h"

int main(int argc, char** argv) { return acltape::cli::Main(argc, argv); }

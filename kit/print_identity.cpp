// Prints the identity of a libtorch_cpu.so, for the build.
#include "kit/identity.h"

int main(int argc, char** argv) {
  acltape::kit::Identity identity;
  if (argc != 2 || !acltape::kit::IdentityOf(argv[1], &identity)) {
    fprintf(stderr, "usage: acltape_kit_identity LIBTORCH_CPU; the file must be readable.\n");
    return 2;
  }
  printf("%s", identity.text);
  return 0;
}

/* Marks ranges by the public header, in C and without a library of acltape. */
#include "recorder/ranges/acltape.h"

#include <stdio.h>

int main(void) {
  for (int step = 0; step < 3; ++step) {
    acltape_range_begin(ACLTAPE_STEP);
    acltape_range_begin("inner");
    acltape_range_end();
    acltape_range_end();
  }
  acltape_range_end(); /* one too many does no harm */
  puts("done");
  return 0;
}

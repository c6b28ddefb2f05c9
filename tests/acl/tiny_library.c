/* A device library that defines very little, for the loader's tests. */
#include <stddef.h>

#ifdef WITH_INIT
__attribute__((visibility("default"))) int aclInit(const char* path) { return path == NULL ? 0 : 1; }
__attribute__((visibility("default"))) int aclnnAddGetWorkspaceSize(void) { return 0; }
#endif
__attribute__((visibility("default"))) int aclFinalize(void) { return 0; }

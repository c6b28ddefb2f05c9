// Functions of libraries that were opened privately are found, also while other threads open
// others.
#include "recorder/agent/loaded_libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace acltape::agent {
namespace {

// Part of the C library's package, and nothing else in this process.
constexpr char kOther[] = "libBrokenLocale.so.1";

TEST(LoadedLibraries, AFunctionIsFoundInTheFirstLibraryThatHasIt) {
  EXPECT_EQ(FindInLoaded({"libc.so"}, "strlen", dlsym), dlsym(RTLD_DEFAULT, "strlen"));
  EXPECT_EQ(FindInLoaded({"libgtest", "libstdc++", "libc.so"}, "strlen", dlsym),
            dlsym(RTLD_DEFAULT, "strlen"));
  EXPECT_EQ(FindInLoaded({"libc.so"}, "no_such_function", dlsym), nullptr);
  EXPECT_EQ(FindInLoaded({"libnothing"}, "strlen", dlsym), nullptr);
}

// See Note [The loader's list]: with dlopen in the callback both threads stand still here.
TEST(LoadedLibraries, AreLookedThroughWhileAnotherThreadOpensLibraries) {
  std::atomic<bool> ended{false};
  std::atomic<int> opened{0};
  std::thread other([&] {
    while (!ended) {
      void* library = dlopen(kOther, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) return;
      ++opened;
      dlclose(library);
    }
  });
  for (int i = 0; i < 200'000 || (opened < 100 && i < 1'000'000); ++i) {
    ASSERT_NE(FindInLoaded({"libc.so"}, "strlen", dlsym), nullptr);
  }
  ended = true;
  other.join();
  EXPECT_GE(opened, 100) << kOther << " could not be opened: " << dlerror();
}

}  // namespace
}  // namespace acltape::agent

// Functions of libraries that were opened privately are found, also while other threads open
// others.
#include "recorder/agent/loaded_libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace acltape::agent {
namespace {

using namespace std::chrono_literals;

// Part of the C library's package, and nothing else in this process.
constexpr char kOther[] = "libBrokenLocale.so.1";

TEST(LoadedLibraries, AFunctionIsFoundInTheFirstLibraryThatHasIt) {
  // One that no sanitizer replaces.
  const char* name = "gnu_get_libc_version";
  void* function = dlsym(RTLD_DEFAULT, name);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(FindInLoaded({"libc.so"}, name, dlsym), function);
  EXPECT_EQ(FindInLoaded({"libgtest", "libstdc++", "libc.so"}, name, dlsym), function);
  EXPECT_EQ(FindInLoaded({"libc.so"}, "no_such_function", dlsym), nullptr);
  EXPECT_EQ(FindInLoaded({"libnothing"}, name, dlsym), nullptr);
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
  // The two threads met within some 20 ms.
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::steady_clock::now() - begin; };
  while (passed() < 300ms || (opened < 20 && passed() < 20s)) {
    ASSERT_NE(FindInLoaded({"libc.so"}, "strlen", dlsym), nullptr);
  }
  ended = true;
  other.join();
  EXPECT_GE(opened, 20) << kOther << " could not be opened: " << dlerror();
}

}  // namespace
}  // namespace acltape::agent

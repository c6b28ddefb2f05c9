// Reports ranges and marks as programs do for the vendor's tools.
#include <acl/acl.h>
#include <acl/acl_prof.h>
#include <mstx/ms_tools_ext.h>

#include <cstdio>
#include <cstring>
#include <thread>

namespace {

void* memory;

// A call that the trace has, with the ranges around it.
void Work() { aclrtMemset(memory, 64, 1, 64); }

void* Stamp(const char* name) {
  void* stamp = aclprofCreateStamp();
  aclprofSetStampTraceMessage(stamp, name, static_cast<uint32_t>(std::strlen(name)));
  return stamp;
}

void NestedRanges() {
  void* outer = Stamp("outer");
  void* inner = Stamp("inner");
  aclprofPush(outer);
  aclprofPush(inner);
  Work();
  aclprofPop();
  aclprofPop();
  aclprofDestroyStamp(outer);
  aclprofDestroyStamp(inner);
}

void OverlappingRanges() {
  void* first_stamp = Stamp("first");
  void* second_stamp = Stamp("second");
  uint32_t first = 0;
  uint32_t second = 0;
  aclprofRangeStart(first_stamp, &first);
  aclprofRangeStart(second_stamp, &second);
  Work();
  aclprofRangeStop(first);
  Work();
  aclprofRangeStop(second);
  Work();
  aclprofDestroyStamp(first_stamp);
  aclprofDestroyStamp(second_stamp);
}

void RangesOfTools() {
  const mstxRangeId plain = mstxRangeStartA("tools", nullptr);
  mstxDomainHandle_t domain = mstxDomainCreateA("domain");
  const mstxRangeId inside = mstxDomainRangeStartA(domain, "in a domain", nullptr);
  Work();
  mstxDomainRangeEnd(domain, inside);
  mstxRangeEnd(plain);
  mstxDomainDestroy(domain);
}

void ARangeThatAnotherThreadEnds() {
  const mstxRangeId range = mstxRangeStartA("handed over", nullptr);
  Work();
  std::thread([range] { mstxRangeEnd(range); }).join();
  mstxMarkA("a mark", nullptr);
  Work();
}

void Marks() {
  void* stamp = Stamp("of a stamp");
  aclprofMark(stamp);
  aclprofMarkEx("of a text", std::strlen("of a text"), nullptr);
  aclprofDestroyStamp(stamp);
}

}  // namespace

int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  NestedRanges();
  OverlappingRanges();
  RangesOfTools();
  ARangeThatAnotherThreadEnds();
  Marks();
  aclrtFree(memory);
  aclrtResetDevice(0);
  aclFinalize();
  std::puts("done");
}

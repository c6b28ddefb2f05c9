// Dumps: operators that run write their tensors into files, or hand them to a function of the
// program (DMP-01 to DMP-08).
//
// What is to be kept for a dump is decided in the first phase of a call, so that calls cost nothing
// while no dump is on. Whether the task then dumps is decided when it runs.
#pragma once

#include <string>
#include <vector>

#include "acl/acl_dump.h"
#include "runtime/device/dump/dump_file.h"
#include "runtime/device/dump/dump_settings.h"

namespace acltape::device {

using DumpCallback = int32_t (*)(const acldumpChunk*, int32_t);

// From aclInit; stays until aclFinalize.
void ConfigureDumps(const DumpSettings& settings);
void EndDumps();

// They serve aclmdlInitDump, aclmdlSetDump and aclmdlFinalizeDump. False: called out of order.
bool BeginModelDump();
bool SetModelDump(const DumpSettings& settings);
bool EndModelDump();

// Null takes the callback away. Does not return while another thread runs it.
void SetDumpCallback(DumpCallback callback);

// A text that lives as long as the process; null when this kind of dump has no path.
const char* DumpPathOf(acldumpType kind);

// The folder for a failed operator of this device, which ends with a slash; empty while no such
// dump is configured.
std::string ExceptionFolder(int32_t device);
// Writes a file whose name ends with the time; false when it cannot be written.
bool WriteException(const std::string& path, const std::string& tag,
                    const std::vector<SavedTensor>& tensors);

// Files that hold the arguments of calls. False: called out of order.
bool BeginArgumentDump(const std::string& folder);
bool EndArgumentDump();

}  // namespace acltape::device

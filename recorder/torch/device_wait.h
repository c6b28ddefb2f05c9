// Waits for devices that the recorder makes at the edges of a window (Note [Windows] in
// recorder/wire/arena.h). They are no calls of the program, and the trace does not show them.
#pragma once

#include <c10/core/Device.h>

#include "recorder/agent/tape.h"

namespace acltape::torch_plugin {

// Note [Values on a device] in values.cpp tells of contents that the host has put there. In a
// window that opens later, a content may be one that the device has still to compute. So the first
// read of a device in such a window waits for it, once.
void WaitOnceInWindow(agent::Tape& tape, c10::DeviceIndex device);

// Called once, when the process has loaded PyTorch, before it has memory on a device. From now on
// the thread that opens or closes a window waits for the devices of the process first. An adapter
// issues the work of a leaf later, on a thread of its own: without the waits, a window would begin
// with work of the step before it and lack the end of its last step. There is no wait where the
// calls of the device are not recorded, and none while a capture is active, which refuses it.
void WaitAtWindows(agent::Tape& tape);

}  // namespace acltape::torch_plugin

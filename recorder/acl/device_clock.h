// The clock of a device, told from what the host saw of it.
//
// Nothing is asked of the device for this. An event that the recorder put on a stream happened
// after the host had put it there, and before the host saw that it had happened. Each event so
// bounds the distance between the two clocks from both sides, and the closest bounds of all events
// count. They are closest where a stream idled when it was given work, and where the host waited
// for its end.
//
// Clocks drift apart. A bound is taken to become looser by kDrift as time goes on, which no quartz
// exceeds.
#pragma once

#include <cstdint>

namespace acltape::acl_agent {

class DeviceClock {
 public:
  // The longest drift, as 1 in kDrift: 100 parts per million.
  static constexpr int64_t kDrift = 10000;

  // At `device_ns` of the device the host's clock showed `host_ns` or more.
  void NotBefore(int64_t device_ns, int64_t host_ns) {
    const int64_t distance = host_ns - device_ns;
    if (low_.known && distance <= low_.At(device_ns, -1)) return;
    low_ = {distance, device_ns, true};
    if (high_.known && high_.At(device_ns, 1) < distance) Jump(high_);
  }
  // At `device_ns` of the device the host's clock showed `host_ns` or less.
  void NotAfter(int64_t device_ns, int64_t host_ns) {
    const int64_t distance = host_ns - device_ns;
    if (high_.known && distance >= high_.At(device_ns, 1)) return;
    high_ = {distance, device_ns, true};
    if (low_.known && low_.At(device_ns, -1) > distance) Jump(low_);
  }

  // True when times can be told: both sides are bounded.
  bool known() const { return low_.known && high_.known; }
  // Times at which the bounds contradicted each other: the device's clock was set.
  uint64_t jumps() const { return jumps_; }

  // The host's time (nanoseconds of its clock) at a time of the device. known() must hold.
  int64_t ToHost(int64_t device_ns) const {
    const int64_t low = low_.At(device_ns, -1);
    return device_ns + low + (high_.At(device_ns, 1) - low) / 2;
  }
  // The greatest error of ToHost there, in nanoseconds.
  int64_t Error(int64_t device_ns) const {
    return (high_.At(device_ns, 1) - low_.At(device_ns, -1) + 1) / 2;
  }

 private:
  // A bound of the distance host minus device.
  struct Bound {
    int64_t distance;
    int64_t device_ns;  // the point where it was found
    bool known;

    int64_t At(int64_t other_ns, int64_t sign) const {
      const int64_t since = other_ns > device_ns ? other_ns - device_ns : device_ns - other_ns;
      return distance + sign * (since / kDrift);
    }
  };
  // The older bound is of another setting of the clock.
  void Jump(Bound& older) {
    older.known = false;
    ++jumps_;
  }

  Bound low_{};
  Bound high_{};
  uint64_t jumps_ = 0;
};

}  // namespace acltape::acl_agent

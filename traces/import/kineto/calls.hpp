#pragma once
// Which call of the host launched what, what it waited for, and what collectives send: the part of
// a Kineto file from which dependencies are read.

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/kineto/events.hpp"

namespace rubato::kineto {

/// Calls by process and correlation (the number that links a call to the work it launched). Device
/// events do not name their process. Where several processes share a file, each device is given to
/// the process whose calls fit its work best.
class CallTable {
 public:
  /// @param events  must outlive the table
  explicit CallTable(const Events& events);

  /// Position in Events::host_calls of the launch of some work, if it is in the file.
  [[nodiscard]] std::optional<std::uint32_t> call_of(const DeviceWork& work) const {
    return find(work.device, work.correlation);
  }

  /// As call_of, for any call that has to do with a device.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t device,
                                                  std::int64_t correlation) const;

  /// The process whose work a device does.
  [[nodiscard]] std::uint32_t process_of(std::uint32_t device) const;

 private:
  struct Entry {
    std::int64_t correlation;
    std::uint32_t process, call;
  };
  struct Owner {
    std::uint32_t device, process;
  };
  [[nodiscard]] std::optional<std::uint32_t> find_in(std::uint32_t process,
                                                     std::int64_t correlation) const;
  void find_owners();

  const Events& events_;
  std::vector<Entry> entries_;  ///< by process, then correlation; of equal ones the first counts
  std::vector<Owner> owners_;   ///< by device; empty for one process
};

/// Hands the builder the calls that launch or wait, with what `cuda_sync` events say of them.
/// @param launch_call  by work: position in Events::host_calls
/// @return for each piece of work: index of its call for CapturedLaunch::call
[[nodiscard]] std::vector<std::optional<std::uint32_t>> keep_calls(
    const Events& events, const CallTable& table,
    const std::vector<std::optional<std::uint32_t>>& launch_call, CaptureBuilder& builder);

/// Hands the builder what communication kernels send.
/// @return for each piece of work: index for CapturedLaunch::collective
[[nodiscard]] std::vector<std::optional<std::uint32_t>> keep_collectives(
    const Events& events, const std::vector<std::optional<std::uint32_t>>& launch_call,
    CaptureBuilder& builder);

}  // namespace rubato::kineto

#pragma once
// The events of PyTorch profiler traces as far as they matter here, before they are linked.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/operator_work.hpp"
#include "traces/import/readers.hpp"

namespace rubato::kineto {

/// A launch or copy as the host asked for it.
struct HostCall {
  std::int64_t ts_ns;
  std::uint32_t thread;
};

/// A span of the host: an operator or an annotation.
struct Span {
  std::int64_t start_ns, end_ns;
  std::uint32_t thread;
  std::uint32_t name;
  std::int64_t external_id;
  std::uint32_t call;  ///< index into calls, 0: shapes unknown
};

/// What a device did. Small: there may be millions.
struct DeviceWork {
  std::uint32_t name = 0, device = 0;
  std::int64_t stream = 0, start_ns = 0, duration_ns = 0;
  std::int64_t correlation = -1, external_id = -1;
  std::int64_t copied_bytes = -1;
  LaunchShape shape{{0, 0, 0}, {0, 0, 0}};
  std::uint32_t message = 0;  ///< index into messages, 0: none
  KernelClass kind = KernelClass::other;
  bool is_kernel = false;
};

/// What a collective sends.
struct Message {
  Collective collective;
  Dtype dtype = Dtype::unknown;
};

/// Strings by number.
class Names {
 public:
  std::uint32_t id(std::string_view name) {
    const auto [found, fresh] =
        ids_.emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.push_back(&found->first);
    return found->second;
  }
  [[nodiscard]] const std::string& operator[](std::uint32_t id) const { return *names_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> names_;
};

struct Events {
  Names names;
  std::vector<Span> operators, annotations;
  std::vector<OperatorCall> calls{OperatorCall{}};
  std::unordered_map<std::int64_t, HostCall> calls_by_correlation;
  std::vector<DeviceWork> work;
  std::vector<Message> messages{Message{}};
  std::optional<std::int64_t> epoch_ns;  ///< of time 0
  std::vector<std::pair<std::uint32_t, std::string>> device_names;

  /// Of the launch of some work; null if the file does not say.
  [[nodiscard]] const HostCall* call_of(const DeviceWork& done) const {
    const auto call = calls_by_correlation.find(done.correlation);
    return call == calls_by_correlation.end() ? nullptr : &call->second;
  }
};

/// @param builder  told what is left out
/// @throws DataError naming the file and the byte
[[nodiscard]] Events read_events(const std::filesystem::path& path, const ImportOptions& options,
                                 CaptureBuilder& builder);

}  // namespace rubato::kineto

#pragma once
// The events of PyTorch profiler traces as far as they matter here, before they are linked.

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// A thread, with its process by number.
struct Thread {
  std::uint32_t process = 0;  ///< from 0 in order of appearance
  CaptureThread recorded;
};

/// A call of the runtime or driver.
struct HostCall {
  std::int64_t correlation;
  std::int64_t start_ns, duration_ns;
  std::uint32_t thread;
  std::optional<CallKind> kind;  ///< nothing: of interest only if some work has its correlation
};

/// What Kineto knows of a synchronising call or of an event record beyond the call itself. It comes
/// from `cuda_sync` and `cuda_event` events; -1: not said.
struct SyncDetail {
  std::uint32_t device = 0;
  std::int64_t correlation = -1;  ///< of the call
  std::int64_t stream = -1;       ///< that waits, is awaited or is recorded
  std::int64_t recorded_stream = -1, record_correlation = -1;
};

/// An annotation around calls of NCCL: older files have sizes of messages only here.
struct MessageLabel {
  std::int64_t start_ns, end_ns;
  std::uint32_t thread;
  CollectiveKind kind;
  std::optional<std::uint64_t> in_bytes;
};

/// A span of the host: an operator or an annotation.
struct Span {
  std::int64_t start_ns, end_ns;
  std::uint32_t thread;
  std::uint32_t name;
  std::int64_t external_id;
  std::uint32_t call;  ///< index into Events::calls, 0: shapes unknown
};

/// What a device did. Kept small: there may be millions. -1: not said.
struct DeviceWork {
  std::uint32_t name = 0, device = 0;
  std::int64_t stream = 0, start_ns = 0, duration_ns = 0;
  std::int64_t correlation = -1, external_id = -1;
  std::int64_t copied_bytes = -1;
  std::optional<std::int32_t> priority;
  LaunchShape shape{{0, 0, 0}, {0, 0, 0}};
  std::uint32_t message = 0;  ///< index into Events::messages, 0: none
  KernelClass kind = KernelClass::other;
  bool is_kernel = false;
};

/// What a collective sends, from the arguments of its kernel.
struct Message {
  CapturedCollective collective;
  CaptureGroup group;  ///< without a name: not said
  Dtype dtype = Dtype::unknown;
};

/// Hash of a text, so that maps by text are searched without a copy of it.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
using TextIds = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

/// Strings by number: each different one is kept once.
class Names {
 public:
  std::uint32_t id(std::string_view name) {
    if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
    const auto id = static_cast<std::uint32_t>(names_.size());
    names_.push_back(&ids_.emplace(name, id).first->first);
    return id;
  }
  [[nodiscard]] const std::string& operator[](std::uint32_t id) const { return *names_[id]; }

 private:
  TextIds ids_;
  std::vector<const std::string*> names_;
};

/// Larger numbers of devices come from damaged files.
inline constexpr std::int64_t most_devices = 1'000'000;

/// The events of a file by their start, of a file merged of several processes in its order. The
/// first of `calls` and of `messages` stands for none.
struct Events {
  Names names;
  std::vector<Span> operators, annotations;
  std::vector<Span> device_steps;  ///< annotations on a GPU that are named as a server's steps
  std::vector<OperatorCall> calls{OperatorCall{}};
  std::vector<Thread> threads;
  std::uint32_t processes = 0;
  std::vector<HostCall> host_calls;
  std::vector<SyncDetail> syncs;
  std::vector<MessageLabel> message_labels;
  std::vector<DeviceWork> work;
  std::vector<Message> messages{Message{}};
  std::optional<std::int64_t> epoch_ns;  ///< UTC of time 0, ns since 1970
  std::vector<NamedDevice> devices;      ///< as listed, whether they ran anything or not
  std::vector<CaptureGroup> groups;      ///< of the file as a whole
  std::optional<std::uint32_t> rank, world_size;
  bool hip = false;  ///< AMD's runtime was called
};

/// Reads the events of a file, and what it says beside them (head.hpp).
/// @param builder  told what is left out
/// @throws IoError; DataError naming the file and the byte, or if there is no device work in it
[[nodiscard]] Events read_events(const std::filesystem::path& path, const ImportOptions& options,
                                 CaptureBuilder& builder);

}  // namespace rubato::kineto

#pragma once
// Writes what one rank launches in a step, in the order its host makes the calls, as a profiler
// would record it; and the times at which it then runs, of all ranks that wait for one another.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/gpu/spec.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// Kernels of a step, of all its ranks, and their times alone at the GPU's default clocks.
class StepKernels {
 public:
  /// @throws what GpuModel and the network model throw
  StepKernels(const GpuSpec& spec, std::vector<Kernel> kernels);

  /// The kernel of that name, which is added if it is not there: equal names are equal kernels.
  KernelId add(const Kernel& kernel);
  [[nodiscard]] const std::vector<Kernel>& list() const noexcept { return kernels_; }
  [[nodiscard]] const Kernel& operator[](KernelId id) const { return kernels_[index(id)]; }
  [[nodiscard]] double time_s(KernelId id) const { return times_s_[index(id)]; }

 private:
  const GpuSpec& spec_;
  std::vector<Kernel> kernels_;
  std::vector<double> times_s_;  // shape [kernels]
  std::map<std::string, KernelId> by_name_;
};

/// Streams of a rank: kernels, and collectives of each kind of group. Messages between pipeline
/// stages have one for each direction of activations and of gradients; first and last stage sum
/// gradients of their token tables.
enum class StepStream : std::uint8_t {
  compute,
  data,
  tensor,
  context,
  gradients_home,  // of keys and values, in a ring
  expert,
  forward_in,
  forward_out,
  backward_in,
  backward_out,
  tables
};
inline constexpr std::size_t step_streams = 11;

/// One side of a message between stages, or of a collective of two of them, whose sides are told
/// apart the same way.
struct MessageEnd {
  std::uint32_t peer = 0;  ///< stage of the other side
  bool sends = false;      ///< this side does
};

/// Of the activity of one rank in a step.
struct RankTimes {
  double compute_s = 0.0;   ///< of kernels in the compute stream
  double comm_s = 0.0;      ///< of collectives and messages, waiting for others not counted
  double hidden_s = 0.0;    ///< time with communication and a kernel; several at once count once
  double exposed_s = 0.0;   ///< time with communication and no kernel
  double comm_bytes = 0.0;  ///< messages, as Collective counts them
};

/// What a rank launches in a step, with times.
struct FinishedRank {
  Capture capture;
  std::vector<std::optional<std::uint32_t>> pass_of_launch;  ///< shape [launches]
};

/// One rank: a representative of all that do the same.
class StepWriter {
 public:
  /// @param kernels  must outlive the writer
  /// @param ranks    of each stage
  StepWriter(StepKernels& kernels, std::uint32_t stage, std::uint32_t ranks)
      : kernels_(&kernels), stage_(stage), ranks_(ranks) {
    (void)stream_index(StepStream::compute);  // comes first
  }

  [[nodiscard]] StepKernels& kernels() noexcept { return *kernels_; }
  [[nodiscard]] std::uint32_t stage() const noexcept { return stage_; }

  /// Launches from here on are of a pass, as the caller counts them; nothing: of none.
  void begin_pass(std::optional<std::uint32_t> pass) noexcept { pass_ = pass; }

  void launch(KernelId kernel) { add(StepStream::compute, kernel); }
  /// A collective of a group that ranks of other stages are not in.
  void communicate(StepStream stream, KernelId kernel);
  /// One side of a message: the k-th of a direction that one stage sends another is the k-th that
  /// it receives.
  void message(StepStream stream, KernelId kernel, const MessageEnd& end);

  /// What a stream has by now, for others to wait for.
  [[nodiscard]] std::uint32_t mark(StepStream stream);
  void wait(StepStream stream, std::uint32_t mark);
  /// A stream goes on behind all another one has by now.
  void follow(StepStream stream, StepStream other);

  [[nodiscard]] bool used(StepStream stream) const { return last_of(stream).has_value(); }

 private:
  friend class StepTiming;
  friend RankTimes times_of(const StepWriter& rank);
  friend FinishedRank finished(StepWriter rank, std::int64_t end_ns);

  // Beside a launch of the capture.
  struct Order {
    StepStream stream = StepStream::compute;
    std::int64_t host_ns = 0;  // no earlier
    std::uint32_t first_wait = 0;
    std::optional<std::uint32_t> before = {};  // on its stream
    std::optional<MessageEnd> message = {};
    std::optional<std::uint32_t> pass = {};
  };

  [[nodiscard]] std::optional<std::uint32_t> last_of(StepStream stream) const {
    return last_[static_cast<std::size_t>(stream)];
  }
  [[nodiscard]] std::uint32_t stream_index(StepStream stream);
  std::uint32_t call(CallKind kind, StepStream stream);
  CapturedLaunch& add(StepStream stream, KernelId kernel);
  void name_group(CapturedLaunch& launch, std::string group, const std::optional<MessageEnd>& end);

  StepKernels* kernels_;
  std::uint32_t stage_, ranks_;
  Capture capture_;
  std::vector<Order> orders_;         // shape [launches], in the order of calls
  std::vector<std::uint32_t> waits_;  // for launches, by the one that waits
  std::unordered_map<std::uint32_t, std::optional<std::uint32_t>> launch_before_;  // by event
  std::array<std::optional<std::uint32_t>, step_streams> stream_{}, last_{};
  std::array<std::vector<std::uint32_t>, step_streams> open_waits_{};
  std::map<std::string, std::uint32_t> groups_;
  std::optional<std::uint32_t> pass_;
  std::int64_t host_ns_ = 0;
};

/// Gives all launches their start: behind what their stream has before, what it waits for, and
/// their call, 5 us behind the call before it. A message begins when both sides have come.
/// @return last end, ns
/// @throws DataError if ranks wait for each other for ever
std::int64_t set_times(std::span<StepWriter> ranks);

/// Of a rank with times.
[[nodiscard]] RankTimes times_of(const StepWriter& rank);

/// The rank as a capture of one step that begins at 0 and ends at `end_ns`.
[[nodiscard]] FinishedRank finished(StepWriter rank, std::int64_t end_ns);

}  // namespace rubato

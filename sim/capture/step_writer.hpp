#pragma once
// Writes what one rank launches in a step, in the order its host makes the calls, as a profiler
// would record it. Then gives times to the launches of all ranks, which may wait for one another.

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

/// Kernels of a step, of all its ranks, and the time each takes alone at the GPU's default clocks.
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

/// Streams of a rank: one for kernels, and one for collectives of each kind of group. Messages
/// between pipeline stages have four: activations and gradients, in and out. `tables` is where
/// first and last stage sum up gradients of their token table.
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

/// One side of a message between two stages, or of a collective of the two, whose sides are told
/// apart the same way.
struct MessageEnd {
  std::uint32_t peer = 0;  ///< stage of the other side
  bool sends = false;      ///< whether this side sends
};

/// What one rank does in a step, in seconds and bytes.
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

/// One rank, which stands for all ranks that do the same.
class StepWriter {
 public:
  /// @param kernels  must outlive the writer
  /// @param ranks    how many each stage has
  StepWriter(StepKernels& kernels, std::uint32_t stage, std::uint32_t ranks)
      : kernels_(&kernels), stage_(stage), ranks_(ranks) {
    (void)stream_index(StepStream::compute);  // comes first
  }

  [[nodiscard]] StepKernels& kernels() noexcept { return *kernels_; }
  [[nodiscard]] std::uint32_t stage() const noexcept { return stage_; }

  /// Launches from here on belong to a pass, by the caller's numbers; nothing: to none.
  void begin_pass(std::optional<std::uint32_t> pass) noexcept { pass_ = pass; }

  void launch(KernelId kernel) { add(StepStream::compute, kernel); }
  /// A collective of a group that ranks of other stages are not in.
  void communicate(StepStream stream, KernelId kernel);
  /// One side of a message. Sides are matched in order: of each direction, the k-th message that a
  /// stage sends to another is the k-th that the other receives.
  void message(StepStream stream, KernelId kernel, const MessageEnd& end);

  /// An event (as of CUDA) behind what a stream has by now, for other streams to wait for.
  [[nodiscard]] std::uint32_t mark(StepStream stream);
  void wait(StepStream stream, std::uint32_t mark);
  /// A stream goes on behind all that another one has by now.
  void follow(StepStream stream, StepStream other);

  [[nodiscard]] bool used(StepStream stream) const { return last_of(stream).has_value(); }

 private:
  friend class StepTiming;
  friend RankTimes times_of(const StepWriter& rank);
  friend FinishedRank finished(StepWriter rank, std::int64_t end_ns);

  // What a launch of the capture waits for, and what belongs to it.
  struct Order {
    StepStream stream = StepStream::compute;
    std::int64_t host_ns = 0;                  // end of its call: it starts no earlier
    std::uint32_t first_wait = 0;              // in waits_
    std::optional<std::uint32_t> before = {};  // the launch before it on its stream
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
  std::vector<std::uint32_t> waits_;  // launches waited for, grouped by the launch that waits
  std::unordered_map<std::uint32_t, std::optional<std::uint32_t>> launch_before_;  // by mark
  std::array<std::optional<std::uint32_t>, step_streams> stream_{}, last_{};
  std::array<std::vector<std::uint32_t>, step_streams> open_waits_{};
  std::map<std::string, std::uint32_t> groups_;
  std::optional<std::uint32_t> pass_;
  std::int64_t host_ns_ = 0;
};

/// Gives all launches their start: the latest of the end of the launch before on their stream, the
/// ends of what the stream waits for, and their host call. Host calls follow one another every
/// 5 us. A message begins when both sides have come.
/// @return last end, ns
/// @throws DataError if ranks wait for each other for ever
std::int64_t set_times(std::span<StepWriter> ranks);

/// Sums over a rank that has times (set_times).
[[nodiscard]] RankTimes times_of(const StepWriter& rank);

/// The rank as a capture of one step that begins at 0 and ends at `end_ns`.
[[nodiscard]] FinishedRank finished(StepWriter rank, std::int64_t end_ns);

}  // namespace rubato

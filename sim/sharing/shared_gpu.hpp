#pragma once
// Kernels that run at the same time on one GPU (contention): they share SMs, DRAM bandwidth and the
// power limit. docs/contention.md.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "models/gpu/spec.hpp"
#include "models/kernel/model.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// How a collective slows down the kernels beside it, and they slow it down. Fitted to one type of
/// GPU and one library, `measured_in`: elsewhere a guess. docs/contention.md.
struct CollectiveSharing {
  static constexpr const char* measured_in =
      "A100-SXM4-40GB, MSCCL++ all-reduce of two ranks; "
      "models/data/measured/kareus_a100_overlap";

  double sm_gbs = 6.85;  ///< traffic one SM carries with a block of reference_threads, GB/s
  double threads_exponent = 0.854;  ///< that traffic grows with the block's threads to this power
  double core_share = 0.680;        ///< share of the copying time that follows the core clock
  double load_slowdown = 0.477;     ///< share by which a collective takes longer beside full load
  double dram_weight = 1.44;        ///< factor on a collective's DRAM use as others feel it, >= 0
  double sm_w = 0.43;               ///< power of a held SM at the voltage floor, W

  /// Worst relative errors of predicted blocks with SM counts that were held out of the fit.
  static constexpr double held_out_time_frac = 0.031, held_out_energy_frac = 0.042;

  static constexpr double reference_threads = 1024.0;
  static constexpr double reference_mhz = 1410.0;  ///< clock of sm_gbs and core_share
};

/// The SMs a kernel asks for.
struct SmDemand {
  double share = 1.0;  ///< SMs that a launch can fill, as a share of the GPU's, in (0, 1]
  double held = 0.0;  ///< SMs it keeps from all others while it runs: a collective's blocks; else 0
};

/// From the grid of a launch: one block of a collective holds one SM.
[[nodiscard]] SmDemand sm_demand(const Kernel& kernel, double sm_count);

/// A collective on a number of SMs. It takes a latency, plus the time its SMs take to copy what is
/// sent: traffic / (comm_sms x rate of one SM).
/// @param latency_s      time that neither SMs nor clock change, > 0
/// @param traffic_bytes  what each rank sends (message x bus_factor), > 0; read and written at both
///                       ends
/// @param comm_sms       SMs it holds, >= 1, one block each
/// @param block_threads  threads of a block, > 0
[[nodiscard]] KernelCoefficients collective_on_sms(const CollectiveSharing& sharing,
                                                   double latency_s, double traffic_bytes,
                                                   double comm_sms, double block_threads);

/// Time that SMs take to copy what a collective sends, at the reference clock, s.
[[nodiscard]] double copy_time_s(const CollectiveSharing& sharing, double traffic_bytes,
                                 double comm_sms, double block_threads);

/// The same collective with its SMs copying `added_s` longer at the reference clock, or shorter
/// where that is below 0. Core and fixed part keep at least 1 % of what they are in `known`.
[[nodiscard]] KernelCoefficients copying_longer(const CollectiveSharing& sharing,
                                                const KernelCoefficients& known, double added_s);

/// How fast each of some kernels runs beside the others, and what the board draws.
struct Sharing {
  std::vector<double> launches_per_s;  ///< in the order asked for
  std::vector<double> active_w;        ///< above idle, in the order asked for
  double idle_w = 0.0;
  double core_mhz = 0.0;  ///< in effect
  bool power_limited = false;

  [[nodiscard]] double power_w() const;
};

/// The kernels of a capture on one GPU at one requested clock. Answers are kept,
/// so one object serves one thread.
class SharedGpu {
 public:
  /// @param kernels   coefficients, shape [kernels]; those of a collective are for the SMs it holds
  ///                  (`demands`). The same collective on other SMs is another kernel
  /// @param demands   shape [kernels]
  SharedGpu(const GpuSpec& spec, std::vector<KernelCoefficients> kernels,
            std::vector<SmDemand> demands, const ClockPair& clock, double power_limit_w,
            const CollectiveSharing& collectives = {});

  /// From here on everything draws `factor` times as much. The limit is not touched: callers divide
  /// it, see GraphModel::held_clock.
  void draw(double factor) { power_factor_ = factor; }

  /// Rates and power of kernels that run together.
  /// @param running  indices of kernels, repeats allowed; may be empty (idle)
  /// @return valid while this object lives
  [[nodiscard]] const Sharing& at(std::span<const std::uint32_t> running);

 private:
  // One running kernel as it would be by itself on the SMs that are left to it. Uses are shares of
  // its time.
  struct Alone {
    OperatingPoint point;
    double core_use, dram_use, busy;
  };
  // A set of running kernels and what was worked out for it.
  struct Answer {
    std::size_t key = 0, size = 0;  // where its set lies in keys_
    Sharing sharing;
  };

  [[nodiscard]] Alone alone(const ClockState& state, std::uint32_t kernel, double held_frac) const;
  [[nodiscard]] Sharing unlimited(std::span<const std::uint32_t> running, const ClockState& state);
  [[nodiscard]] Sharing limited(std::span<const std::uint32_t> running);
  void grow();

  const GpuSpec* spec_;
  std::vector<KernelCoefficients> kernels_;
  std::vector<SmDemand> demands_;
  ClockPair clock_;
  double power_limit_w_;
  double power_factor_ = 1.0;
  CollectiveSharing collectives_;
  ClockState requested_;
  std::vector<std::uint32_t> keys_;   // of all answers, one after the other
  std::deque<Answer> answers_;        // their addresses stay
  std::vector<std::uint32_t> slots_;  // open addressing: answer + 1, or 0; size is a power of two
  std::vector<Alone> alone_;          // of the set being looked at
  std::vector<double> uses_;
};

/// Factor s by which the use of one resource takes longer when its users want more of it than there
/// is. For example, two kernels that alone use DRAM all the time: s = 2. s >= 1 solves
/// sum of u / (1 - u + u s) = 1; it is 1 if the uses u add up to no more than 1.
/// @param uses  share of a kernel's time alone in which it uses the resource, each in [0, 1]
[[nodiscard]] double stretch(std::span<const double> uses);

}  // namespace rubato

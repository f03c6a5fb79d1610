#pragma once
// What a saving per iteration means for a whole training run: energy, cost, emissions.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// A number and where it is from.
struct SourcedNumber {
  std::string key;  ///< as in the file
  double value = 0.0;
  std::string source;  ///< where it is from, not empty
};

/// Everything the result depends on besides the plan; nothing has a default.
struct ImpactInputs {
  static constexpr std::uint64_t schema = 1;

  SourcedNumber tokens;              ///< of the training run, > 0
  SourcedNumber gpus;                ///< > 0
  SourcedNumber pue;                 ///< power usage effectiveness: facility over IT energy, >= 1
  SourcedNumber price_per_kwh;       ///< of facility energy, >= 0, in `currency`
  SourcedNumber grid_gco2e_per_kwh;  ///< of facility energy, >= 0
  std::string currency;
  std::optional<SourcedNumber> host_w_per_gpu;  ///< rest of the server, >= 0; nothing: not counted
  std::optional<SourcedNumber> tokens_per_iteration;  ///< of one replica; nothing: trace knows it
  std::optional<SourcedNumber> gpus_per_replica;      ///< nothing: trace knows it

  /// All that are given, in the order of the file format.
  [[nodiscard]] std::vector<SourcedNumber> given() const;
};

/// @throws DataError naming line and key of what is wrong, missing, unknown or without a source
[[nodiscard]] ImpactInputs parse_impact_inputs(std::string_view text, std::string name);

/// A commented file of inputs: valid TOML, whose values are not numbers (nan) and are refused until
/// they are filled in.
[[nodiscard]] std::string impact_template();

/// Time and energy of one GPU's iteration under some clocks, by the simulator.
struct IterationTotals {
  double time_s = 0.0;
  double energy_j = 0.0;
};

/// How much of a training run one iteration does.
struct IterationWork {
  double tokens = 0.0;            ///< of one replica
  double gpus_per_replica = 0.0;  ///< GPUs that share this work
};

/// Totals of a training run under some clocks.
struct Impact {
  double wall_time_h = 0.0;
  double gpu_kwh = 0.0;
  double host_kwh = 0.0;      ///< 0 where host_w_per_gpu is not given
  double facility_kwh = 0.0;  ///< (gpu + host) x PUE
  double cost = 0.0;
  double kg_co2e = 0.0;
};

/// Totals of a run of tokens / (work.tokens x replicas) iterations on gpus / gpus_per_replica
/// replicas. All GPUs draw what the simulated one draws.
/// @throws DataError if gpus is not a multiple of gpus_per_replica
[[nodiscard]] Impact impact(const ImpactInputs& inputs, const IterationWork& work,
                            const IterationTotals& iteration);

}  // namespace rubato

#pragma once
// Results published by Chung et al., "Reducing Energy Bloat in Large Model Training" (Perseus),
// SOSP 2024, as the notebook of its artifact prints them: github.com/ml-energy/zeus, branch kronos,
// commit 38cb3f9, evaluation.ipynb and sosp24_data/emulation. Nothing of Rubato was fitted to them;
// spec a40 was fitted to one of the four profiles they are emulated from.

#include <array>
#include <cstdint>
#include <string_view>

namespace rubato {

/// Table 6: intrinsic savings (no straggler). Emulated with 8 stages, 1F1B, from a measured profile
/// of a tenth of a microbatch on one GPU of eight.
struct PublishedPipeline {
  std::string_view model, gpu;
  std::string_view profile;  ///< an embedded file
  double blocked_power_w;    ///< of a GPU that waits for others
  double step_s;             ///< time step of the artifact's solver (lowtime.hpp), s
  struct Row {
    std::uint32_t microbatches;
    double saving_pct;        ///< of energy, against the highest clocks
    double planned_time_s;    ///< fastest point of the artifact's frontier, in the profile's time
    double planned_energy_j;  ///< the same point: fitted costs, of one GPU per stage
  };
  std::array<Row, 4> rows;
  /// Figure 7: 96 microbatches while another pipeline takes 1.2 times as long. Energy saved in %,
  /// by Perseus and by EnvPipe; time over that of the highest clocks.
  double straggler_saving_pct, straggler_time_ratio, straggler_envpipe_saving_pct;
};

inline constexpr double published_straggler = 1.2;

inline constexpr std::array published_table6{
    PublishedPipeline{"GPT-3 175B",
                      "A100-SXM",
                      "gpt3-175b-a100",
                      83.64,
                      1e-3,
                      {{{12, 15.201604, 2.818, 6212.848925540129},
                        {24, 14.190355, 4.642, 12003.153883537394},
                        {48, 13.616616, 8.290, 23592.277889385798},
                        {96, 13.319138, 15.586, 46770.525901082554}}},
                      28.067412,
                      1.15,
                      12.403825},
    PublishedPipeline{"GPT-3 175B",
                      "A40",
                      "gpt3-175b-a40",
                      70.38,
                      1e-4,
                      {{{12, 11.810657, 7.5438, 11086.962008766948},
                        {24, 10.220271, 12.3618, 21195.92316948896},
                        {48, 9.340778, 21.9978, 41415.74348615552},
                        {96, 8.878493, 41.2698, 81855.38411948863}}},
                      24.693580,
                      1.11,
                      8.383894},
    PublishedPipeline{"Bloom 176B",
                      "A100-SXM",
                      "bloom-176b-a100",
                      83.64,
                      1e-3,
                      {{{12, 10.471891, 2.797, 6558.77264613902},
                        {24, 7.064365, 4.585, 12989.364081080514},
                        {48, 5.234097, 8.161, 25850.546950963522},
                        {96, 4.284563, 15.313, 51572.912690729965}}},
                      31.854074,
                      1.20,
                      1.480720},
    PublishedPipeline{"Bloom 176B",
                      "A40",
                      "bloom-176b-a40",
                      70.38,
                      1e-4,
                      {{{12, 6.973716, 7.128, 11265.485074226068},
                        {24, 4.488244, 11.676, 21745.506326365226},
                        {48, 3.122653, 20.772, 42705.54883064351},
                        {96, 2.405541, 38.964, 84625.63383919968}}},
                      22.513128,
                      1.14,
                      0.756875},
};

/// Tables 3 and 4: measured on real pipelines, energy saved and time added in %. Table 3 is without
/// stragglers. In Table 4 another pipeline takes 1.05 to 1.5 times as long (published_slowdowns).
struct PublishedTraining {
  std::string_view model, gpu;
  std::uint32_t stages, microbatch, microbatches;
  struct Method {
    double saving_pct, slowdown_pct;
    std::array<double, 6> straggler_saving_pct;
  };
  Method perseus, envpipe;
  /// What the models of this project know of it: a preset and a spec; empty: nothing.
  std::string_view preset = {}, spec = {};
};

inline constexpr std::array<double, 6> published_slowdowns{1.05, 1.1, 1.2, 1.3, 1.4, 1.5};

inline constexpr std::array published_tables_3_and_4{
    PublishedTraining{"GPT-3 1.3B",
                      "A100-PCIe",
                      4,
                      8,
                      128,
                      {13.2, 0.1, {14.7, 15.9, 15.5, 15.0, 14.6, 14.3}},
                      {8.8, 0.1, {8.7, 8.5, 8.3, 8.1, 7.9, 7.7}},
                      "gpt3-xl",
                      "a100-pcie-80gb"},
    PublishedTraining{"Bloom 3B",
                      "A100-PCIe",
                      4,
                      4,
                      128,
                      {11.7, 0.2, {13.6, 15.6, 15.2, 14.7, 14.3, 14.0}},
                      {8.9, 0.2, {8.8, 8.7, 8.4, 8.2, 8.0, 7.8}}},
    PublishedTraining{"BERT 1.3B",
                      "A100-PCIe",
                      4,
                      8,
                      32,
                      {12.9, 0.5, {14.9, 16.9, 16.4, 15.9, 15.5, 15.0}},
                      {8.0, 0.0, {7.9, 7.8, 7.5, 7.3, 7.1, 6.9}}},
    PublishedTraining{"T5 3B",
                      "A100-PCIe",
                      4,
                      4,
                      32,
                      {10.6, 1.3, {15.3, 18.0, 17.9, 17.4, 16.9, 16.5}},
                      {7.4, 3.4, {8.4, 8.2, 8.0, 7.8, 7.6, 7.4}}},
    PublishedTraining{"Wide-ResNet101 1.5B",
                      "A100-PCIe",
                      4,
                      64,
                      24,
                      {3.2, 2.3, {9.4, 12.7, 12.6, 12.3, 12.0, 11.6}},
                      {3.7, 4.1, {4.9, 4.8, 4.7, 4.5, 4.4, 4.3}}},
    PublishedTraining{"GPT-3 2.7B",
                      "A40",
                      8,
                      4,
                      256,
                      {21.1, 0.2, {24.5, 26.0, 25.9, 25.2, 24.6, 24.0}},
                      {21.7, 5.6, {22.9, 22.6, 22.0, 21.4, 20.9, 20.4}},
                      "gpt3-2.7b",
                      "a40"},
    PublishedTraining{"Bloom 3B",
                      "A40",
                      8,
                      4,
                      128,
                      {22.4, 0.0, {25.5, 26.4, 25.9, 25.2, 24.6, 24.0}},
                      {19.9, 0.0, {19.6, 19.3, 18.8, 18.3, 17.8, 17.4}}},
    PublishedTraining{"BERT 1.3B",
                      "A40",
                      8,
                      8,
                      32,
                      {15.7, 0.0, {20.0, 22.6, 24.1, 23.4, 22.8, 22.2}},
                      {16.5, 9.7, {19.2, 18.9, 18.3, 17.8, 17.4, 16.9}}},
    PublishedTraining{"T5 3B",
                      "A40",
                      8,
                      4,
                      32,
                      {28.5, 0.0, {27.9, 27.3, 26.2, 25.2, 24.3, 23.4}},
                      {19.3, 0.0, {18.4, 18.0, 17.3, 16.6, 16.0, 15.4}}},
    PublishedTraining{"Wide-ResNet101 1.5B",
                      "A40",
                      8,
                      32,
                      48,
                      {20.4, 0.2, {24.3, 26.2, 26.3, 25.7, 25.0, 24.4}},
                      {16.5, 0.5, {16.4, 16.2, 15.8, 15.4, 15.0, 14.6}}},
};

}  // namespace rubato

#pragma once
// What GPUs of one architecture share: how fast, and with how much energy, their SMs work on tiles
// of matrix products, on attention and on streams of bytes. One file for each architecture, which
// specs name and may override. What architectures share is in a file that they are `like`. The
// forms are those of models/kernel/operators.hpp. docs/models.md, section 4.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace rubato {

/// Arithmetic in one type: fp32 outside tensor cores, all other types on them where there are.
struct MathPath {
  double flop_per_cycle_sm = 0.0;  ///< peak of an SM, dense, > 0
  double share = 0.0;              ///< of that peak, in the steady state of a large product, > 0
  double core_pj_per_flop = 0.0;   ///< at the voltage floor, > 0
};

/// Output tile of a matrix product, elements.
struct Tile {
  double m = 0.0, n = 0.0;
};

/// How an SM works on tiles of a matrix product.
struct ProductCosts {
  std::vector<Tile> tiles;               ///< those that libraries have, not empty
  double k_step = 0.0;                   ///< depth that is loaded at a time, elements, >= 1
  double item_cycles = 0.0;              ///< beginning and end of a tile, cycles
  double split_cycles = 0.0;             ///< of each further part of a split depth, cycles
  double operand_bytes_per_cycle = 0.0;  ///< of A and B that an SM takes in, > 0
  double whole_waves = 0.0;  ///< 1: the last wave takes as long as a full one; 0: smooth
  double launch_s = 0.0;     ///< follows no clock, > 0
  double overlap = 0.0;      ///< p of the soft maximum of core and DRAM time, > 0
  double dram_factor = 1.0;  ///< effective over compulsory DRAM bytes, > 0
};

/// How an SM works on attention that keeps no scores in memory.
struct AttentionCosts {
  double share = 0.0;  ///< of the peak of its type, > 0
  /// Shares of implementations, by a part of the kernel's label in lower case.
  std::map<std::string, double> named;
  double backward = 1.0;          ///< share of gradients over that of the forward pass, > 0
  double item_cycles = 0.0;       ///< beginning and end of a tile of 128 queries, cycles
  double launch_s = 0.0;          ///< > 0
  double overlap_prefill = 0.0;   ///< p where many queries meet many keys, > 0
  double overlap_decode = 0.0;    ///< p where one query meets many keys, > 0
  double core_pj_per_flop = 0.0;  ///< at the voltage floor, > 0
  double dram_factor = 1.0;       ///< of the keys and values that decoding reads, > 0
};

/// A kernel that streams its operands. One that its instructions bound, such as a norm, takes few
/// elements per cycle, one that its accesses bound has a large factor.
struct StreamingCosts {
  KernelClass kind = KernelClass::other;  ///< whose kernels these are
  std::vector<std::string> named;  ///< only those with one of these in label or name, in lower case
  double elements_per_cycle_sm = 0.0;  ///< of the operands, core side, > 0
  double dram_factor = 1.0;            ///< effective over compulsory DRAM bytes, > 0
  double launch_s = 0.0;               ///< > 0
  double overlap = 0.0;                ///< > 0
};

/// Core voltage over its floor: 1 up to the knee, then rising with this slope.
struct VoltagePrior {
  double knee_mhz = 0.0;
  double slope_per_ghz = 0.0;
};

/// The operators of an architecture, or of one GPU that overrides some of them.
struct Operators {
  std::map<Dtype, MathPath> paths;  ///< fp32 is always among them
  ProductCosts tensor, cuda;        ///< products on tensor cores, and outside
  AttentionCosts attention;
  std::vector<StreamingCosts> streaming;  ///< the last one is of all kernels that no other is of
  VoltagePrior voltage;
  double stream_dram_factor = 1.0;    ///< on that of every stream, > 0
  double core_pj_per_byte = 0.0;      ///< of DRAM traffic, at the voltage floor
  double core_pj_per_sm_cycle = 0.0;  ///< of streams, while the core side is busy, at the floor
  double l2_speedup = 1.0;            ///< of streams that the L2 holds, >= 1
  double l2_mb = 0.0;                 ///< 1e6 bytes, > 0
  std::string source;
  std::string text;  ///< the JSON all this was read from, one object
};

/// Names of the architectures.
[[nodiscard]] std::vector<std::string> architectures();

/// The operators of an architecture, with what a spec overrides.
/// @param overrides  JSON object whose entries replace those of the architecture's file (JSON merge
///                   patch, RFC 7396)
/// @param where      for messages: the file of the overrides
/// @throws DataError naming the first wrong or missing entry, or an unknown architecture
[[nodiscard]] Operators read_operators(std::string_view architecture, std::string_view overrides,
                                       const std::string& where);

}  // namespace rubato

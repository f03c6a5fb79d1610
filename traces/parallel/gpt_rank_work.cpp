// The kernels of a GPT step, dealt out over tensor-, context- and expert-parallel ranks.

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "traces/gradient_buckets.hpp"
#include "traces/parallel/rank_work.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/limits.hpp"

namespace rubato {

namespace {

// What lies between the products of a layer: with sequence parallelism each rank has its part.
constexpr std::array<std::string_view, 11> between_products{
    "00_embedding",           "01_layernorm",   "09_residual_ln2",    "13_residual_ln1",
    "18_layernorm_bwd_final", "20_bias_fcproj", "28_layernorm_bwd_2", "29_bias_attproj",
    "43_layernorm_bwd_1",     "44_wpe_bwd",     "45_wte_bwd"};
// Products and what lies between them in the MLP, and the products of its weights.
constexpr std::array<std::string_view, 10> of_mlp{
    "10_gemm_fc",  "11_gelu",           "12_gemm_fcproj", "19_gelu_recompute", "22_gemm_dgelu",
    "23_gelu_bwd", "24_gemm_dw_fcproj", "25_bias_fc",     "26_gemm_dln2",      "27_gemm_dw_fc"};

void check_split(const GptShape& shape, const ModelSplit& split) {
  expect_range("cp", split.context);
  expect_range("ep", split.expert);
  expect_divides("cp", split.context, "seq", shape.seq);
  if (split.experts == 0) {
    if (split.expert > 1) {
      throw UsageError(fmt::format("ep {}, but {} has no experts", split.expert, shape.model),
                       {.in = {}, .hint = "--experts gives its layers some"});
    }
    return;
  }
  if (shape.tensor_parallel > 1) {
    throw UsageError(
        fmt::format("experts with tp {}; here their products are not split", shape.tensor_parallel),
        {.in = {}, .hint = "give layers with experts --tp 1"});
  }
  if (split.top_k == 0 || split.top_k > split.experts) {
    throw UsageError(
        fmt::format("a token goes to {} experts; expected 1 to {}", split.top_k, split.experts));
  }
  expect_divides("ep", split.expert, "experts", split.experts);
}

class GptWork {
 public:
  GptWork(const GptShape& shape, const ModelSplit& split) : shape_(shape), split_(split) {
    shape_.data_parallel = 1;
    shape_.seq /= split.context;
  }

  RankWork make(bool own_head) {
    const Trace trace = generate_gpt_trace(shape_);
    work_.name = shape_.model;
    work_.kernels = trace.kernels;
    work_.layers = shape_.layers;
    work_.dtype = shape_.dtype;
    work_.split = split_;
    work_.boundary_elements = tokens() * hidden() / (split_.sequence_parallel ? ranks() : 1.0);
    for (const Segment& segment : trace.segments) list_of(segment.name) = segment.launches;
    set_gradients(own_head);
    if (!split_.sequence_parallel) reduce_to_all();
    if (split_.experts > 0) add_experts();
    // The generator knows of no experts, and has positions for this rank's part of the sequence.
    scale_updates(work_.parameters() * ranks() / parameter_count(shape_));
    if (split_.context > 1) add_ring();
    return std::move(work_);
  }

 private:
  [[nodiscard]] double hidden() const { return static_cast<double>(shape_.hidden); }
  [[nodiscard]] double tokens() const { return static_cast<double>(shape_.batch * shape_.seq); }
  [[nodiscard]] double ranks() const { return static_cast<double>(shape_.tensor_parallel); }
  [[nodiscard]] double bytes() const { return element_bytes(shape_.dtype); }

  RankWork::Launches& list_of(std::string_view segment) {
    if (segment == "gradient clearing") return work_.clearing;
    if (segment == "embedding") return work_.embedding;
    if (segment == "layer forward") return work_.forward;
    if (segment == "loss") return work_.loss;
    if (segment == "head backward") return work_.head_backward;
    if (segment == "layer backward") return work_.backward;
    if (segment == "embedding backward") return work_.embedding_backward;
    return work_.optimizer;
  }

  KernelId add(Kernel kernel) {
    work_.kernels.push_back(std::move(kernel));
    work_.gradients.push_back(0.0);
    work_.of_expert.push_back(false);
    return id_at<KernelId>(work_.kernels.size() - 1);
  }

  // Where the list of names and the generator part ways, nothing may be left out in silence.
  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    const auto at = std::ranges::find(work_.kernels, name, &Kernel::name);
    if (at == work_.kernels.end())
      throw DataError(fmt::format("a GPT step has no kernel '{}'", name));
    return static_cast<std::size_t>(at - work_.kernels.begin());
  }

  void set_gradients(bool own_head) {
    // Positions are not split over a sequence's ranks.
    GptShape whole = shape_;
    whole.seq *= split_.context;
    for (const Kernel& kernel : work_.kernels) {
      const bool head = own_head && kernel.name == "17_gemm_dwte";
      work_.gradients.push_back(ready_gradients(whole, head ? "45_wte_bwd" : kernel.name));
      if (head) work_.copied = work_.gradients.back();
    }
    work_.of_expert.assign(work_.kernels.size(), false);
  }

  // Without sequence parallelism: sums go to all ranks, and nothing needs to be gathered.
  void reduce_to_all() {
    for (Kernel& kernel : work_.kernels) {
      if (!kernel.collective || kernel.collective->kind != CollectiveKind::reduce_scatter) continue;
      constexpr std::string_view before = "reduce_scatter";
      kernel.collective->kind = CollectiveKind::all_reduce;
      kernel.name.replace(kernel.name.find(before), before.size(), "all_reduce");
    }
    for (const std::string_view name : between_products)
      scale_work(work_.kernels[place_of(name)], ranks());
    if (shape_.optimizer) scale_work(work_.kernels[place_of("x1_memset_residual_grad")], ranks());
    for (RankWork::Launches* list : {&work_.forward, &work_.backward}) {
      std::erase_if(*list, [&](KernelId id) {
        const auto& collective = work_.kernel(id).collective;
        return collective && collective->kind == CollectiveKind::all_gather;
      });
    }
  }

  // The MLP becomes `experts` of them, of which this rank has its part; each token goes to top_k,
  // evenly.
  void add_experts() {
    const double local = static_cast<double>(split_.experts) / split_.expert;
    const double copies = split_.top_k;
    for (const std::string_view name : of_mlp) {
      const std::size_t k = place_of(name);
      Kernel& kernel = work_.kernels[k];
      kernel.flops = *kernel.flops * copies;
      if (kernel.gemm) {
        deal_out(kernel, local, copies);
      } else {
        kernel.dram_bytes = *kernel.dram_bytes * copies;
      }
      if (work_.gradients[k] <= 0.0) continue;
      work_.gradients[k] *= local;
      work_.of_expert[k] = true;
    }
    route(work_.forward, "10_gemm_fc", "12_gemm_fcproj", Pass::forward);
    route(work_.backward, "22_gemm_dgelu", "27_gemm_dw_fc", Pass::backward);
  }

  // What is done once for all parameters.
  void scale_updates(double factor) {
    for (const RankWork::Launches* list : {&work_.clearing, &work_.optimizer})
      for (const KernelId id : *list) scale_work(work_.kernels[index(id)], factor);
  }

  // One product of all rows as one for each local expert, each with its share of the rows.
  void deal_out(Kernel& kernel, double local, double copies) const {
    GemmShape& gemm = *kernel.gemm;
    const bool of_weights = kernel.name.find("_dw_") != std::string::npos;
    std::uint64_t& rows = of_weights ? gemm.k : gemm.n;
    rows = std::max<std::uint64_t>(
        static_cast<std::uint64_t>(static_cast<double>(rows) * copies / local), 1);
    gemm.batch = static_cast<std::uint64_t>(local);
    kernel.dram_bytes =
        gemm_kernel("", kernel.kind, kernel.pass, kernel.dtype, gemm, false, of_weights).dram_bytes;
  }

  // Tokens go to their experts before, and come back behind, in the order they came.
  void route(RankWork::Launches& list, std::string_view first, std::string_view last, Pass pass) {
    const char way = pass == Pass::forward ? 'f' : 'b';
    const double moved = tokens() * split_.top_k * hidden();
    const auto at = [&](std::string_view name) {
      return std::ranges::find(list, id_at<KernelId>(place_of(name)));
    };
    RankWork::Launches before, behind;
    if (pass == Pass::forward) before.push_back(router());
    before.push_back(permute(fmt::format("e0_permute_{}", way), moved, pass));
    behind.push_back(permute(fmt::format("e3_unpermute_{}", way), moved, pass));
    if (split_.expert > 1 && shape_.collectives) {
      // Ranks that share experts are the nearest of those with the same parameters.
      const Collective exchange{CollectiveKind::all_to_all, moved * bytes(), split_.expert, 1};
      before.push_back(add(collective_kernel(fmt::format("e1_all_to_all_dispatch_{}", way),
                                             exchange, pass, shape_.dtype)));
      behind.insert(behind.begin(),
                    add(collective_kernel(fmt::format("e2_all_to_all_combine_{}", way), exchange,
                                          pass, shape_.dtype)));
    }
    list.insert(std::next(at(last)), behind.begin(), behind.end());
    list.insert(at(first), before.begin(), before.end());
  }

  KernelId router() {
    return add(gemm_kernel("e0_gemm_router", KernelClass::gemm, Pass::forward, shape_.dtype,
                           {split_.experts, shape_.batch * shape_.seq, shape_.hidden, 1}));
  }

  KernelId permute(const std::string& name, double elements, Pass pass) {
    return element_wise(name, KernelClass::permute, 0.0, 2.0 * bytes() * elements, pass);
  }

  KernelId element_wise(const std::string& name, KernelClass kind, double flops, double dram_bytes,
                        Pass pass) {
    return add(derived_kernel(name, name, kind, pass, shape_.dtype, flops, dram_bytes));
  }

  // Each rank of a ring passes the block it holds on. Where the ring leaves a node, its slowest hop
  // between nodes sets its pace.
  void add_ring() {
    const double own = tokens() * hidden() / ranks();  // elements of queries
    AttentionRing& ring = work_.ring;
    ring.ranks = split_.context;
    const Collective hop{CollectiveKind::send_recv, 2.0 * own * bytes(), 2,
                         static_cast<std::uint32_t>(shape_.tensor_parallel)};
    ring.send_kv = add(collective_kernel("r0_send_kv", hop, Pass::forward, shape_.dtype));
    ring.send_dkv = add(collective_kernel("r1_send_dkv", hop, Pass::backward, shape_.dtype));
    // Reads the sum and a block's part, writes the sum.
    ring.merge = element_wise("r2_merge_blocks", KernelClass::elementwise, 4.0 * own,
                              3.0 * bytes() * own, Pass::forward);
    ring.merge_grads = element_wise("r3_merge_gradients", KernelClass::elementwise, 3.0 * own,
                                    9.0 * bytes() * own, Pass::backward);
  }

  GptShape shape_;  // of this rank: its part of the sequence
  ModelSplit split_;
  RankWork work_;
};

}  // namespace

RankWork gpt_rank_work(const GptShape& shape, const ModelSplit& split, bool own_head) {
  check_split(shape, split);
  return GptWork(shape, split).make(own_head);
}

}  // namespace rubato

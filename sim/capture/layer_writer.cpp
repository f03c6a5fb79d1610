#include "sim/capture/layer_writer.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rubato {

namespace {

StepStream stream_of(const Kernel& collective) {
  return collective.collective->kind == CollectiveKind::all_to_all ? StepStream::expert
                                                                   : StepStream::tensor;
}

// Makes a product one of `chunks` parts: of its rows, or of the sum over rows where rows are what
// it sums over.
void shorten(Kernel& kernel, double chunks) {
  GemmShape& gemm = *kernel.gemm;
  const double m = static_cast<double>(gemm.m), k = static_cast<double>(gemm.k);
  // The other operand is read again for every part.
  const double operand = element_bytes(kernel.dtype) * m * k * static_cast<double>(gemm.batch);
  kernel.flops = *kernel.flops / chunks;
  kernel.dram_bytes = *kernel.dram_bytes / chunks + operand * (chunks - 1.0) / chunks;
  gemm.n =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(gemm.n) / chunks), 1);
}

}  // namespace

void LayerWriter::run(const Launches& list, bool last,
                      const std::function<void(KernelId)>& launched) {
  last_ = last;
  launched_ = launched;
  for (std::size_t at = 0; at < list.size();) at += run_at(list, at);
}

std::size_t LayerWriter::run_at(const Launches& list, std::size_t at) {
  const Kernel& kernel = work_.kernel(list[at]);
  const KernelPart part = work_.part(list[at]);
  const bool attends = part == KernelPart::attention || part == KernelPart::attention_backward;
  if (work_.ring.ranks > 1 && attends) return run_ring(list, at);
  if (part == KernelPart::gradient_sum && !last_) return 1;
  if (const std::size_t written = run_bulk(list, at)) return written;
  if (overlap_.chunks > 1) {
    if (sends(list, at, CollectiveKind::all_gather) && is_product(list, at + 1)) {
      gather_in_chunks(list[at], list[at + 1]);
      return 2;
    }
    if (is_product(list, at) && sums(list, at + 1)) {
      scatter_in_chunks(list[at], list[at + 1]);
      return 2;
    }
  }
  if (kernel.collective) {
    communicate_alone(list[at]);
  } else {
    launch(list[at]);
  }
  return 1;
}

// Four launches overlapped: the gradient of a layer's input; its sum over the ranks; the all-gather
// of the input where it was not kept; the gradient of the weights.
std::size_t LayerWriter::run_bulk(const Launches& list, std::size_t at) {
  if (!overlap_.bulk || !is_product(list, at) || !sums(list, at + 1)) return 0;
  const bool gathers = sends(list, at + 2, CollectiveKind::all_gather);
  const std::size_t weights = at + (gathers ? 3 : 2);
  if (!is_product(list, weights)) return 0;
  std::uint32_t gathered = 0;
  if (gathers) gathered = begin(list[at + 2]);
  launch(list[at]);
  const std::uint32_t summed = begin(list[at + 1]);
  if (gathers) step_.wait(StepStream::compute, gathered);
  launch(list[weights]);
  step_.wait(StepStream::compute, summed);
  return weights - at + 1;
}

// Ring attention: blocks of keys and values go round the ranks while attention of the block that is
// here runs. In the backward pass the gradients of each block follow it, and are home at the end.
std::size_t LayerWriter::run_ring(const Launches& list, std::size_t at) {
  const KernelPart part = work_.part(list[at]);
  const bool backward = part == KernelPart::attention_backward;
  std::size_t end = at;
  while (end < list.size() && work_.part(list[end]) == part) ++end;
  const AttentionRing& ring = work_.ring;
  for (std::uint32_t round = 0; round < ring.ranks; ++round) {
    const bool last = round + 1 == ring.ranks;
    // The first block is there when the kernels before are over, others when they were received.
    if (round == 0 && !last) step_.follow(StepStream::context, StepStream::compute);
    if (!last) step_.communicate(StepStream::context, ring.send_kv);
    const std::uint32_t came = step_.mark(StepStream::context);
    for (std::size_t i = at; i < end; ++i)
      step_.launch(round == 0 ? list[i] : ring.of_other_block[index(list[i])]);
    // Gradients of this block are added to those received for it from the ranks before.
    if (round > 0 && backward) step_.follow(StepStream::compute, StepStream::gradients_home);
    if (round > 0 || backward) step_.launch(backward ? ring.merge_grads : ring.merge);
    if (backward) {
      step_.follow(StepStream::gradients_home, StepStream::compute);
      step_.communicate(StepStream::gradients_home, ring.send_dkv);
    }
    if (!last) step_.wait(StepStream::compute, came);
  }
  if (backward) step_.follow(StepStream::compute, StepStream::gradients_home);
  return end - at;
}

void LayerWriter::gather_in_chunks(KernelId gather, KernelId product) {
  const KernelId part = chunk_of(gather), rows = chunk_of(product);
  std::vector<std::uint32_t> came;
  step_.follow(StepStream::tensor, StepStream::compute);
  for (std::uint32_t c = 0; c < overlap_.chunks; ++c) {
    step_.communicate(StepStream::tensor, part);
    came.push_back(step_.mark(StepStream::tensor));
  }
  for (std::uint32_t c = 0; c < overlap_.chunks; ++c) {
    step_.wait(StepStream::compute, came[c]);
    step_.launch(rows);
  }
  if (launched_) launched_(product);
}

void LayerWriter::scatter_in_chunks(KernelId product, KernelId scatter) {
  const KernelId part = chunk_of(scatter), rows = chunk_of(product);
  for (std::uint32_t c = 0; c < overlap_.chunks; ++c) {
    step_.launch(rows);
    step_.follow(StepStream::tensor, StepStream::compute);
    step_.communicate(StepStream::tensor, part);
  }
  if (launched_) launched_(product);
  step_.follow(StepStream::compute, StepStream::tensor);
}

void LayerWriter::communicate_alone(KernelId kernel) {
  step_.wait(StepStream::compute, begin(kernel));
}

void LayerWriter::launch(KernelId kernel) {
  step_.launch(kernel);
  if (launched_) launched_(kernel);
}

// Launches a collective behind all kernels so far. @return the mark to wait for
std::uint32_t LayerWriter::begin(KernelId kernel) {
  const StepStream stream = stream_of(work_.kernel(kernel));
  step_.follow(stream, StepStream::compute);
  step_.communicate(stream, kernel);
  return step_.mark(stream);
}

KernelId LayerWriter::chunk_of(KernelId kernel) {
  Kernel part = work_.kernel(kernel);
  const double chunks = overlap_.chunks;
  part.name += fmt::format("_of_{}", overlap_.chunks);
  if (part.collective) {
    part.collective->message_bytes /= chunks;
    part.dram_bytes = *part.dram_bytes / chunks;
  } else {
    shorten(part, chunks);
  }
  return step_.kernels().add(part);
}

// Whether a launch is a matrix product that may be overlapped. Those of experts are not, as in
// Megatron-LM.
bool LayerWriter::is_product(const Launches& list, std::size_t at) const {
  return at < list.size() && work_.kernel(list[at]).gemm &&
         work_.kernel(list[at]).kind == KernelClass::gemm &&
         work_.part(list[at]) != KernelPart::expert;
}

bool LayerWriter::sends(const Launches& list, std::size_t at, CollectiveKind kind) const {
  if (at >= list.size()) return false;
  const auto& collective = work_.kernel(list[at]).collective;
  return collective && collective->kind == kind;
}

bool LayerWriter::sums(const Launches& list, std::size_t at) const {
  if (at < list.size() && work_.part(list[at]) == KernelPart::gradient_sum) return false;
  return sends(list, at, CollectiveKind::reduce_scatter) ||
         sends(list, at, CollectiveKind::all_reduce);
}

}  // namespace rubato

#include "traces/transformer/kernel_list.hpp"

#include <cmath>
#include <utility>

namespace rubato {

double distinct_tokens(double tokens, double vocabulary) {
  if (vocabulary <= 1.0) return 1.0;
  return std::round(vocabulary * -std::expm1(tokens * std::log1p(-1.0 / vocabulary)));
}

Kernel derived_kernel(std::string name, std::string label, KernelClass kind, Pass pass, Dtype dtype,
                      double flops, double bytes) {
  return {.name = std::move(name),
          .label = std::move(label),
          .kind = kind,
          .pass = pass,
          .dtype = dtype,
          .flops = flops,
          .dram_bytes = bytes,
          .gemm = {},
          .collective = {},
          .launch = {},
          .measured_time_s = {},
          .work_source = WorkSource::derived};
}

Kernel gemm_kernel(std::string name, KernelClass kind, Pass pass, Dtype dtype,
                   const GemmShape& shape, bool bias, bool accumulates) {
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  const double outputs = accumulates ? 2.0 : 1.0;
  Kernel kernel = derived_kernel(
      std::move(name), "GEMM", kind, pass, dtype, 2.0 * m * n * k * batch,
      element_bytes(dtype) * batch * (m * k + k * n + outputs * m * n + (bias ? m : 0.0)));
  kernel.gemm = shape;
  return kernel;
}

void scale_work(Kernel& kernel, double factor) {
  for (std::optional<double>* work : {&kernel.flops, &kernel.dram_bytes})
    if (*work) **work *= factor;
}

Kernel collective_kernel(std::string name, const Collective& collective, Pass pass, Dtype dtype) {
  Kernel kernel = derived_kernel(std::move(name), "NCCL", KernelClass::communication, pass, dtype,
                                 0.0, 2.0 * collective.message_bytes);
  kernel.collective = collective;
  return kernel;
}

void KernelList::segment(std::string name, std::uint64_t repeat) {
  made_.trace.segments.push_back(
      {.name = std::move(name), .repeat = static_cast<std::uint32_t>(repeat), .launches = {}});
}

Kernel& KernelList::add(std::string name, std::string label, KernelClass kind, double flops,
                        double bytes) {
  return append(
      derived_kernel(std::move(name), std::move(label), kind, pass_, rank_.dtype, flops, bytes));
}

Kernel& KernelList::append(Kernel kernel) {
  made_.trace.kernels.push_back(std::move(kernel));
  made_.gradients.push_back(0.0);
  made_.parts.push_back(part_);
  made_.trace.segments.back().launches.push_back(id_at<KernelId>(made_.trace.kernels.size() - 1));
  return made_.trace.kernels.back();
}

Kernel& KernelList::gemm(std::string name, KernelClass kind, const GemmShape& shape, bool bias,
                         bool accumulates) {
  return append(gemm_kernel(std::move(name), kind, pass_, rank_.dtype, shape, bias, accumulates));
}

void KernelList::linear(const std::string& prefix, const LinearLayer& layer) {
  gemm(prefix + "_gemm_" + layer.name, KernelClass::gemm,
       {layer.outputs, layer.rows, layer.inputs, 1}, layer.bias);
}

void KernelList::linear_input(const LinearLayer& layer, bool accumulates) {
  gemm("bwd_gemm_" + layer.name + "_input", KernelClass::gemm,
       {layer.inputs, layer.rows, layer.outputs, 1}, false, accumulates);
}

Kernel& KernelList::weight_gradient(std::string name, const GemmShape& shape, bool bias) {
  Kernel& kernel = gemm(std::move(name), KernelClass::gemm, shape, bias, rank_.accumulates);
  const double elements = static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                          static_cast<double>(shape.batch);
  kernel.dram_bytes =
      *kernel.dram_bytes + (gradient_element() - e_) * (rank_.accumulates ? 2.0 : 1.0) * elements;
  return kernel;
}

void KernelList::linear_weight(const LinearLayer& layer) {
  weight_gradient("bwd_gemm_" + layer.name + "_weight",
                  {layer.inputs, layer.outputs, layer.rows, 1}, layer.bias);
  const double outputs = static_cast<double>(layer.outputs);
  const double weight = outputs * static_cast<double>(layer.inputs);
  const double bias = layer.bias ? outputs : 0.0;
  finishes((layer.split == LinearSplit::rows ? weight / t_ : weight) +
           (layer.split == LinearSplit::outputs ? bias : bias / t_));
}

void KernelList::collective(std::string name, CollectiveKind kind, double elements,
                            std::uint64_t group, std::uint64_t stride) {
  if (group < 2 || !rank_.collectives) return;
  const Collective one{kind, elements * e_, static_cast<std::uint32_t>(group),
                       static_cast<std::uint32_t>(stride)};
  append(collective_kernel(std::move(name), one, pass_, rank_.dtype));
}

void KernelList::gather(const std::string& prefix, const std::string& what, double elements) {
  if (rank_.sequence_parallel)
    collective(prefix + "_all_gather_" + what, CollectiveKind::all_gather, elements,
               rank_.tensor_parallel);
}

void KernelList::sum(const std::string& prefix, const std::string& what, double elements) {
  const bool scatter = rank_.sequence_parallel;
  collective(prefix + (scatter ? "_reduce_scatter_" : "_all_reduce_") + what,
             scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, elements,
             rank_.tensor_parallel);
}

GeneratedStep KernelList::take(std::string name, Provenance provenance) {
  made_.trace.name = std::move(name);
  made_.trace.provenance = std::move(provenance);
  validate(made_.trace, made_.trace.name);
  return std::exchange(made_, {});
}

}  // namespace rubato

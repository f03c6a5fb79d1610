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

Kernel gemm_kernel(std::string name, KernelClass kind, Pass pass, const ProductType& type,
                   const GemmShape& shape, bool bias, bool accumulates) {
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  const double outputs = accumulates ? 2.0 : 1.0;
  Kernel kernel =
      derived_kernel(std::move(name), "GEMM", kind, pass, type.dtype, 2.0 * m * n * k * batch,
                     batch * (element_bytes(type.dtype) * (m * k + k * n) +
                              type.result_element * (outputs * m * n + (bias ? m : 0.0))));
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
                         bool accumulates, bool in_layer) {
  const ProductType type{in_layer ? rank_.layer_product : rank_.product, e_};
  return append(gemm_kernel(std::move(name), kind, pass_, type, shape, bias, accumulates));
}

namespace {

double elements_of(std::uint64_t rows, std::uint64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

}  // namespace

// Reads a matrix and writes it in the products' type twice: as it is, and transposed for the
// product of the other pass.
void KernelList::quantise(const std::string& name, double elements) {
  constexpr double copies = 2.0;
  add(name, "quantise", KernelClass::elementwise, 2.0 * elements,
      (e_ + copies * element_bytes(rank_.layer_product)) * elements);
}

void KernelList::linear(const std::string& prefix, const LinearLayer& layer) {
  const double weight = elements_of(layer.outputs, layer.inputs);
  if (layer.in_layer && rank_.layer_product != rank_.product) {
    quantise(prefix + "_quantise_" + layer.name + "_input", elements_of(layer.rows, layer.inputs));
    quantise(prefix + "_quantise_" + layer.name + "_weight", weight);
  }
  if (autocasts())
    add(prefix + "_cast_" + layer.name + "_weight", "cast", KernelClass::elementwise, 0.0,
        (e_ + stream_element()) * weight);
  gemm(prefix + "_gemm_" + layer.name, KernelClass::gemm,
       {layer.outputs, layer.rows, layer.inputs, 1}, layer.bias, false, layer.in_layer);
}

void KernelList::linear_input(const LinearLayer& layer, bool accumulates) {
  if (layer.in_layer && rank_.layer_product != rank_.product)
    quantise("bwd_quantise_" + layer.name, elements_of(layer.rows, layer.outputs));
  gemm("bwd_gemm_" + layer.name + "_input", KernelClass::gemm,
       {layer.inputs, layer.rows, layer.outputs, 1}, false, accumulates, layer.in_layer);
}

Kernel& KernelList::weight_gradient(std::string name, const GemmShape& shape, bool bias,
                                    bool in_layer) {
  Kernel& kernel =
      gemm(std::move(name), KernelClass::gemm, shape, bias, rank_.accumulates, in_layer);
  const double elements = static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                          static_cast<double>(shape.batch);
  kernel.dram_bytes =
      *kernel.dram_bytes + (gradient_element() - e_) * (rank_.accumulates ? 2.0 : 1.0) * elements;
  return kernel;
}

void KernelList::linear_weight(const LinearLayer& layer) {
  const double outputs = static_cast<double>(layer.outputs);
  const double weight = elements_of(layer.outputs, layer.inputs);
  weight_gradient("bwd_gemm_" + layer.name + "_weight",
                  {layer.inputs, layer.outputs, layer.rows, 1}, layer.bias && !rank_.eager,
                  layer.in_layer);
  if (autocasts())
    add("bwd_cast_" + layer.name + "_weight", "cast", KernelClass::elementwise, 0.0,
        (e_ + stream_element()) * weight);
  if (layer.bias && rank_.eager)
    add("bwd_bias_" + layer.name, "bias bwd", KernelClass::reduce,
        elements_of(layer.rows, layer.outputs), e_ * elements_of(layer.rows, layer.outputs));
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

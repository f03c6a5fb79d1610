#pragma once
// What kernels are, by the names their authors gave them. Rules: docs/trace-import.md, "Classes".

#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace rubato {

/// A kernel's name taken apart. The views point into the text it was made from.
struct KernelName {
  std::string_view function;  ///< "dispatch" of "void deep_ep::intranode::dispatch<8>(int*)"
  std::vector<std::string_view> scope;  ///< namespaces and classes around it, outermost first
  /// Template arguments; of a mangled name the names in them.
  std::vector<std::string_view> arguments;
};

/// Takes a name apart, demangled or mangled (_ZN...). Of one that is cut off, what is there.
[[nodiscard]] KernelName parse_kernel_name(std::string_view full);

/// "ampere_sgemm_128x64_tn" of "void ampere_sgemm_128x64_tn(float*)": without return type,
/// namespaces, template and call arguments.
[[nodiscard]] std::string short_kernel_name(std::string_view full);

/// Class of a kernel: by the name of its function; where that says nothing by its template
/// arguments, then by the operator that launched it, then by the namespaces around it. `other` if
/// nothing matches.
/// @param op  the framework's operator, e.g. "aten::mm"; empty: not known
[[nodiscard]] KernelClass kernel_class_of(std::string_view full_name, std::string_view op = {});

/// Whether an operator of a framework is a collective: "c10d::allreduce_", "symm_mem::...".
[[nodiscard]] bool is_collective_operator(std::string_view name);

/// Collective of a kernel, of whatever library, or of a framework's label, e.g.
/// "ncclDevKernel_AllReduce", "_allgather_base".
[[nodiscard]] CollectiveKind collective_kind_of(std::string_view name);

}  // namespace rubato

#include "traces/pipeline/captured_passes.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "traces/pipeline/captured_step_end.hpp"

namespace rubato {

namespace {

constexpr double least_share = 0.1;  // of the usual time of its kind: shorter parts are no passes

std::optional<PassKind> kind_of(Pass pass) {
  switch (pass) {
    case Pass::embedding:
    case Pass::forward:
    case Pass::loss: return PassKind::forward;
    case Pass::backward:
    case Pass::embedding_backward: return PassKind::backward;
    case Pass::optimizer:
    case Pass::unknown: break;
  }
  return std::nullopt;
}

bool speaks_of_pipelines(const CaptureGroup& group) {
  std::string text = group.name + ' ' + group.description;
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text.find("pipeline") != std::string::npos;
}

// Launches of one kind with nothing sent or received between them.
struct Part {
  CapturedPass pass;
  std::uint32_t messages = 0;  // of the rank, before this part
  double main_s = 0.0;         // on the main stream
  bool begun = false;
};

class PassFinder {
 public:
  explicit PassFinder(const Capture& capture) : capture_(capture), messages_(capture) {
    check_devices();
    stage_.main_stream = longest_stream();
  }

  CapturedStage find() && {
    collect_parts();
    drop_short();
    merge();
    keep_equal_steps();
    CapturedStepEnds ends = find_step_ends(capture_, stage_);
    stage_.ends = std::move(ends.passes);
    if (ends.unknown_s > 0.0)
      stage_.notes.push_back(fmt::format(
          "{}: {:.3g} ms of collectives after the last pass of a step are left out: the file says "
          "neither ranks of their group nor that it is data-parallel",
          capture_.name, ms_per_s * ends.unknown_s));
    return std::move(stage_);
  }

 private:
  [[nodiscard]] bool computes(const CapturedLaunch& launch) const {
    return capture_.kernels[index(launch.kernel)].kind != KernelClass::communication;
  }

  void check_devices() const {
    std::optional<std::uint32_t> device;
    for (const CapturedLaunch& launch : capture_.launches) {
      const std::uint32_t own = capture_.streams[launch.stream].device;
      if (device.value_or(own) != own)
        throw DataError(
            fmt::format("{}: several GPUs in one capture; expected one rank", capture_.name));
      device = own;
    }
    if (std::ranges::none_of(capture_.launches,
                             [&](const CapturedLaunch& l) { return messages_.has(l); }))
      throw DataError(fmt::format("{}: nothing is sent or received, so where passes begin is not "
                                  "known",
                                  capture_.name),
                      {.in = {}, .hint = "profile ranks of a pipeline, NCCL kernels included"});
  }

  [[nodiscard]] std::uint32_t longest_stream() const {
    std::vector<std::int64_t> computing_ns(capture_.streams.size(), 0);
    for (const CapturedLaunch& launch : capture_.launches) {
      if (computes(launch)) computing_ns[launch.stream] += launch.duration_ns;
    }
    return static_cast<std::uint32_t>(std::ranges::max_element(computing_ns) -
                                      computing_ns.begin());
  }

  // In the order of the host's calls, which is that of the schedule; kernels of one call and
  // moments without calls by their start.
  [[nodiscard]] std::vector<std::uint32_t> in_order() const {
    const bool calls = std::ranges::all_of(
        capture_.launches, [](const CapturedLaunch& l) { return l.launch_ns.has_value(); });
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < capture_.launches.size(); ++i) {
      if (capture_.launches[i].step || capture_.steps.empty()) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) {
      const CapturedLaunch& launch = capture_.launches[i];
      return std::pair(calls ? *launch.launch_ns : launch.start_ns, launch.start_ns);
    });
    return order;
  }

  void collect_parts() {
    std::uint32_t messages = 0;
    bool open = false;
    for (const std::uint32_t i : in_order()) {
      const CapturedLaunch& launch = capture_.launches[i];
      const std::uint32_t step = launch.step.value_or(0);
      if (messages_.has(launch) || launch.pass == Pass::optimizer) {
        ++messages;
        open = false;
        continue;
      }
      const auto kind = kind_of(launch.pass);
      const bool fits = open && parts_.back().pass.step == step &&
                        kind.value_or(parts_.back().pass.kind) == parts_.back().pass.kind;
      if (!fits && !kind) {
        add_other(launch);
        continue;
      }
      if (!fits) {
        Part& part = parts_.emplace_back();
        part.pass.kind = *kind;
        part.pass.step = step;
        part.messages = messages;
        open = true;
      }
      add(parts_.back(), i);
    }
  }

  void add(Part& part, std::uint32_t i) {
    const CapturedLaunch& launch = capture_.launches[i];
    part.pass.launches.push_back(i);
    if (launch.stream != stage_.main_stream) return;
    extend(part, launch.start_ns, launch.end_ns());
    part.main_s += s_per_ns * static_cast<double>(launch.duration_ns);
  }

  static void extend(Part& part, std::int64_t start_ns, std::int64_t end_ns) {
    part.pass.start_ns = part.begun ? std::min(part.pass.start_ns, start_ns) : start_ns;
    part.pass.end_ns = part.begun ? std::max(part.pass.end_ns, end_ns) : end_ns;
    part.begun = true;
  }

  void add_other(const CapturedLaunch& launch) {
    if (launch.stream != stage_.main_stream || !computes(launch)) return;
    other_s_[launch.step.value_or(0)] += s_per_ns * static_cast<double>(launch.duration_ns);
  }

  // The weighted median of the lengths of a kind: half of its time is in parts that are longer.
  [[nodiscard]] double usual_s(PassKind kind) const {
    std::vector<double> lengths_s;
    double total_s = 0.0;
    for (const Part& part : parts_) {
      if (part.pass.kind != kind) continue;
      lengths_s.push_back(part.main_s);
      total_s += part.main_s;
    }
    std::ranges::sort(lengths_s);
    double sum_s = 0.0;
    for (const double length_s : lengths_s) {
      sum_s += length_s;
      if (2.0 * sum_s >= total_s) return length_s;
    }
    return 0.0;
  }

  void drop_short() {
    const double forward_s = least_share * usual_s(PassKind::forward);
    const double backward_s = least_share * usual_s(PassKind::backward);
    std::erase_if(parts_, [&](const Part& part) {
      const bool is_short =
          !part.begun ||
          part.main_s < (part.pass.kind == PassKind::forward ? forward_s : backward_s);
      if (is_short) other_s_[part.pass.step] += part.main_s;
      return is_short;
    });
  }

  // A short part may have cut a pass in two.
  void merge() {
    std::vector<Part> merged;
    for (Part& part : parts_) {
      Part* last = merged.empty() ? nullptr : &merged.back();
      if (last == nullptr || last->messages != part.messages || last->pass.kind != part.pass.kind ||
          last->pass.step != part.pass.step) {
        merged.push_back(std::move(part));
        continue;
      }
      extend(*last, part.pass.start_ns, part.pass.end_ns);
      last->main_s += part.main_s;
      last->pass.launches.insert(last->pass.launches.end(), part.pass.launches.begin(),
                                 part.pass.launches.end());
    }
    parts_ = std::move(merged);
  }

  // Passes of each step, without what comes after its last backward pass.
  [[nodiscard]] std::map<std::uint32_t, std::vector<Part*>> steps() {
    std::map<std::uint32_t, std::vector<Part*>> steps;
    for (Part& part : parts_) steps[part.pass.step].push_back(&part);
    for (auto& [step, parts] : steps) {
      while (!parts.empty() && parts.back()->pass.kind == PassKind::forward) {
        other_s_[step] += parts.back()->main_s;
        parts.pop_back();
      }
    }
    return steps;
  }

  void keep_equal_steps() {
    auto by_step = steps();
    std::map<std::vector<PassKind>, std::uint32_t> orders;
    const auto order_of = [](const std::vector<Part*>& parts) {
      std::vector<PassKind> order;
      for (const Part* part : parts) order.push_back(part->pass.kind);
      return order;
    };
    for (const auto& [step, parts] : by_step) {
      const std::vector<PassKind> order = order_of(parts);
      const auto forward = std::ranges::count(order, PassKind::forward);
      if (forward > 0 && 2 * forward == std::ssize(order)) ++orders[order];
    }
    if (orders.empty())
      throw DataError(
          fmt::format("{}: no step has as many forward as backward passes", capture_.name),
          {.in = {}, .hint = "profile whole steps, forward and backward, with their annotations"});
    stage_.order =
        std::ranges::max_element(orders, {}, [](const auto& o) { return o.second; })->first;
    for (auto& [step, parts] : by_step) {
      if (order_of(parts) != stage_.order) {
        stage_.notes.push_back(fmt::format("{}: step {} has other passes than most, left out",
                                           capture_.name, name_of_step(step)));
        continue;
      }
      keep(parts);
      stage_.other_s += other_s_[step];
    }
    stage_.other_s /= stage_.steps;
  }

  [[nodiscard]] std::string name_of_step(std::uint32_t step) const {
    return step < capture_.steps.size() ? capture_.steps[step].name : fmt::format("{}", step);
  }

  void keep(const std::vector<Part*>& parts) {
    ++stage_.steps;
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      parts[i]->pass.position = i;
      stage_.passes.push_back(std::move(parts[i]->pass));
    }
  }

  const Capture& capture_;
  PipelineMessages messages_;
  CapturedStage stage_;
  std::vector<Part> parts_;
  std::map<std::uint32_t, double> other_s_;  // by step
};

}  // namespace

PipelineMessages::PipelineMessages(const Capture& capture) : capture_(capture) {
  named_ = std::ranges::any_of(capture.launches, [&](const CapturedLaunch& launch) {
    return is_send(launch) && in_named_group(launch);
  });
}

bool PipelineMessages::has(const CapturedLaunch& launch) const {
  return is_send(launch) && (!named_ || in_named_group(launch));
}

bool PipelineMessages::is_send(const CapturedLaunch& launch) const {
  return launch.collective &&
         capture_.collectives[*launch.collective].kind == CollectiveKind::send_recv;
}

bool PipelineMessages::in_named_group(const CapturedLaunch& launch) const {
  const auto& group = capture_.collectives[*launch.collective].group;
  return group && speaks_of_pipelines(capture_.groups[*group]);
}

CapturedStage find_passes(const Capture& capture) { return PassFinder(capture).find(); }

const CaptureGroup* pipeline_group(const Capture& capture) {
  const PipelineMessages messages(capture);
  for (const CapturedLaunch& launch : capture.launches) {
    if (!messages.has(launch)) continue;
    const auto& group = capture.collectives[*launch.collective].group;
    if (group) return &capture.groups[*group];
  }
  return nullptr;
}

}  // namespace rubato

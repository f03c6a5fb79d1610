// rubato pipeline profile: a stage profile from the captured ranks of a pipeline.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/pipeline/captured_profile.hpp"
#include "models/gpu/device.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/logged_power.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/gpu.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/import/file_patterns.hpp"

namespace rubato {

namespace {

struct ProfileOptions {
  std::vector<std::string> ranks, power, power_gpus;
  std::string captured_clock, gpu, clocks, out;
  std::optional<double> blocked_power_w;
  bool per_clock = false, partial = false;
  OutputFormat format = OutputFormat::table;
};

// One power log for each rank. Those of several ranks may be GPUs in one file.
std::vector<PowerLog> read_power(const ProfileOptions& o) {
  const std::vector<std::string> files = files_of_patterns(o.power);
  const std::size_t gpus = o.power_gpus.size();
  if (gpus > 0 && files.empty()) throw UsageError("--power-gpu needs --power");
  if (gpus > 1 && files.size() > 1 && gpus != files.size())
    throw UsageError(
        fmt::format("--power-gpu has {} GPUs for {} power logs; expected one of each, "
                    "one for all or several of one log",
                    gpus, files.size()));
  std::vector<PowerLog> logs;
  for (std::size_t i = 0; i < (files.empty() ? 0 : std::max(files.size(), gpus)); ++i) {
    PowerLogOptions options;
    if (gpus > 0) options.gpu = o.power_gpus[gpus == 1 ? 0 : i];
    logs.push_back(read_told_power_log(files[files.size() == 1 ? 0 : i], options));
  }
  return logs;
}

// The clocks of the logs, which must agree: all ranks are anchored at one clock.
std::optional<std::string> clock_of_logs(const GpuSpec& spec, const std::vector<PowerLog>& power) {
  constexpr double same_frac = 0.02;  // medians of a GPU that its power limit holds back wander
  std::optional<std::string> first;
  for (const PowerLog& log : power) {
    const std::optional<std::string> label = logged_clock(log, &spec);
    if (!label) continue;
    if (!first) first = label;
    const ClockPair one = captured_clock(spec, first), other = captured_clock(spec, label);
    const double one_mhz = effective_core_mhz(spec, one),
                 other_mhz = effective_core_mhz(spec, other);
    if (one.mem == other.mem && std::abs(one_mhz - other_mhz) <= same_frac * one_mhz) continue;
    throw DataError(
        fmt::format("{}: logged at {}, other ranks at {}", log.file, *label, *first),
        {.in = {}, .hint = "profile all ranks at the same clocks, or give --captured-clock"});
  }
  return first;
}

// The model of the GPU: the one asked for, else that of the devices. Of GPUs without a spec only
// what was captured is known.
std::optional<CapturedGpu> gpu_of(const ProfileOptions& o, const std::vector<Capture>& captures,
                                  const std::vector<PowerLog>& power) {
  const std::vector<std::string> devices = device_names(captures);
  const std::string& first = captures.front().name;
  if (o.gpu.empty() &&
      (devices.front().empty() || vendor_of(devices.front()) != GpuVendor::nvidia)) {
    tell(
        "note: no spec is of its GPU{}: passes are known at the clock of the capture only; "
        "--gpu names a GPU to model\n",
        devices.front().empty() ? ", which the files do not name"
                                : ", " + printable(devices.front()));
    return std::nullopt;
  }
  GpuSpec spec = load_gpu_for_devices(o.gpu, devices, captures.front().provenance, first);
  std::optional<std::string> label;
  if (!o.captured_clock.empty()) {
    label = o.captured_clock;
  } else {
    label = clock_of_logs(spec, power);
  }
  if (!label)
    tell(
        "note: the capture does not record its clocks: the default of the GPU is assumed "
        "(--captured-clock, --power)\n");
  const ClockPair clock = captured_clock(spec, label);
  return CapturedGpu{std::move(spec), clock, o.clocks};
}

Cell ms(double seconds) { return ms_per_s * seconds; }

OutputTable types_table(const CapturedProfile& profile) {
  OutputTable table({{"stage"},
                     {"pass"},
                     {"passes"},
                     {"core_mhz", "core MHz", 0},
                     {"time_ms", "time ms"},
                     {"time_low_ms", "low"},
                     {"time_high_ms", "high"},
                     {"p5_ms", "5 %"},
                     {"p95_ms", "95 %"},
                     {"energy_j", "energy J"},
                     {"measured_power_w", "measured W", 1},
                     {"measured_power_low_w", "low", 1},
                     {"measured_power_high_w", "high", 1},
                     {"busy_pct", "busy %", 1},
                     {"guessed_pct", "guessed split %", 1}});
  const auto known = [](double value) { return value > 0.0 ? Cell(value) : Cell(); };
  for (const CapturedPassType& type : profile.types) {
    const CapturedOption& at = type.captured();
    const bool modelled = at.core_mhz > 0.0;
    const auto watts = [&](double Estimate::*of) {
      return type.measured_power_w ? Cell((*type.measured_power_w).*of) : Cell();
    };
    table.add_row({std::int64_t{type.stage}, std::string(name_of(type.kind)),
                   static_cast<std::int64_t>(type.passes), known(at.core_mhz), ms(at.time_s.value),
                   ms(at.time_s.low), ms(at.time_s.high), ms(type.low_s), ms(type.high_s),
                   at.energy_j ? Cell(at.energy_j->value) : Cell(), watts(&Estimate::value),
                   watts(&Estimate::low), watts(&Estimate::high),
                   modelled ? Cell(percent * type.kernel_frac) : Cell(),
                   modelled ? Cell(percent * type.guessed_frac) : Cell()});
  }
  return table;
}

OutputTable clocks_table(const CapturedProfile& profile) {
  OutputTable table({{"stage"},
                     {"pass"},
                     {"core_mhz", "core MHz", 0},
                     {"captured"},
                     {"time_ms", "time ms"},
                     {"time_low_ms", "low"},
                     {"time_high_ms", "high"},
                     {"energy_j", "energy J"},
                     {"energy_low_j", "low"},
                     {"energy_high_j", "high"}});
  for (const CapturedPassType& type : profile.types) {
    for (const CapturedOption& option : type.options) {
      const auto joules = [&](double Estimate::*of) {
        return option.energy_j ? Cell((*option.energy_j).*of) : Cell();
      };
      table.add_row({std::int64_t{type.stage}, std::string(name_of(type.kind)),
                     option.core_mhz > 0.0 ? Cell(option.core_mhz) : Cell(), option.captured,
                     ms(option.time_s.value), ms(option.time_s.low), ms(option.time_s.high),
                     joules(&Estimate::value), joules(&Estimate::low), joules(&Estimate::high)});
    }
  }
  return table;
}

// What a stage draws while it waits: given, measured, or what the model says of an idle GPU.
double blocked_power_w(const ProfileOptions& o, const CapturedProfile& profile) {
  return o.blocked_power_w.value_or(profile.blocked_power_w.value_or(profile.idle_power_w));
}

std::string plan_command(const ProfileOptions& o, const CapturedProfile& profile) {
  const PipelineShape& shape = profile.pipeline.shape;
  std::string command =
      fmt::format("--blocked-power {:.4g} --schedule {} --microbatches {}",
                  blocked_power_w(o, profile), name_of(shape.kind), shape.microbatches);
  if (shape.chunks > 1)
    command += fmt::format(" --stages {} --chunks {}", shape.stages, shape.chunks);
  if (shape.transfer_s > 0.0)
    command += fmt::format(" --transfer-ms {:.4g}", ms_per_s * shape.transfer_s);
  if (shape.hold_s > 0.0) command += fmt::format(" --hold-ms {:.4g}", ms_per_s * shape.hold_s);
  const bool plain = shape.chunks == 1 && shape.transfer_s == 0.0 && shape.hold_s == 0.0;
  if (plain) return fmt::format("  rubato explore {} {}", o.out, command);
  const std::string file = std::filesystem::path(o.out).replace_extension(".json").string();
  return fmt::format("  rubato pipeline describe --profile {} {} -o {}\n  rubato explore {}", o.out,
                     command, file, file);
}

std::string notes_of(const ProfileOptions& o, const CapturedProfile& profile) {
  const CapturedPipeline& pipeline = profile.pipeline;
  const PipelineShape& shape = pipeline.shape;
  std::string text = fmt::format(
      "\n{} ranks, {} stages, {} microbatches, {} steps, {}; {:.4g} ms from stage to stage; {:.4g} "
      "ms from a pass to the next where nothing is waited for; {:.4g} ms of a step compute outside "
      "passes.\n",
      pipeline.ranks.size(), shape.stages, shape.microbatches, pipeline.ranks.front().steps,
      pipeline.order_known
          ? std::string(name_of(shape.kind)) +
                (shape.chunks > 1 ? fmt::format(" of {} chunks", shape.chunks) : "")
          : "passes in an order that is not known",
      ms_per_s * shape.transfer_s, ms_per_s * shape.hold_s, ms_per_s * profile.other_s);
  if (profile.replayed_step_s)
    text += fmt::format(
        "A step took {:.5g} ms; the schedule replayed with these times takes {:.5g} ms ({} %).\n",
        ms_per_s * profile.captured_step_s, ms_per_s * *profile.replayed_step_s,
        format_signed(change_pct(*profile.replayed_step_s, profile.captured_step_s), 2));
  text +=
      "Times are medians with their 90 % intervals, then the 5th and 95th percentile of the "
      "passes. ";
  const bool modelled = profile.types.front().options.front().core_mhz > 0.0;
  if (!modelled) return text + "Other clocks are not known: no GPU was modelled.\n";
  const bool measured = std::ranges::any_of(profile.types, [](const CapturedPassType& type) {
    return type.measured_power_w.has_value();
  });
  text += fmt::format(
      "Energies and other clocks are modelled{}; --per-clock lists them from as memory bound to as "
      "core bound as the kernels' work leaves open.\n",
      measured ? " and scaled to the measured power" : "");
  if (!o.blocked_power_w)
    text += profile.blocked_power_w
                ? fmt::format("A GPU that waits was measured to draw {:.4g} W.\n",
                              *profile.blocked_power_w)
                : fmt::format(
                      "A GPU that waits is taken to draw its idle power, {:.4g} W, a guess: {}.\n",
                      profile.idle_power_w,
                      o.power.empty() ? "--power measures it"
                                      : "the readings do not tell what waiting draws");
  if (!o.out.empty() && pipeline.order_known && profile.complete())
    text += fmt::format("\nnext:\n{}\n", plan_command(o, profile));
  return text;
}

ExitStatus run_profile(const ProfileOptions& o) {
  if (o.blocked_power_w && !(*o.blocked_power_w >= 0.0 && std::isfinite(*o.blocked_power_w)))
    throw UsageError(
        fmt::format("blocked power is {} W; expected a number >= 0", *o.blocked_power_w));
  std::vector<Capture> captures;
  for (const std::string& file : files_of_patterns(o.ranks))
    captures.push_back(read_told_capture(file, {.partial = o.partial}));
  CapturedProfileInput input{.captures = captures, .gpu = {}, .power = {}};
  input.power = read_power(o);
  input.gpu = gpu_of(o, captures, input.power);
  const CapturedProfile profile = profile_captures(input);
  for (const std::string& note : profile.notes) tell("note: {}\n", printable(note));
  if (!o.out.empty()) write_output(o.out, profile_csv(profile));
  print_with_notes(o.per_clock ? clocks_table(profile) : types_table(profile), notes_of(o, profile),
                   o.format);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_profile(CommandLine& app) {
  auto o = std::make_shared<ProfileOptions>();
  app.add_option("--ranks", o->ranks,
                 "Captures of the ranks, as explore takes them; a pattern in quotes will do")
      ->required();
  app.add_option("--power", o->power,
                 "Power logs, one of each rank in the same order: nvidia-smi, DCGM, NVML or "
                 "Zeus");
  app.add_option("--power-gpu", o->power_gpus,
                 "Which GPU of the logs (index, bus id, UUID, name or host), one for all or one of "
                 "each rank; of one log of a whole node one of each rank, e.g. 0,1,2,3")
      ->delimiter(',');
  app.add_option("--captured-clock", o->captured_clock,
                 "Clocks of the capture, MEMORY/CORE (default: the power log's, else the GPU's)");
  app.add_option("--gpu", o->gpu,
                 "GPU spec to model other clocks with, shipped name or file [the captures']");
  app.add_option("--clocks", o->clocks, "Clocks to model, see explore [full]");
  app.add_option("--blocked-power", o->blocked_power_w,
                 "Power of a GPU that waits, W, for the command to plan with [by --power]");
  app.add_flag("--per-clock", o->per_clock, "List every clock, with intervals");
  app.add_flag("--partial", o->partial, "Leave out what cannot be read, and say so");
  app.add_option("-o,--output", o->out, "Profile for explore, CSV");
  add_format_options(app, o->format);
  return [o](const RunContext&) { return run_profile(*o); };
}

}  // namespace rubato

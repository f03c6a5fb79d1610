#include "sim/timeline/graph.hpp"

#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/small_graph.hpp"

namespace rubato {
namespace {

using Json = nlohmann::json;

// Two ranks that compute and meet in a collective; the second comes late.
struct Drawn {
  ClockPair fast = parse_clock_pair(small_graph_spec(), "1593/1410");
  ClockPair slow = parse_clock_pair(small_graph_spec(), "1593/705");
  ClockGrid grid{small_graph_spec(), {fast, slow}};
  ExecutionGraph graph;
  GraphRun run;
  Json events;

  Drawn() {
    SmallGraph made(2);
    const DraftId host = made.host({});
    made.launch(0, "early", KernelClass::gemm, 1e-4, {{host, 5e-6, ArcKind::launch_call}},
                Pass::forward);
    made.launch(2, "late", KernelClass::gemm, 5e-4, {}, Pass::backward);
    made.collective({0, 2}, 1e-4);
    made.launch(1, "behind", KernelClass::elementwise, 2e-4);
    graph = std::move(made).build();
    const GraphModel model(graph, small_graph_spec(), fast);
    GraphPlan plan = uniform_plan(graph, *grid.find(fast));
    for (std::size_t i = 0; i < graph.size(); ++i) {
      if (graph.activities()[i].pass == Pass::backward)
        plan.clock_of_activity[i] = *grid.find(slow);
    }
    run = GraphSimulator(model, grid).run(plan, {.phases = true});
    std::string text;
    write_graph_timeline([&](std::string_view piece) { text += piece; }, graph, small_graph_spec(),
                         {{"planned", &run, &grid}}, {{1e-5}, {123.0}});
    events = Json::parse(text)["traceEvents"];
  }

  [[nodiscard]] std::vector<Json> of(int pid, const char* phase) const {
    std::vector<Json> found;
    for (const Json& event : events) {
      if (event["pid"] == pid && event["ph"] == phase) found.push_back(event);
    }
    return found;
  }
};

TEST(GraphTimeline, OneProcessPerRunAndOneRowPerStreamAndHost) {
  const Drawn drawn;
  for (const int pid : {1, 2}) {
    std::set<std::string> rows;
    for (const Json& event : drawn.of(pid, "M")) {
      if (event["name"] == "thread_name") rows.insert(event["args"]["name"]);
    }
    EXPECT_EQ(rows, (std::set<std::string>{"rank 0 GPU 0 stream 0", "rank 0 GPU 0 stream 1",
                                           "rank 1 GPU 0 stream 0", "rank 1 GPU 0 stream 1",
                                           "rank 0 host"}));
  }
}

TEST(GraphTimeline, SlicesAreTheLaunchesAndCollectivesOfTheRun) {
  const Drawn drawn;
  std::map<std::string, std::vector<Json>> of_name;
  for (const Json& slice : drawn.of(2, "X")) of_name[slice["name"]].push_back(slice);
  EXPECT_EQ(of_name["all-reduce"].size(), 2U);
  std::size_t launches = 0;
  for (std::size_t i = 0; i < drawn.graph.size(); ++i) {
    const Activity& activity = drawn.graph.activities()[i];
    if (activity.kind != ActivityKind::launch) continue;
    ++launches;
    const Json& slice = of_name[drawn.graph.kernels()[index(activity.kernel)].name].at(0);
    EXPECT_EQ(slice["tid"], static_cast<int>(*activity.stream) + 1);
    EXPECT_NEAR(slice["ts"].get<double>(), 1e6 * drawn.run.start_s[i], 1e-3);
    EXPECT_NEAR(slice["dur"].get<double>(), 1e6 * (drawn.run.end_s[i] - drawn.run.start_s[i]),
                1e-3);
    EXPECT_EQ(slice["args"]["energy_j"], drawn.run.energy_j[i]);
    EXPECT_EQ(slice["args"]["pass"], name_of(activity.pass));
  }
  EXPECT_EQ(of_name["call"].size(), 1U);
  EXPECT_EQ(drawn.of(2, "X").size(), launches + 2 + 1);
  // The early rank waits for the end of the late one's kernel; both leave together.
  const double late_end_us =
      of_name["late"][0]["ts"].get<double>() + of_name["late"][0]["dur"].get<double>();
  for (const Json& one : of_name["all-reduce"]) {
    EXPECT_NEAR(one["args"]["waited_us"].get<double>(), late_end_us - one["ts"].get<double>(),
                2e-3);
    EXPECT_NEAR(one["ts"].get<double>() + one["dur"].get<double>(), late_end_us + 100.0, 2e-3);
  }
  // The captured run is drawn as captured, before the plan's clocks.
  for (const Json& slice : drawn.of(1, "X")) {
    EXPECT_FALSE(slice["args"].contains("energy_j"));
    if (slice["name"] != "late") continue;
    EXPECT_NEAR(slice["dur"].get<double>(), 500.0, 1e-9);
  }
}

// Power over time is the energy; clocks are those of the plan; all end at zero.
TEST(GraphTimeline, CountersOfEachGpuAddUpToItsEnergy) {
  const Drawn drawn;
  for (std::size_t g = 0; g < 2; ++g) {
    const std::string gpu = fmt::format("rank {} GPU 0", g);
    std::map<std::string, std::vector<std::pair<double, double>>> values;  // us
    for (const Json& event : drawn.of(2, "C"))
      values[event["name"]].emplace_back(event["ts"], event["args"].begin()->get<double>());
    const auto& power = values["power_w " + gpu];
    ASSERT_GT(power.size(), 2U);
    double energy_j = 0.0;
    for (std::size_t i = 0; i + 1 < power.size(); ++i)
      energy_j += 1e-6 * (power[i + 1].first - power[i].first) * power[i].second;
    EXPECT_NEAR(energy_j / drawn.run.gpus[g].energy_j, 1.0, 1e-9);
    EXPECT_EQ(power.back(), (std::pair(1e6 * drawn.run.span_s, 0.0)));
    const auto& mem = values["mem_mhz " + gpu];
    EXPECT_EQ(mem.front().second, 1593.0);
    EXPECT_EQ(mem.back().second, 0.0);
    double least_mhz = 1e9, most_mhz = 0.0;
    for (const auto& [at_us, mhz] : values["core_mhz " + gpu]) {
      if (mhz == 0.0) continue;
      least_mhz = std::min(least_mhz, mhz);
      most_mhz = std::max(most_mhz, mhz);
    }
    EXPECT_NEAR(g == 0 ? most_mhz : least_mhz, g == 0 ? 1410.0 : 705.0, 1.0);
  }
  ASSERT_EQ(drawn.of(1, "C").size(), 1U);  // the power log
  EXPECT_EQ(drawn.of(1, "C")[0]["args"]["W"], 123.0);
}

// The rows of an arrow's ends and its kind, and the slices around them.
struct Arrow {
  std::string kind;
  Json from, to;  // slices
};

// Of a document whose flows have a begin and an end, in this order, each in a slice of its row.
std::vector<Arrow> arrows(const Json& events) {
  std::map<std::uint64_t, std::vector<Json>> ends;
  std::map<std::pair<int, int>, std::vector<Json>> slices;
  for (const Json& event : events) {
    if (event["ph"] == "s" || event["ph"] == "f")
      ends[event["id"].get<std::uint64_t>()].push_back(event);
    if (event["ph"] == "X") slices[{event["pid"], event["tid"]}].push_back(event);
  }
  // As the viewer does: the slice of the row that began last by then, if it has not ended.
  const auto around = [&](const Json& end) {
    const auto ns = [](const Json& us) { return std::llround(us.get<double>() * 1e3); };
    const Json* found = nullptr;
    for (const Json& slice : slices[{end["pid"], end["tid"]}]) {
      if (ns(slice["ts"]) <= ns(end["ts"]) &&
          (found == nullptr || ns(slice["ts"]) >= ns((*found)["ts"])))
        found = &slice;
    }
    if (found == nullptr || ns((*found)["ts"]) + ns((*found)["dur"]) < ns(end["ts"])) {
      ADD_FAILURE() << "no slice around " << end.dump();
      return Json();
    }
    return *found;
  };
  std::vector<Arrow> found;
  for (const auto& [id, two] : ends) {
    if (two.size() != 2 || two[0]["ph"] != "s" || two[1]["ph"] != "f") {
      ADD_FAILURE() << "flow " << id << " has " << two.size() << " ends";
      continue;
    }
    EXPECT_EQ(two[0]["pid"], two[1]["pid"]);
    EXPECT_EQ(two[1]["bp"], "e");
    EXPECT_LE(two[0]["ts"].get<double>(), two[1]["ts"].get<double>());
    found.push_back({two[0]["name"], around(two[0]), around(two[1])});
  }
  return found;
}

TEST(GraphTimeline, FlowsLeadFromWhatIsWaitedForToWhatWaits) {
  const Drawn drawn;
  std::multiset<std::string> found;
  for (const Arrow& arrow : arrows(drawn.events))
    found.insert(fmt::format("{} {}: {} {} -> {} {}", arrow.from["pid"].dump(), arrow.kind,
                             arrow.from["name"].get<std::string>(), arrow.from["tid"].dump(),
                             arrow.to["name"].get<std::string>(), arrow.to["tid"].dump()));
  // Streams 0 and 2 are rows 1 and 3, the host of rank 0 is row 5. The second rank comes last.
  EXPECT_EQ(found,
            (std::multiset<std::string>{
                "1 collective: all-reduce 3 -> all-reduce 1", "1 launch call: call 5 -> early 1",
                "2 collective: all-reduce 3 -> all-reduce 1", "2 launch call: call 5 -> early 1"}));
}

// Every arc between rows is an arrow, of any graph, and its ends lie in slices.
RC_GTEST_PROP(GraphTimeline, EveryFlowBeginsAndEndsInASlice, ()) {
  const ExecutionGraph graph = arbitrary_graph({});
  const ClockGrid grid = two_clocks();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, ClockId{1}), {});
  std::string text;
  write_graph_timeline([&](std::string_view piece) { text += piece; }, graph, small_graph_spec(),
                       {{"planned", &run, &grid}});
  std::size_t calls = 0, launched = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i)))
      calls += arc.kind == ArcKind::launch_call && graph[arc.from].kind == ActivityKind::host;
  }
  for (const Arrow& arrow : arrows(Json::parse(text)["traceEvents"]))
    launched += arrow.kind == "launch call" && arrow.from["cat"] == "host";
  RC_ASSERT(launched == 2 * calls);  // as captured, and as planned
  RC_ASSERT(!testing::Test::HasFailure());
}

// Without clocks there is one counter, the power of all GPUs together: over time, all the energy.
TEST(GraphTimeline, WithoutAGridThePowerOfAllGpusIsOneCounter) {
  const Drawn drawn;
  std::string text;
  write_graph_timeline([&](std::string_view piece) { text += piece; }, drawn.graph,
                       small_graph_spec(), {{"planned", &drawn.run}});
  std::vector<std::pair<double, double>> power;  // us, W
  const Json drawing = Json::parse(text);
  for (const Json& event : drawing["traceEvents"]) {
    if (event["pid"] != 2 || event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "power_w");
    power.emplace_back(event["ts"], event["args"].begin()->get<double>());
  }
  ASSERT_GT(power.size(), 2U);
  double energy_j = 0.0;
  for (std::size_t i = 0; i + 1 < power.size(); ++i)
    energy_j += 1e-6 * (power[i + 1].first - power[i].first) * power[i].second;
  EXPECT_NEAR(energy_j / (drawn.run.gpus[0].energy_j + drawn.run.gpus[1].energy_j), 1.0, 1e-9);
  EXPECT_EQ(power.back(), (std::pair(1e6 * drawn.run.span_s, 0.0)));
}

// Perfetto counts whole ns, and drops a slice that begins before the one before it ends.
TEST(ChromeTrace, SlicesOfARowMeetInWholeNanoseconds) {
  std::string text;
  ChromeTrace out([&](std::string_view piece) { text += piece; }, Json::object());
  ChromeProcess process(out, 1, "run");
  double at_s = 0.0;
  for (int i = 1; i <= 1000; ++i) {
    const double end_s = at_s + std::sqrt(i) * 1.234567891e-6;
    process.slice(1, "kernel", "k", at_s, end_s, Json::object());
    at_s = end_s;
  }
  out.finish();
  std::int64_t end_ns = 0;
  const Json written = Json::parse(text);
  for (const Json& event : written["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::int64_t from_ns = std::llround(event["ts"].get<double>() * 1e3);
    EXPECT_EQ(from_ns, end_ns);
    end_ns = from_ns + std::llround(event["dur"].get<double>() * 1e3);
  }
  EXPECT_NEAR(static_cast<double>(end_ns), at_s * 1e9, 0.5);
}

}  // namespace
}  // namespace rubato

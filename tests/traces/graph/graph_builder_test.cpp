#include "traces/graph/graph_builder.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/graph/graph_text.hpp"

namespace rubato {
namespace {

Kernel kernel_named(const std::string& name) {
  Kernel kernel;
  kernel.name = kernel.label = name;
  return kernel;
}

// A builder with one stream, and launches named by one letter each.
struct Letters {
  GraphBuilder builder;
  std::uint32_t stream = builder.add_stream({builder.add_gpu({3, 1, "A100"}), 7});

  DraftId launch(const std::string& name, double start_s = 0.0, double duration_s = 1.0) {
    return builder.add({.kind = ActivityKind::launch,
                        .stream = stream,
                        .kernel = builder.add_kernel(kernel_named(name)),
                        .rank = 3,
                        .start_s = start_s,
                        .duration_s = duration_s});
  }
  DraftId host(double start_s) {
    return builder.add({.kind = ActivityKind::host, .rank = 3, .start_s = start_s});
  }
};

TEST(GraphBuilder, NothingAddedIsTheOriginAlone) {
  const ExecutionGraph graph = GraphBuilder().build("empty").graph;
  ASSERT_EQ(graph.size(), 1u);
  EXPECT_EQ(graph.activities()[0].kind, ActivityKind::origin);
  EXPECT_EQ(graph.arcs(), 0u);
  EXPECT_EQ(graph.captured_span_s(), 0.0);
}

TEST(GraphBuilder, FirstActivitiesWaitForTheOriginUntilTheirCapturedStart) {
  Letters made;
  const DraftId a = made.launch("a", 0.5);
  const DraftId b = made.launch("b", 2.0, 3.0);
  made.builder.add_arc(a, b, 0.25, ArcKind::event, true);
  auto [graph, ids] = std::move(made.builder).build("two");
  EXPECT_EQ(arc_texts(graph),
            (std::vector<std::string>{"a > b: event (inferred)", "origin > a: release"}));
  EXPECT_EQ(graph.arcs_into(*ids[index(a)])[0].lag_s, 0.5);
  EXPECT_EQ(graph.arcs_into(*ids[index(b)])[0].lag_s, 0.25);
  EXPECT_EQ(graph.captured_span_s(), 5.0);
  const ArcCounts counts = graph.count_arcs();
  EXPECT_EQ(counts.read[static_cast<std::size_t>(ArcKind::release)], 1u);
  EXPECT_EQ(counts.inferred[static_cast<std::size_t>(ArcKind::event)], 1u);
  EXPECT_EQ(counts.read[static_cast<std::size_t>(ArcKind::event)], 0u);
}

TEST(GraphBuilder, HostCallsThatNothingWaitsForAreLeftOut) {
  Letters made;
  const DraftId early = made.host(0.0), launch = made.launch("a", 1.0);
  const DraftId sync = made.host(2.0), idle = made.host(3.0);
  made.builder.add_arc(early, launch, 1.0, ArcKind::launch_call);
  made.builder.add_arc(launch, sync, 0.0, ArcKind::sync);
  made.builder.add_arc(sync, idle, 1.0, ArcKind::host_order);
  const auto [graph, ids] = std::move(made.builder).build("hosts");
  EXPECT_EQ(graph.size(), 3u);
  EXPECT_EQ(arc_texts(graph),
            (std::vector<std::string>{"host 0 > a: launch call", "origin > host 0: release"}));
  EXPECT_TRUE(ids[index(early)] && ids[index(launch)]);
  EXPECT_FALSE(ids[index(sync)] || ids[index(idle)]);
  EXPECT_EQ(graph.captured_span_s(), 2.0);
}

TEST(GraphBuilder, AKernelIsAddedOnce) {
  Letters made;
  made.launch("same");
  made.launch("same");
  made.launch("other");
  EXPECT_EQ(std::move(made.builder).build("kernels").graph.kernels().size(), 2u);
}

TEST(GraphBuilder, ACycleIsToldByItsActivities) {
  Letters made;
  const DraftId before = made.launch("before"), a = made.launch("a", 1.5),
                b = made.launch("b", 2.0);
  const DraftId after = made.launch("after", 9.0);
  made.builder.add_arc(before, a, 0.0, ArcKind::stream_order);
  made.builder.add_arc(a, b, 0.0, ArcKind::stream_order);
  made.builder.add_arc(b, a, 0.0, ArcKind::event);
  made.builder.add_arc(b, after, 0.0, ArcKind::stream_order);
  const auto build = [&] { static_cast<void>(std::move(made.builder).build("run.json")); };
  expect_error<DataError>(build, "run.json: activities wait for each other: '",
                          "captures of different runs, or clocks that do not agree");
}

TEST(GraphBuilder, ACycleNamesNobodyElse) {
  const auto report = [](std::size_t length) {
    Letters made;
    std::vector<DraftId> circle{made.host(0.25)};
    while (circle.size() < length)
      circle.push_back(made.launch(std::string(1, static_cast<char>('a' + circle.size()))));
    for (std::size_t i = 0; i < length; ++i)
      made.builder.add_arc(circle[i], circle[(i + 1) % length], 0.0, ArcKind::event);
    const DraftId after = made.launch("after");
    made.builder.add_arc(circle[0], after, 0.0, ArcKind::event);
    try {
      static_cast<void>(std::move(made.builder).build("x"));
    } catch (const DataError& error) {
      return error.report();
    }
    return std::string("no error");
  };
  const std::string two = report(2);
  EXPECT_NE(two.find("a host call of rank 3"), std::string::npos) << two;
  EXPECT_NE(two.find("'b' of rank 3 at 0.000000 s"), std::string::npos) << two;
  EXPECT_EQ(two.find("and so on"), std::string::npos) << two;
  const std::string many = report(9);
  EXPECT_NE(many.find(" and so on"), std::string::npos) << many;
  EXPECT_EQ(many.find("after"), std::string::npos) << many;
}

// A random order of a random partial order; starts are any numbers.
RC_GTEST_PROP(GraphBuilder, NumbersActivitiesSoThatArcsPointForward, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 20);
  Letters made;
  std::vector<DraftId> drafts;
  for (std::size_t i = 0; i < count; ++i) {
    const double start_s = *rc::gen::inRange(0, 5);
    drafts.push_back(*rc::gen::inRange(0, 3) == 0 ? made.host(start_s) : made.launch("k", start_s));
  }
  std::vector<std::size_t> rank(count);
  for (std::size_t i = 0; i < count; ++i) rank[i] = i;
  for (std::size_t i = count; i > 1; --i)
    std::swap(rank[i - 1], rank[*rc::gen::inRange<std::size_t>(0, i)]);
  std::vector<std::pair<std::size_t, std::size_t>> arcs;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const auto a = *rc::gen::inRange<std::size_t>(0, count);
    const auto b = *rc::gen::inRange<std::size_t>(0, count);
    if (rank[a] >= rank[b]) continue;
    arcs.emplace_back(a, b);
    made.builder.add_arc(drafts[a], drafts[b], 0.5, ArcKind::event);
  }
  const auto [graph, ids] = std::move(made.builder).build("random");

  // Who is needed: launches and what they wait for.
  std::vector<bool> needed(count);
  for (std::size_t i = 0; i < count; ++i)
    needed[i] = graph.kernels().size() == 1 && ids[index(drafts[i])] &&
                graph[*ids[index(drafts[i])]].kind == ActivityKind::launch;
  for (std::size_t round = 0; round < count; ++round) {
    for (const auto& [a, b] : arcs) {
      if (needed[b]) needed[a] = true;
    }
  }
  std::size_t kept_arcs = 0;
  for (std::size_t i = 0; i < count; ++i) RC_ASSERT(ids[index(drafts[i])].has_value() == needed[i]);
  for (const auto& [a, b] : arcs) {
    if (!needed[b]) continue;
    ++kept_arcs;
    RC_ASSERT(index(*ids[index(drafts[a])]) < index(*ids[index(drafts[b])]));
  }
  std::size_t releases = 0;
  RC_ASSERT(graph.activities()[0].kind == ActivityKind::origin);
  for (std::size_t i = 1; i < graph.size(); ++i) {
    const auto into = graph.arcs_into(id_at<ActivityId>(i));
    RC_ASSERT(!into.empty());
    for (const GraphArc& arc : into) {
      RC_ASSERT(index(arc.from) < i);
      if (arc.kind != ArcKind::release) continue;
      ++releases;
      RC_ASSERT(into.size() == 1u && index(arc.from) == 0);
      RC_ASSERT(arc.lag_s == graph.activities()[i].start_s);
    }
  }
  RC_ASSERT(graph.arcs() == kept_arcs + releases);
}

// Longest path to the start of an activity, path by path.
double latest_path_s(const ExecutionGraph& graph, const std::vector<double>& duration_s,
                     std::size_t to) {
  double start_s = 0.0;
  for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(to))) {
    const std::size_t from = index(arc.from);
    start_s =
        std::max(start_s, latest_path_s(graph, duration_s, from) + duration_s[from] + arc.lag_s);
  }
  return start_s;
}

RC_GTEST_PROP(EarliestStarts, AreTheLongestPaths, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 9);
  Letters made;
  std::vector<DraftId> drafts;
  for (std::size_t i = 0; i < count; ++i)
    drafts.push_back(made.launch("k", *rc::gen::inRange(0, 4)));
  for (std::size_t b = 1; b < count; ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (*rc::gen::inRange(0, 3) == 0)
        made.builder.add_arc(drafts[a], drafts[b], *rc::gen::inRange(0, 4), ArcKind::event);
    }
  }
  const ExecutionGraph graph = std::move(made.builder).build("random").graph;
  std::vector<double> duration_s(graph.size()), start_s(graph.size(), -1.0);
  for (double& d : duration_s) d = *rc::gen::inRange(0, 6);
  duration_s[0] = 0.0;
  double last_end_s = 0.0;
  const double span_s = earliest_starts(graph, duration_s, start_s);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    RC_ASSERT(start_s[i] == latest_path_s(graph, duration_s, i));  // whole numbers: exact
    last_end_s = std::max(last_end_s, start_s[i] + duration_s[i]);
  }
  RC_ASSERT(span_s == last_end_s);
}

TEST(MainStreams, ComputeLongestCollectivesDoNotCount) {
  GraphBuilder builder;
  const GpuId first = builder.add_gpu({}), second = builder.add_gpu({});
  Kernel gemm = kernel_named("gemm"), reduce = kernel_named("reduce");
  reduce.kind = KernelClass::communication;
  const auto add = [&](std::uint32_t stream, const Kernel& kernel, double duration_s) {
    builder.add({.kind = ActivityKind::launch,
                 .stream = stream,
                 .kernel = builder.add_kernel(kernel),
                 .duration_s = duration_s});
  };
  const std::uint32_t a = builder.add_stream({first, 1}), b = builder.add_stream({first, 2});
  const std::uint32_t c = builder.add_stream({second, 1});
  add(a, gemm, 1.0);
  add(b, gemm, 0.6);
  add(b, gemm, 0.6);
  add(a, reduce, 9.0);
  add(c, reduce, 1.0);
  EXPECT_EQ(main_streams(std::move(builder).build("main").graph), (std::vector{b, c}));
}

// A host that makes a call each `own_s`, and waits for the GPU after each fourth.
ExecutionGraph called_each(double own_s) {
  Letters run;
  std::optional<DraftId> called, launched;
  for (int i = 0; i < 12; ++i) {
    const DraftId call = run.host(static_cast<double>(i));
    if (called) run.builder.add_arc(*called, call, own_s, ArcKind::host_order);
    if (launched && i % 4 == 0) run.builder.add_arc(*launched, call, 0.01, ArcKind::sync);
    const DraftId launch = run.launch(std::string(1, static_cast<char>('a' + i)), i, i % 4 + 0.5);
    if (launched) run.builder.add_arc(*launched, launch, 0.0, ArcKind::stream_order);
    run.builder.add_arc(call, launch, 0.02, ArcKind::launch_call);
    called = call;
    launched = launch;
  }
  return std::move(run.builder).build("test").graph;
}

// A profiler doubles what the host takes between its calls: the time of the run without it tells.
TEST(HostTime, OfAStretchedHostIsFoundByTheTimeOfTheRun) {
  const ExecutionGraph own = called_each(1.5), stretched = called_each(3.0);
  std::vector<double> duration_s, start_s(own.size()), found_s(own.size());
  for (const Activity& activity : own.activities()) duration_s.push_back(activity.duration_s);
  const double span_s = earliest_starts(own, duration_s, start_s);
  const double factor = host_time_factor(stretched, span_s).value();
  EXPECT_NEAR(factor, 0.5, 1e-6);
  earliest_starts(stretched.with_host_time(factor), duration_s, found_s);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(found_s[i], start_s[i], 1e-5);
  const double captured_s = earliest_starts(stretched, duration_s, found_s),
               least_s = earliest_starts(own.with_host_time(0.0), duration_s, found_s);
  EXPECT_EQ(host_time_factor(stretched, captured_s), 1.0);
  EXPECT_EQ(host_time_factor(stretched, 2.0 * captured_s), 1.0);
  const ExecutionGraph none =
      stretched.with_host_time(host_time_factor(stretched, least_s).value());
  EXPECT_NEAR(earliest_starts(none, duration_s, found_s), least_s, 1e-6);
  EXPECT_EQ(host_time_factor(stretched, 0.99 * least_s), std::nullopt);
}

}  // namespace
}  // namespace rubato

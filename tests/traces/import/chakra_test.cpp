// Chakra execution traces in their three forms.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/capture_stats.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

using Chakra = FileTest;

// Three nodes, the last two on the device.
TEST_F(Chakra, FeederJson) {
  const Capture feeder = import_capture(file("f.json", R"json({"workload_graph": [
    {"Id": 4, "Name": "aten::relu_backward(0)", "NodeType": 4, "runtime": 9, "data_deps": [], "is_cpu_op": true},
    {"Id": 6, "Name": "gemm", "NodeType": 4, "runtime": 30, "data_deps": [4], "is_cpu_op": false},
    {"Id": 7, "Name": "ncclAllReduce", "NodeType": 7, "runtime": 5, "data_deps": [6], "is_cpu_op": false}]})json"));
  ASSERT_EQ(feeder.launches.size(), 2U);
  EXPECT_EQ(feeder.kernels[0].pass, Pass::backward);
  EXPECT_EQ(feeder.launches[1].start_ns, 30'000);
  EXPECT_EQ(feeder.kernels[1].kind, KernelClass::communication);
}

// Protobuf by hand: tag, length or number.

std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
         bytes;
}

std::string number(int field_number, int value) {
  return std::string(1, static_cast<char>(field_number << 3)) + static_cast<char>(value);
}

std::string delimited(const std::string& message) {
  return std::string(1, static_cast<char>(message.size())) + message;
}

std::string attribute(const std::string& name, int kind, int value) {
  const int tag = kind << 3;  // two bytes from 128 on
  const std::string tag_bytes =
      tag < 128 ? std::string(1, static_cast<char>(tag))
                : std::string{static_cast<char>((tag & 0x7f) | 0x80), static_cast<char>(tag >> 7)};
  return field(10, field(1, name) + tag_bytes + static_cast<char>(value));
}

// The same nodes as above.
TEST_F(Chakra, Protobuf) {
  const std::string et =
      delimited(field(1, "0.0.4")) +
      delimited(number(1, 4) + field(2, "aten::relu_backward(0)") + number(3, 4) +
                attribute("is_cpu_op", 27, 1)) +
      delimited(number(1, 6) + field(2, "gemm") + number(3, 4) + field(5, "\x04") + number(7, 30) +
                attribute("is_cpu_op", 27, 0) + attribute("tid", 13, 7)) +
      delimited(number(1, 7) + field(2, "ncclAllReduce") + number(3, 7) + number(7, 5) +
                attribute("is_cpu_op", 27, 0) + attribute("tid", 9, 14) +
                attribute("comm_size", 9, 100));
  const Capture protobuf = import_capture(file("p.et", et));
  ASSERT_EQ(protobuf.launches.size(), 2U);
  EXPECT_EQ(capture_stats(protobuf).kernels.time_ns, 35'000);
  EXPECT_EQ(protobuf.streams.size(), 2U);
  EXPECT_FALSE(protobuf.kernels[0].dram_bytes);
  EXPECT_EQ(protobuf.kernels[1].dram_bytes, 200.0);  // a message of 100, read and written
  EXPECT_EQ(protobuf.kernels[1].work_source, WorkSource::derived);
  EXPECT_FALSE(protobuf.kernels[1].collective);  // of how many ranks is not said
  EXPECT_EQ(protobuf.kernels[index(protobuf.launches[0].kernel)].pass, Pass::backward);
  const auto cut = file("q.et", et.substr(0, et.size() - 3));
  expect_error<DataError>([&] { (void)import_capture(cut); }, "the message ends early");
  EXPECT_EQ(import_capture(cut, {.partial = true}).launches.size(), 1U);
}

// Shapes, no times. A view does nothing, a wrapper is not counted twice.
TEST_F(Chakra, HostJson) {
  const Capture host =
      import_capture(file("h.json", R"json({"schema": "1.1.0-chakra.0.0.4", "nodes": [
    {"id": 2, "name": "aten::linear", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [[8, 4], [2, 4]],
     "types": ["Tensor(float)", "Tensor(float)"]
  }
  },
    {"id": 3, "name": "aten::t", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [[2, 4]], "types": ["Tensor(float)"]}},
    {"id": 4, "name": "aten::mm", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [[8, 4], [4, 2]],
     "types": ["Tensor(float)", "Tensor(float)"]}},
    {"id": 5, "name": "autograd::engine::evaluate_function: MmBackward0", "ctrl_deps": 1, "inputs": {"values": [],
     "shapes": [], "types": []}},
    {"id": 6, "name": "aten::mm", "ctrl_deps": 5, "inputs": {"values": [], "shapes": [[4, 8], [8, 2]],
     "types": ["Tensor(float)", "Tensor(float)"]}},
    {"id": 7, "name": "aten::_foreach_add_", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [[[3], [5]], []],
     "types": ["GenericList[Tensor(float),Tensor(float)]", "Int"]}}]})json"));
  const Trace trace = fold(host);
  ASSERT_EQ(trace.kernels.size(), 3U);
  EXPECT_EQ(trace.kernels[0].flops, 2.0 * 8 * 4 * 2);
  EXPECT_FALSE(trace.kernels[0].measured_time_s);
  EXPECT_EQ(trace.kernels[1].pass, Pass::backward);
  EXPECT_EQ(trace.kernels[2].kind, KernelClass::optimizer);
}

// What an operator calls, by name. Work is lost where one that allocates is taken for a wrapper.
TEST_F(Chakra, OperatorsThatAllocateWork) {
  struct Case {
    std::string op;
    std::vector<std::string> calls, launches;
  };
  const std::string three = R"("shapes": [[8, 64, 56, 56], [64, 64, 3, 3], [64, 64, 3, 3]])";
  const std::string types = R"-("types": ["Tensor(float)", "Tensor(float)", "Tensor(float)"])-";
  for (const Case& c :
       {Case{"aten::cudnn_batch_norm", {"aten::empty", "aten::view"}, {"cudnn_batch_norm"}},
        Case{"aten::convolution_backward", {"aten::empty"}, {"convolution_backward"}},
        Case{"aten::convolution_backward", {"aten::sum"}, {"convolution_backward", "sum"}},
        Case{"aten::conv2d", {"aten::cudnn_convolution"}, {"cudnn_convolution"}},
        Case{"aten::zeros", {"aten::empty", "aten::zero_"}, {"zero_"}},
        Case{"aten::to", {"aten::_to_copy"}, {"_to_copy"}}, Case{"aten::to", {}, {}},
        Case{"aten::add", {"AddBackward0"}, {"add"}}}) {
    // The first of them keeps files without other work from being refused.
    for (const bool old : {false, true}) {
      std::string nodes;
      const auto add = [&](int id, int parent, const std::string& name) {
        nodes += (nodes.empty() ? "" : ", ") + std::string(R"({"name": ")") + name +
                 R"(", "id": )" + std::to_string(id);
        nodes += old ? R"(, "parent": )" + std::to_string(parent) +
                           R"(, "inputs": [1, 2, 3], "input_)" + three.substr(1) + R"(, "input_)" +
                           types.substr(1) + "}"
                     : R"(, "ctrl_deps": )" + std::to_string(parent) +
                           R"(, "inputs": {"values": [], )" + three + ", " + types + "}}";
      };
      add(2, 1, "aten::relu");
      add(3, 1, c.op);
      for (std::size_t i = 0; i < c.calls.size(); ++i) add(4 + static_cast<int>(i), 3, c.calls[i]);
      const Capture host = import_capture(
          file("h.json", R"({"schema": "1.0.1", "pid": 4, "nodes": [)" + nodes + "]}"));
      std::vector<std::string> names;
      for (const CapturedLaunch& launch : host.launches)
        names.push_back(host.kernels[index(launch.kernel)].name);
      std::vector<std::string> expected{"relu"};
      expected.insert(expected.end(), c.launches.begin(), c.launches.end());
      EXPECT_EQ(names, expected) << c.op << (old ? ", old" : "");
    }
  }
}

TEST_F(Chakra, AnnotationsThatCannotBeReadStopNothing) {
  const auto nodes = [&](const std::string& name) {
    return file(
        "a.json",
        R"json({"nodes": [{"id": 2, "name": "aten::relu", "ctrl_deps": 3, "inputs": {"values": [],
      "shapes": [[8]], "types": ["Tensor(float)"]}}, {"id": 3, "name": ")json" +
            name + R"json(", "ctrl_deps": 1}]})json");
  };
  const Capture host = import_capture(nodes("load C:\\data"));
  EXPECT_EQ(host.launches.size(), 1U);
  EXPECT_EQ(host.left_out.size(), 2U);
  expect_error<DataError>([&] { (void)import_capture(nodes("aten::C:\\data")); }, "node at byte",
                          "--partial leaves it out");
}

// Work that the trace cannot have is named.
TEST_F(Chakra, OperatorsOfOtherLibrariesAreCounted) {
  const Capture host = import_capture(file("l.json", R"json({"schema": "1.0.1", "nodes": [
    {"name": "aten::relu", "id": 2, "parent": 1, "inputs": [0], "input_shapes": [[8]], "input_types": ["Tensor(float)"]},
    {"name": "nccl:all_reduce", "id": 3, "parent": 1, "inputs": [0], "input_shapes": [[8]], "input_types": ["Tensor(float)"]},
    {"name": "aten::cumsum", "id": 4, "parent": 1, "inputs": [0], "input_shapes": [[8]], "input_types": ["Tensor(long int)"]}]})json"));
  EXPECT_EQ(host.launches.size(), 1U);
  EXPECT_EQ(host.left_out, (std::vector<std::string>{
                               "times, which are not in the file: the trace is made from shapes",
                               "1 operators whose shapes and types tell no work",
                               "1 operators that are not PyTorch's own, collectives among them"}));
}

}  // namespace
}  // namespace rubato

// Where readers draw a line: the last value that counts and the first that does not, and entries
// that say nothing among others that do.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/operator_work.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/step_period.hpp"

namespace rubato {
namespace {

OperatorWork work_of(const char* name, std::vector<std::vector<std::uint64_t>> dims) {
  std::vector<Dtype> dtypes(dims.size(), Dtype::fp16);
  return operator_work({name, std::move(dims), std::move(dtypes)});
}

TEST(OperatorEdges, AttentionHasThreeOperandsOfFourDimensions) {
  const char* name = "aten::_scaled_dot_product_flash_attention";
  const std::vector<std::uint64_t> heads{2, 8, 64, 32}, flat{16, 64, 32}, none{};
  EXPECT_TRUE(work_of(name, {heads, heads, heads}).flops);
  EXPECT_FALSE(work_of(name, {heads, heads}).flops);
  EXPECT_FALSE(work_of(name, {flat, heads, heads}).flops);
  EXPECT_FALSE(work_of(name, {heads, flat, heads}).flops);
  EXPECT_FALSE(work_of(name, {none, heads, heads}).flops);
}

// 2^50 elements along one dimension and 1e24 FLOP are still believed.
TEST(OperatorEdges, WorkThatNoDataCentreDoesIsNotBelieved) {
  const std::uint64_t longest = std::uint64_t{1} << 50;
  EXPECT_TRUE(work_of("aten::mm", {{1, longest}, {longest, 1}}).flops);
  EXPECT_FALSE(work_of("aten::mm", {{1, longest + 1}, {longest + 1, 1}}).flops);
  EXPECT_TRUE(work_of("aten::mm", {{100'000'000, 50'000'000}, {50'000'000, 100'000'000}}).flops);
  EXPECT_FALSE(work_of("aten::mm", {{100'000'000, 55'000'000}, {55'000'000, 100'000'000}}).flops);
}

TEST(BuilderEdges, ACallMayTakeNoTime) {
  CaptureBuilder builder("made");
  const std::uint32_t thread = builder.thread({});
  const auto call = [&](std::int64_t duration_ns) {
    CapturedCall made;
    made.thread = thread;
    made.duration_ns = duration_ns;
    builder.call(made);
  };
  Kernel kernel;
  kernel.label = "k";
  builder.launch({.kernel = builder.kernel(kernel, "k"),
                  .stream = builder.stream(0, 7),
                  .start_ns = 0,
                  .duration_ns = 1,
                  .launch_ns = {},
                  .step = {}});
  call(0);
  CaptureBuilder other = builder;
  EXPECT_TRUE(std::move(builder).finish().left_out.empty());
  builder = std::move(other);
  call(-1);
  EXPECT_EQ(std::move(builder).finish().left_out.size(), 1U);
}

// Copies, memsets and collectives say nothing of steps, wherever they run and however long.
TEST(NameSequences, AreOfWhatComputes) {
  CaptureBuilder builder("made");
  std::int64_t at_ns = 0;
  const auto launch = [&](KernelClass kind, std::int64_t stream, std::int64_t duration_ns,
                          Pass pass = Pass::unknown) {
    Kernel kernel;
    kernel.label = name_of(kind);
    kernel.kind = kind;
    kernel.pass = pass;
    builder.launch(
        {builder.kernel(kernel, "k"), builder.stream(0, stream), at_ns, duration_ns, {}, {}, pass});
    at_ns += duration_ns;
  };
  for (const KernelClass kind :
       {KernelClass::memcpy, KernelClass::memset, KernelClass::communication}) {
    launch(kind, 9, 1000);
    launch(kind, 7, 1000);
  }
  launch(KernelClass::gemm, 7, 10, Pass::forward);
  launch(KernelClass::gemm, 7, 10, Pass::backward);
  launch(KernelClass::gemm, 7, 10, Pass::optimizer);
  launch(KernelClass::optimizer, 7, 10, Pass::backward);
  launch(KernelClass::gemm, 7, 10);
  const Capture capture = std::move(builder).finish();
  std::vector<std::size_t> indices;
  const NameSequence sequence = name_sequence(capture, 0, indices);
  EXPECT_EQ(indices, (std::vector<std::size_t>{6, 7, 8, 9, 10}));
  EXPECT_EQ(sequence.parts, (std::vector<std::uint8_t>{1, 2, 4, 4, 0}));
}

class ReaderEdges : public FileTest {
 protected:
  // DRAM bytes of a launch that Nsight Compute prints in this form.
  [[nodiscard]] std::optional<double> bytes(const std::string& printed) const {
    const std::string line = "\"0\",\"k\",";
    const auto path =
        file("n.csv", "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n" +
                          line + "\"gpu__time_duration.sum\",\"nsecond\",\"100\"\n" + line +
                          "\"dram__bytes.sum\",\"byte\",\"" + printed + "\"\n");
    return import_capture(path).kernels[0].dram_bytes;
  }
};

TEST_F(ReaderEdges, GroupsOfThreeDigitsAreThousands) {
  EXPECT_EQ(bytes("1,234"), 1234.0);
  EXPECT_EQ(bytes("123,456"), 123456.0);
  EXPECT_EQ(bytes("1234,567"), 1234.567);  // no group of four
  EXPECT_EQ(bytes("12,34"), 12.34);
  EXPECT_EQ(bytes("1234,56"), 1234.56);
  EXPECT_EQ(bytes(",567"), 0.567);  // no digits before it
  EXPECT_EQ(bytes("1.234,5"), 1234.5);
  EXPECT_EQ(bytes("1,234.5"), 1234.5);
}

TEST_F(ReaderEdges, RanksInNamesHaveUpToSevenDigits) {
  const std::string passes =
      R"({"1": {"total": 10, "memory": 1, "fwd_start": [0], "fwd_end": [1], "bwd_start": [2], "bwd_end": [4]}})";
  const auto rank = [&](const std::string& name) {
    return import_capture(file(name, passes)).rank;
  };
  EXPECT_EQ(rank("pp_rank_3.json"), 3U);
  EXPECT_EQ(rank("pp_rank_1234567.json"), 1234567U);
  EXPECT_FALSE(rank("pp_rank_12345678.json"));
  EXPECT_FALSE(rank("passes.json"));
}

// Up to four bytes tell a message's length: 256 MB. Five are none.
TEST_F(ReaderEdges, NoMessageOfAChakraTraceIsLongerThanFourBytesTell) {
  expect_error<DataError>(
      [&] { (void)capture_format(file("c.et", "\x80\x80\x80\x80\x80\x01\x0a\x01")); }, "c.et");
  expect_error<DataError>([&] { (void)capture_format(file("d.et", "\x80\x80\x80")); }, "d.et");
}

TEST_F(ReaderEdges, AnArgumentThatIsNoTensorIsNotSent) {
  const std::string text = R"json({"traceEvents": [
    {"ph":"X","cat":"user_annotation","name":"nccl:all_to_all","pid":5,"tid":6,"ts":100,"dur":50,"args":
     {"Input Dims":[[],[384],[2,4]],"Input type":["Scalar","int","c10::BFloat16"]}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":6,"ts":110,"dur":5,
     "args":{"correlation":4}},
    {"ph":"X","cat":"kernel","name":"ncclKernel_SendRecv(x)","pid":0,"tid":20,"ts":130,"dur":9,
     "args":{"device":0,"stream":20,"correlation":4,"grid":[1,1,1],"block":[32,1,1]}}]})json";
  const Capture capture = import_capture(file("k.json", text));
  ASSERT_EQ(capture.collectives.size(), 1U);
  EXPECT_EQ(capture.collectives[0].in_bytes, 384U * 4 + 8 * 2);
}

TEST_F(ReaderEdges, RowsOfNsightSystemsWithoutNumbersAreSkippedNotTheRest) {
  const std::filesystem::path path = folder_ / "n.sqlite";
  SqlConnection(path, SqlConnection::Mode::create).execute(R"(
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringIds VALUES (1, 'k'), (3, 'launch');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid,
      demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
    CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid);
    CREATE TABLE TARGET_INFO_GPU (id, name);
    CREATE TABLE TARGET_INFO_CUDA_STREAM (contextId, streamId, priority);
    INSERT INTO TARGET_INFO_GPU VALUES (0, 'A');
    INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (1, 6, NULL), (NULL, 7, 0), (1, 7, 4294967295);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
      (100, 150, 0, 1, 7, 5, 16777216, 1, 1, 4, 1, 1, 128, 1, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 12, 16777217, 5, 3);
    INSERT INTO NVTX_EVENTS VALUES
      (NULL, 30, 59, 'optimizer', NULL, 16777217), (-4000000000000000000, 14, 59, 'backward', NULL, 16777217),
      (9, 4000000000000000000, 59, 'backward', NULL, 16777217), (5, 1000, 59, 'forward', NULL, 16777217);)");
  const Capture capture = import_capture(path);
  ASSERT_EQ(capture.launches.size(), 1U);
  EXPECT_EQ(capture.streams[0].priority, -1);
  EXPECT_EQ(capture.launches[0].pass, Pass::forward);
}

}  // namespace
}  // namespace rubato

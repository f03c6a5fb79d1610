// What files are, by their first bytes, their names and the members of their JSON.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/byte_source.hpp"
#include "common/error.hpp"
#include "common/formats/foreign_file.hpp"
#include "common/formats/json_outline.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

TEST(ForeignFile, IsNamedByContentAndName) {
  const auto expect = [](const char* name, const std::string& head, std::string_view what,
                         std::string_view hint) {
    const auto found = foreign_file(name, head);
    ASSERT_TRUE(found) << name;
    EXPECT_NE(found->what.find(what), std::string_view::npos) << found->what;
    EXPECT_NE(found->hint.find(hint), std::string::npos) << found->hint;
  };
  std::string tar(512, '\0');
  tar.replace(0, 10, "trace.json");
  tar.replace(257, 5, "ustar");
  expect("a.tar.gz", tar, "tar archive", "unpack it");
  expect("a.zip", "PK\x03\x04rest", "zip archive", "unpack it");
  expect("a.pt", "PK\x03\x04 archive/data.pkl", "zip archive", "torch.save");
  expect("a.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS",
         "git lfs pull");
  expect("a.json", "\n <!DOCTYPE html><html>", "HTML page", "raw");
  expect("a.json.zst", "\x28\xb5\x2f\xfd", "zstd", "zstd -d");
  expect("a.json.bz2", "BZh91AY", "bzip2", "bzip2 -d");
  expect("a.pickle", "\x80\x04\x95", "pickle", "memory snapshot");
  expect("a.csv", std::string("\xff\xfe\"\0I\0", 6), "UTF-16", "iconv");
  expect("my run.nsys-rep", "x", "Nsight Systems", "nsys export --type sqlite 'my run.nsys-rep'");
  expect("run.qdrep", "x", "Nsight Systems", "nsys export --type sqlite run.qdrep");
  expect("run.NSYS-REP.gz", "x", "Nsight Systems", "nsys export");
  expect("run.ncu-rep", "x", "Nsight Compute", "ncu --csv");
  expect("host.xplane.pb", "\x0a\x10", "JAX or TensorFlow", "nsys profile");
  EXPECT_FALSE(foreign_file("a.json", "{\"traceEvents\": []}"));
  EXPECT_FALSE(foreign_file("a.csv", "a,b\n1,2\n"));
  EXPECT_FALSE(foreign_file("a", ""));
  expect_error<DataError>([] { refuse_foreign_file("a.tar", "PK\x03\x04"); }, "is a zip archive");
}

using JsonOutline = FileTest;

TEST_F(JsonOutline, ShowsKeysNearTheRoot) {
  const auto keys = [&](const std::string& text, bool* whole = nullptr) {
    ByteSource source(file("a.json", text));
    std::vector<std::string> seen;
    const bool closed = scan_json_keys(source, [&](const JsonKey& key) {
      seen.push_back(std::to_string(key.depth) + std::string(key.text) + "=" +
                     std::string(key.value));
      return key.text != "stop";
    });
    if (whole != nullptr) *whole = closed;
    return seen;
  };
  using Keys = std::vector<std::string>;
  bool whole = false;
  EXPECT_EQ(keys(R"( {"a": 1, "b": "x, {\"c\": 2}", "d": {"e": [{"f": 1}], "g": null}, "h": []})",
                 &whole),
            (Keys{"1a=1", R"(1b="x, {\"c\": 2}")", "1d={", "2e=[", "2g=null", "1h=["}));
  EXPECT_TRUE(whole);
  EXPECT_EQ(keys(R"([{"a": 1}, [{"b": 2}], {"c": {"d": 3}}])"), (Keys{"2a=1", "2c={"}));
  EXPECT_EQ(keys(R"({"stop": [1, 2)", &whole), (Keys{"1stop=["}));
  EXPECT_TRUE(whole);
  EXPECT_EQ(keys(R"({"a": "cut off)", &whole), (Keys{R"(1a="cut off)"}));
  EXPECT_FALSE(whole);
  EXPECT_EQ(keys(R"({"a": 1)"), (Keys{"1a=1"}));
  EXPECT_EQ(keys("}}]]{\"a\":1}"), (Keys{"1a=1"}));
}

}  // namespace
}  // namespace rubato

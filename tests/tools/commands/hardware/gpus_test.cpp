// What `rubato gpus` says of the shipped specs.

#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/gpu/spec.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

// Green is earned by errors on points held out, which are then in the table; what only data sheets
// and guesses say is red.
TEST_F(ProgramRun, LightsOfSpecsSayWhatWasMeasured) {
  std::map<std::string, std::string> lights;
  for (const auto& row : nlohmann::json::parse(run("gpus --json").text)) {
    const std::string name = row["name"], times = row["times"], power = row["power"];
    lights[name] = times + ' ' + power + ' ' + row["clocks"].get<std::string>();
    EXPECT_EQ(times == "green", !row["time_mape_pct"].is_null()) << name;
    EXPECT_EQ(power == "green", !row["power_mape_pct"].is_null()) << name;
    const GpuSpec spec = load_gpu_spec(name);
    EXPECT_TRUE(times != "green" || spec.calibrated) << name;
    EXPECT_TRUE(spec.sources.at("core_power") != "guessed" || power == "red") << name;
  }
  EXPECT_EQ(lights.size(), shipped_gpu_specs().size());
  EXPECT_EQ(lights["a100-sxm4-80gb"], "green green green");
  EXPECT_EQ(lights["gtx-1080-ti"], "green green yellow");  // 1600 to 2000 MHz
  EXPECT_EQ(lights["gtx-titan-x"], "red green yellow");    // powers alone
  EXPECT_EQ(lights["rtx-3080-ti"], "yellow yellow green");
  EXPECT_EQ(lights["b200-sxm6"], "yellow yellow green");
  EXPECT_EQ(lights["h100-pcie"], "red red red");
  EXPECT_EQ(lights["mi300x"], "red red red");
  EXPECT_EQ(lights["a100-sxm4-40gb"], "red red red");  // others of its chip were measured
  EXPECT_EQ(lights["a10"], "red yellow yellow");       // its power at one clock
}

}  // namespace
}  // namespace rubato

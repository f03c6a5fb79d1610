#include <array>

#include "tools/command.hpp"

namespace rubato {

std::span<const Command> commands() {
  static constexpr std::array list{
      Command{"trace", "Generate, show and convert kernel traces", &setup_trace},
      Command{"calibrate", "Fit a GPU's time and power model to measurements", &setup_calibrate},
  };
  return list;
}

}  // namespace rubato

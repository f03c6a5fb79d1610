#include "explorer/graph/contention/pair_costs.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace rubato {

PairCosts::PairCosts(const LaunchCosts& costs, const ClockGrid& grid)
    : model_(costs.model()),
      clocks_(grid.pairs().begin(), grid.pairs().end()),
      least_w_(costs.least_idle_w() / static_cast<double>(model_.graph().gpus().size()) -
               model_.host_power_w()),
      gpus_(model_.throttles() * grid.size()),
      gpus_of_many_(gpus_.size()) {}

SharedGpu& PairCosts::gpu_at(std::size_t clock, std::size_t throttle, bool many) {
  auto& gpu = (many ? gpus_of_many_ : gpus_)[throttle * clocks_.size() + clock];
  if (gpu == nullptr) {
    const auto id = id_at<ThrottleId>(throttle);
    gpu = std::make_unique<SharedGpu>(many ? model_.gpu_of_many(clocks_[clock], id)
                                           : model_.shared_gpu(clocks_[clock], id));
  }
  return *gpu;
}

double PairCosts::surplus_w(std::uint32_t kernel, std::size_t clock) const {
  const std::size_t throttle = kernel / model_.graph().kernels().size();
  return std::max(model_.idle_power_w(clocks_[clock], id_at<ThrottleId>(throttle)) - least_w_, 0.0);
}

double PairCosts::dram_use(std::uint32_t kernel, std::size_t clock) {
  const auto kernels = static_cast<std::uint32_t>(model_.graph().kernels().size());
  return gpu_at(clock, kernel / kernels, false).dram_use(kernel % kernels);
}

namespace {

std::vector<std::vector<double>> longest_in_pairs_s(
    SharedGpu& gpu, const std::vector<std::vector<std::uint32_t>>& streams) {
  std::vector<std::vector<double>> longest;
  for (const std::vector<std::uint32_t>& stream : streams) {
    std::vector<double>& of = longest.emplace_back();
    for (const std::uint32_t kernel : stream)
      of.push_back(1.0 / gpu.at(std::array{kernel}).launches_per_s[0]);
  }
  for (std::size_t a = 0; a < streams[0].size(); ++a) {
    for (std::size_t b = 0; b < streams[1].size(); ++b) {
      const std::uint32_t first = streams[0][a], other = streams[1][b];
      const Sharing& both = gpu.at(std::array{std::min(first, other), std::max(first, other)});
      const std::size_t at = first <= other ? 0 : 1;
      longest[0][a] = std::max(longest[0][a], 1.0 / both.launches_per_s[at]);
      longest[1][b] = std::max(longest[1][b], 1.0 / both.launches_per_s[1 - at]);
    }
  }
  return longest;
}

}  // namespace

std::vector<std::vector<double>> PairCosts::longest_s(
    const std::vector<std::vector<std::uint32_t>>& streams, std::span<const double> weight) {
  const auto different = static_cast<std::uint32_t>(model_.graph().kernels().size());
  std::size_t throttle = 0;
  std::vector<std::vector<std::uint32_t>> kernels = streams;
  for (std::vector<std::uint32_t>& stream : kernels) {
    for (std::uint32_t& kernel : stream) {
      throttle = kernel / different;
      kernel %= different;
    }
  }
  // Pairs seldom reach the power limit, as bounds must assume: of two streams each is looked at.
  constexpr std::size_t most_pairs = 1'000'000;
  const bool exact =
      kernels.size() == 2 && kernels[0].size() * kernels[1].size() * clocks_.size() <= most_pairs;
  std::vector<std::vector<double>> longest;
  for (const std::vector<std::uint32_t>& stream : kernels) longest.emplace_back(stream.size(), 0.0);
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    SharedGpu& gpu = gpu_at(c, throttle, false);
    const auto here = exact ? longest_in_pairs_s(gpu, kernels) : gpu.longest_s(kernels);
    for (std::size_t s = 0; s < here.size(); ++s) {
      for (std::size_t k = 0; k < here[s].size(); ++k)
        longest[s][k] = std::max(longest[s][k], (weight.empty() ? 1.0 : weight[c]) * here[s][k]);
    }
  }
  return longest;
}

std::vector<double> PairCosts::most_passed_s(std::span<const std::uint32_t> stream,
                                             std::span<const std::uint32_t> beside) {
  const auto different = static_cast<std::uint32_t>(model_.graph().kernels().size());
  std::vector<double> least_s(stream.size(), std::numeric_limits<double>::infinity());
  std::vector<double> most_s(beside.size(), 0.0);
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    for (std::size_t k = 0; k < stream.size(); ++k) {
      const std::uint32_t alone = stream[k] % different;
      SharedGpu& gpu = gpu_at(c, stream[k] / different, false);
      least_s[k] = std::min(least_s[k], 1.0 / gpu.at(std::array{alone}).launches_per_s[0]);
    }
  }
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    for (std::size_t k = 0; k < stream.size(); ++k) {
      SharedGpu& gpu = gpu_at(c, stream[k] / different, false);
      for (std::size_t b = 0; b < beside.size(); ++b) {
        const std::uint32_t one = stream[k] % different, other = beside[b] % different;
        const Sharing& both = gpu.at(std::array{std::min(one, other), std::max(one, other)});
        const std::size_t at = one <= other ? 0 : 1;
        most_s[b] =
            std::max(most_s[b], both.launches_per_s[at] / both.launches_per_s[1 - at] * least_s[k]);
      }
    }
  }
  return most_s;
}

CompanyId PairCosts::company(const std::vector<std::set<std::uint32_t>>& others, bool pays) {
  const auto at = std::ranges::find_if(
      companies_, [&](const Company& one) { return one.others == others && one.pays == pays; });
  const auto id = id_at<CompanyId>(static_cast<std::size_t>(at - companies_.begin()));
  if (at != companies_.end()) return id;
  Company& of = companies_.emplace_back();
  of.others = others;
  of.pays = pays;
  of.dram_uses.assign(clocks_.size(), std::vector<double>(others.size(), 0.0));
  for (std::size_t stream = 0; stream < others.size(); ++stream) {
    for (const std::uint32_t kernel : others[stream]) {
      const Kernel& one = model_.graph().kernels()[kernel % model_.graph().kernels().size()];
      of.loads |= sm_demand(one, model_.spec().sm_count).held <= 0.0;
      for (std::size_t c = 0; c < clocks_.size(); ++c)
        of.dram_uses[c][stream] = std::max(of.dram_uses[c][stream], dram_use(kernel, c));
    }
  }
  return id;
}

// The most by which a collective is slowed down by its company, which wants DRAM too and may keep
// the GPU busy.
double PairCosts::most_slowdown(const Key& key, std::size_t clock) {
  const auto [kernel, side, holds, id] = key;
  const Company& company = companies_[index(id)];
  std::vector<double> uses = company.dram_uses[clock];
  const double own = dram_use(side == nothing ? kernel : side, clock);
  uses.push_back(own);
  if (side != nothing) uses.push_back(dram_use(kernel, clock));
  const double load = company.loads ? CollectiveSharing{}.load_slowdown : 0.0;
  return (1.0 + load) * (1.0 + own * (stretch(uses) - 1.0));
}

std::vector<PairCost> PairCosts::evaluate(const Key& key) {
  const auto [kernel, side, holds, company] = key;
  const bool many = company != no_company;
  const auto kernels = static_cast<std::uint32_t>(model_.graph().kernels().size());
  const std::array running{kernel % kernels, side % kernels};
  const std::size_t count = side == nothing ? 1 : 2;
  std::array sorted = running;
  const bool swapped = count == 2 && sorted[0] > sorted[1];
  if (swapped) std::swap(sorted[0], sorted[1]);
  std::vector<PairCost> costs;
  costs.reserve(clocks_.size());
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const Sharing& sharing = gpu_at(c, kernel / kernels, many).at(std::span(sorted).first(count));
    PairCost& cost = costs.emplace_back();
    cost.time_s = 1.0 / sharing.launches_per_s[swapped ? 1 : 0];
    cost.power_w = std::max(sharing.power_w() - least_w_, 0.0);
    const std::size_t other = count == 1 || swapped ? 0 : 1;
    cost.side_per_s = holds ? 1.0 : sharing.launches_per_s[other];
    cost.side_w = sharing.active_w[other];
    jointly_limited_ |= count == 2 && sharing.power_limited;
    if (!holds || !many || companies_[index(company)].pays) continue;
    // A collective that waits draws less the slower it copies.
    const double least_w = cost.side_w / most_slowdown(key, c);
    cost.power_w -= cost.side_w - least_w;
    cost.side_w = least_w;
  }
  cells_ += costs.size();
  return costs;
}

std::vector<double> PairCosts::lost_w(std::optional<std::uint32_t> kernel, std::uint32_t side,
                                      CompanyId company) {
  const Key key = kernel ? Key{*kernel, side, true, company} : Key{side, nothing, true, company};
  std::vector<double> lost;
  for (const PairCost& cost : known(key)) {
    const bool pays = companies_[index(company)].pays;
    lost.push_back(pays ? cost.side_w * (1.0 - 1.0 / most_slowdown(key, lost.size())) : 0.0);
  }
  return lost;
}

std::span<const PairCost> PairCosts::known(const Key& key) {
  const auto [at, made] = known_.try_emplace(key);
  if (made) at->second = evaluate(key);
  return at->second;
}

}  // namespace rubato

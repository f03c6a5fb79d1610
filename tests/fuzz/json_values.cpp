#include "tests/fuzz/json_values.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace rubato::fuzz {

namespace {

// A refusal is an answer; its text must hold as everywhere.
template <class Call>
void ask(Call call) {
  const std::uint8_t none = 0;
  (void)check(&none, 0, [&](std::string_view) { call(); });
}

// Every error costs time: a large document is asked for its first values only.
void visit(const JsonNode& node, int& left) {
  if (left-- <= 0) return;
  ask([&] { (void)node.text(); });
  ask([&] { (void)node.boolean(); });
  ask([&] { (void)node.number(Range::positive); });
  ask([&] { (void)node.count(); });
  ask([&] { (void)node.numbers(); });
  ask([&] { node.expect_keys({"schema"}, {"name"}); });
  ask([&] { (void)node.at("schema"); });
  if (node.is_list()) {
    for (const JsonNode& item : node.items()) visit(item, left);
  }
  if (!node.is_object()) return;
  for (const std::string& key : node.keys()) {
    if (const auto value = node.find(key)) visit(*value, left);
  }
}

}  // namespace

void ask_for_all_types(const JsonDocument& document) {
  ask([&] { document.expect_schema(1); });
  int left = 200;
  visit(document.root(), left);
}

}  // namespace rubato::fuzz

/// Chat templates, run on a dialogue.

#include "tessera/chat/chat_template.h"

#include "fuzz/target.h"
#include "tessera/base/utf8.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  static const auto variables = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "user", "content": "a b"}, {"role": "assistant", "content": "\u00e9<"}],
    "tools": [{"name": "f", "number": 1.5}], "bos_token": "<s>", "add_generation_prompt": true})");
  const std::tm now = {};
  const ChatTemplate made = ChatTemplate::parse(input, "input");
  const RenderedChat out = made.render(variables, now, {.steps = 20'000, .bytes = 1 << 20});
  then([&] {
    check(find_invalid_utf8(out.text) == std::string::npos, "text that is not UTF-8");
    std::size_t before = 0;
    for (const auto& [begin, end] : out.generated) {
      check(before <= begin && begin <= end && end <= out.text.size(), "what was generated");
      check(made.has_generation(), "generation without a block");
      before = begin;
    }
  });
}

}  // namespace

const Target kTarget = {16 << 20, 8192, run};

}  // namespace tessera::fuzz

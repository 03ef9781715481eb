/// Lines of dialogues: the first byte says with which keys.

#include "tessera/data/dialogues.h"

#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  static const DialogueKeys kKeys[] = {
      {"messages", ""}, {"conversations", ""}, {"prompt", "completion"}};
  static const std::string kPath = "input";
  const std::size_t which = input.empty() ? 0 : static_cast<unsigned char>(input[0]) % 3;
  const Dialogue made = dialogue_of(input.substr(input.empty() ? 0 : 1), kKeys[which], {&kPath, 1});
  then([&] {
    check(!made.messages.empty() && made.prompt <= made.messages.size(), "messages");
    for (const auto& message : made.messages)
      check(message.contains("role") && message["role"].is_string(), "a message without a role");
    check(made.tools.is_null() || made.tools.is_array(), "tools");
    check(made.others.is_object(), "other variables");
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz

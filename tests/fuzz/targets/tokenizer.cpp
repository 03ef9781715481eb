/// Tokenizer files of other programs: tokenizer.json; tokenizer_config.json,
/// special_tokens_map.json and added_tokens.json beside a vocab.txt; and vocab.txt, which most
/// damaged files are.

#include "tessera/tokenizers/tokenizer.h"
#include "fuzz/target.h"
#include "tessera/base/utf8.h"

namespace tessera::fuzz {

namespace {

constexpr const char* kTexts[] = {"", " ab  Ab\u00e9 e\u0301 \u4e2d1 12! <s>\n",
                                  "\xff\xc3 \u2581x\u3000"};

/// What a tokenizer makes of any text has ids that it knows, or is refused.
void use(const Tokenizer& tokenizer, std::string_view input) {
  for (const std::string_view text : {std::string_view(kTexts[0]), std::string_view(kTexts[1]),
                                      std::string_view(kTexts[2]), input.substr(0, 256)}) {
    Encoding pair;
    try {
      pair = tokenizer.encode_pair(text, "b a");
    } catch (const Error&) {  // it has no token for what is unknown, or a pattern gives up
      continue;
    }
    then([&] {
      check(pair.ids.size() == pair.type_ids.size(), "type ids: ", pair.type_ids.size());
      for (const std::int32_t id : pair.ids)
        check(id >= 0 && id < tokenizer.size(), "id ", id, " of ", tokenizer.size());
      tokenizer.decode(pair.ids);
      tokenizer.decode(pair.ids, true);
    });
  }
}

void run(std::string_view input) {
  const auto has = [&](std::string_view part) { return input.find(part) != input.npos; };
  const std::string bytes(input);
  if (has("_token")) {
    for (const char* const file :
         {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}) {
      try {
        use(Tokenizer::of({{"vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\n"}, {file, bytes}}, "input"),
            input);
      } catch (const Error&) {  // refused
      }
    }
  }
  use(Tokenizer::of({{has("{") ? "tokenizer.json" : "vocab.txt", bytes}}, "input"), input);
}

}  // namespace

const Target kTarget = {64 << 20, 4096,
                        run};  // tables of all code points, and words that came before

}  // namespace tessera::fuzz

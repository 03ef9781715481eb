/// .model files of SentencePiece.

#include "fuzz/target.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const Tokenizer tokenizer = Tokenizer::of({{"tokenizer.model", std::string(input)}}, "input");
  then([&] {
    for (const std::string_view text : {std::string_view(" ab  Ab\u00e9 \u2581<u>xy\t"), input}) {
      const std::vector<std::int32_t> ids = tokenizer.encode(text.substr(0, 256));
      for (const std::int32_t id : ids)
        check(id >= 0 && id < tokenizer.size(), "id ", id, " of ", tokenizer.size());
      tokenizer.decode(ids);
    }
  });
}

}  // namespace

const Target kTarget = {16 << 20, 4096, run};

}  // namespace tessera::fuzz

/// Text corpora: normalised, cleaned, made tokens of.

#include "tessera/files/text.h"
#include <algorithm>

#include "fuzz/target.h"
#include "tessera/base/utf8.h"
#include "tessera/files/clean.h"
#include "tessera/token_files/token_stream.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera::fuzz {

namespace {

std::string loaded(std::string_view input, InvalidUtf8 invalid) {
  Text out;
  append_text_file(out, input, "input", {invalid});
  return out.bytes;
}

void tokenise(const Vocabulary& vocabulary, const std::string& bytes) {
  const TokenStream tokens(vocabulary.encode(bytes));
  check(vocabulary.decode(tokens.all()) == bytes, "tokens are another text than they were made of");
  if (tokens.all().size() < 2) return;
  constexpr std::int64_t kContext = 7, kCount = 3;
  const EvalWindows windows(tokens.all(), kContext);
  std::vector<std::int32_t> ids(kContext * kCount), labels(ids);
  std::int64_t scored = 0;
  for (std::int64_t first = 0; first < windows.count(); first += kCount)
    scored += windows.fill(first, kCount, ids, labels);
  check(scored == windows.num_labels(), scored, " labels of ", windows.num_labels(), " are scored");
}

void run(std::string_view input) {
  then([&] {
    check(loaded(input, InvalidUtf8::Keep) == input, "bytes are not kept");
    const std::string replaced = loaded(replaced_utf8(input), InvalidUtf8::Refuse);
    if (!input.empty()) tokenise(Vocabulary::bytes(), std::string(input));
    if (!input.empty()) tokenise(Vocabulary::bpe(input, 300), std::string(input));
    // A vocabulary of characters of four bytes has a large table: of these, some are tried.
    const bool large = std::any_of(replaced.begin(), replaced.end(),
                                   [](char c) { return static_cast<unsigned char>(c) >= 0xF0; });
    if (!replaced.empty() && (!large || input.size() % 16 == 0))
      tokenise(Vocabulary::characters(replaced), replaced);
    CleaningLog log, nothing;
    const std::string clean = clean_text(replaced, log);
    check(clean_text(clean, nothing) == clean && nothing.list().empty(), "clean text is cleaned");
  });
  CleaningLog log;
  if (starts_with(input, "Ge")) clean_verses(input, log);
  const std::string text = loaded(input, InvalidUtf8::Refuse);
  then([&] { check(replaced_utf8(input) == input, "good text is replaced"); });
}

}  // namespace

const Target kTarget = {16 << 20, 256, run};  // two tables of all code points take 9 MiB

}  // namespace tessera::fuzz

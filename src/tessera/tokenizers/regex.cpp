#include "tessera/tokenizers/regex.h"

#include <pcre2.h>

#include <limits>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/gpt2_pieces.h"
#include "tessera/tokenizers/pattern_text.h"

namespace tessera::tokenizer {

namespace {

constexpr std::uint32_t kMostSteps = 10'000'000;  // of one match
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* of) const {
    kFree(of);
  }
};
using MatchData = std::unique_ptr<pcre2_match_data, FreedBy<pcre2_match_data_free>>;

std::string message_of_engine(int error) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(error, message, sizeof message);
  return reinterpret_cast<const char*>(message);
}

}  // namespace

struct Regex::Compiled {
  std::unique_ptr<pcre2_code, FreedBy<pcre2_code_free>> code;
  std::unique_ptr<pcre2_match_context, FreedBy<pcre2_match_context_free>> limits;
};

Regex::Regex(const std::string& pattern, const JsonPart& part)
    : compiled_(std::make_unique<Compiled>()), pattern_(pattern) {
  const std::string translated = pcre2_pattern(pattern, part);
  const std::unique_ptr<pcre2_compile_context, FreedBy<pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  if (!context) fail(Fault::Resource, "no memory for a pattern; free some");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled_->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                    context.get()));
  if (!compiled_->code)
    part.bad("pattern '", replaced_utf8(pattern.substr(0, 200)),
             "' is refused: ", message_of_engine(error), "; write it without that");
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // slower where there is none
  compiled_->limits.reset(pcre2_match_context_create(nullptr));
  if (!compiled_->limits) fail(Fault::Resource, "no memory for a pattern; free some");
  pcre2_set_match_limit(compiled_->limits.get(), kMostSteps);
}

Regex::~Regex() = default;

void Regex::find(std::string_view text, Spans& out) const {
  const MatchData data(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
  if (!data) fail(Fault::Resource, "no memory for a match; free some");
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t covered = 0;
  std::size_t last_end = std::numeric_limits<std::size_t>::max();
  for (std::size_t from = 0; from <= text.size();) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(compiled_->code.get(), subject, text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data.get(), compiled_->limits.get());
    };
    int found = match(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      fail(Fault::Data, "pattern '", replaced_utf8(pattern_.substr(0, 200)), "' gives up at byte ",
           from, " of a text of ", text.size(), " bytes: ", message_of_engine(found),
           "; shorten the text there, or give lines");
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
    const std::size_t begin = ends[0], end = ends[1];
    if (begin > end) break;                 // \K
    if (begin == end && end == last_end) {  // an empty match directly behind a match is none
      if (from == text.size()) break;
      from += std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(text, from).size));
      continue;
    }
    if (covered < begin) out.push_back({covered, begin, false});
    out.push_back({begin, end, true});
    covered = from = last_end = end;
  }
  if (covered < text.size()) out.push_back({covered, text.size(), false});
}

Finder make_finder(const JsonPart& part, std::string_view key) {
  const JsonPart pattern = part.part(key);
  if (pattern.has("String")) {
    return [wanted = pattern.text("String")](std::string_view text, Spans& out) {
      find_string(text, wanted, out);
    };
  }
  const std::string regex = pattern.text("Regex");
  if (regex == kGpt2Pattern) {
    return [](std::string_view text, Spans& out) {
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = at + gpt2_piece_size(text.substr(at));
        out.push_back({at, end, true});
        at = end;
      }
    };
  }
  return [regex = std::make_shared<const Regex>(regex, pattern)](
             std::string_view text, Spans& out) { regex->find(text, out); };
}

void find_string(std::string_view text, std::string_view wanted, Spans& out) {
  std::size_t covered = 0;
  while (!wanted.empty()) {
    const std::size_t at = text.find(wanted, covered);
    if (at == text.npos) break;
    if (covered < at) out.push_back({covered, at, false});
    out.push_back({at, at + wanted.size(), true});
    covered = at + wanted.size();
  }
  if (covered < text.size()) out.push_back({covered, text.size(), false});
}

}  // namespace tessera::tokenizer

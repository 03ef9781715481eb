/// BERT's normalizer, in one pass over the text.

#include "tessera/base/utf8.h"
#include "tessera/tokenizers/characters.h"
#include "tessera/tokenizers/normalizers.h"

namespace tessera::tokenizer {

namespace {

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

struct BertOptions {
  bool clean = true, chinese = true, strip_accents = true, lowercase = true;
};

/// ASCII goes straight to the output. All else is gathered in runs, because accents are found by
/// decomposing, which reorders marks: ASCII ends a run, unless it is dropped.
class BertPass {
 public:
  BertPass(const BertOptions& options, std::string& out) : options_(options), out_(out) {}

  void take(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x80) {
        take_ascii(byte);
        ++at;
        continue;
      }
      const CodePoint c = code_point_at(text, at);
      take_wide(c.size == 0 ? U'\uFFFD' : c.value);
      at += c.size == 0 ? 1 : static_cast<std::size_t>(c.size);
    }
    end_run();
  }

 private:
  void take_ascii(unsigned char c) {
    if (options_.clean) {
      const bool blank = c == '\t' || c == '\n' || c == '\r';
      if (!blank && (ascii_[c] & kControl) != 0) return;
      if ((ascii_[c] & kBlank) != 0) c = ' ';
    }
    if (!run_.empty()) end_run();
    if (options_.lowercase && c >= 'A' && c <= 'Z') c = static_cast<unsigned char>(c | 0x20);
    out_ += static_cast<char>(c);
  }

  void take_wide(char32_t c) {
    if (options_.clean) {
      if (c == 0xFFFD || (traits_of(c) & kControl) != 0) return;
      if ((traits_of(c) & kBlank) != 0) c = U' ';
    }
    const bool alone = options_.chinese && is_chinese(c);
    if (alone) run_ += U' ';
    run_ += c;
    if (alone) run_ += U' ';
  }

  void end_run() {
    if (run_.empty()) return;
    if (options_.strip_accents) {
      normalize_form(run_, NormalForm::D);
      std::erase_if(run_, [](char32_t c) { return (traits_of(c) & kAccent) != 0; });
    }
    for (const char32_t c : run_) {
      if (options_.lowercase) {
        append_lower(out_, c);
      } else {
        append_utf8(out_, c);
      }
    }
    run_.clear();
  }

  const BertOptions& options_;
  const std::array<Traits, 128>& ascii_ = ascii_traits();
  std::string& out_;
  std::u32string run_;
};

}  // namespace

Normalizer make_bert_normalizer(const JsonPart& part) {
  BertOptions options;
  options.clean = part.flag("clean_text", true);
  options.chinese = part.flag("handle_chinese_chars", true);
  options.lowercase = part.flag("lowercase", true);
  options.strip_accents = part.flag("strip_accents", options.lowercase);
  return [options](NormalizedText& text) {
    std::string out;
    out.reserve(text.text.size() + text.text.size() / 8);
    BertPass(options, out).take(text.text);
    text.text = std::move(out);
  };
}

}  // namespace tessera::tokenizer

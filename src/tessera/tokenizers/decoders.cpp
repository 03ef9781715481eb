#include "tessera/tokenizers/decoders.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/regex.h"

namespace tessera::tokenizer {

namespace {

using Tokens = std::vector<std::string>;

std::string replaced_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  Spans spans;
  find_string(text, from, spans);
  for (const Span& span : spans)
    out += span.match ? to : text.substr(span.begin, span.end - span.begin);
  return out;
}

/// A token whose characters all stand for bytes is these bytes.
Decoder make_byte_level_decoder(const JsonPart&) {
  return [](Tokens& tokens) {
    std::string all;
    for (const std::string& token : tokens) {
      if (!append_printed_bytes(token, all)) all += token;
    }
    tokens = {replaced_utf8(all)};
  };
}

/// What BERT's detokenizer does to English: blanks before marks and endings go.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kRules) text = replaced_all(text, from, to);
  return text;
}

Decoder make_word_piece_decoder(const JsonPart& part) {
  const std::string prefix = part.text("prefix", "##");
  const bool cleans = part.flag("cleanup", true);
  return [prefix, cleans](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        if (starts_with(token, prefix)) {
          token.erase(0, prefix.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (cleans) token = cleaned_up(std::move(token));
    }
  };
}

Decoder make_metaspace_decoder(const JsonPart& part) {
  std::string mark;
  append_utf8(mark, part.character("replacement", U'\u2581'));
  const std::string scheme = part.text("prepend_scheme", "");
  const bool prepended = scheme.empty() ? part.flag("add_prefix_space", true) : scheme != "never";
  return [mark, prepended](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced_all(tokens[i], mark, i == 0 && prepended ? "" : " ");
  };
}

Decoder make_bpe_decoder(const JsonPart& part) {
  const std::string suffix = part.text("suffix", "</w>");
  return [suffix](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced_all(tokens[i], suffix, i + 1 < tokens.size() ? " " : "");
  };
}

/// Several of them, one behind the other, may make a text grow without end.
Decoder make_replace_decoder(const JsonPart& part) {
  constexpr std::size_t kMost = std::size_t{8} << 20;
  const Finder find = make_finder(part);
  const std::string content = part.text("content");
  return [find, content](Tokens& tokens) {
    std::size_t bytes = 0;  // of all tokens
    for (std::string& token : tokens) {
      std::string out;
      Spans spans;
      find(token, spans);
      for (const Span& span : spans) {
        const std::size_t before = out.size();
        out += span.match ? std::string_view(content)
                          : std::string_view(token).substr(span.begin, span.end - span.begin);
        bytes += out.size() - before;
        if (bytes > kMost)
          fail(Fault::Data, "the decoder of the tokenizer makes more than ", kMost >> 20,
               " MiB of one text; remove the parts of its \"decoder\" that lengthen texts");
      }
      token = std::move(out);
    }
  };
}

/// Bytes side by side are text where they are UTF-8; else each is U+FFFD.
Decoder make_byte_fallback_decoder(const JsonPart&) {
  return [](Tokens& tokens) {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (find_invalid_utf8(bytes) == std::string::npos) {
        out.push_back(bytes);
      } else {
        for (std::size_t i = 0; i < bytes.size(); ++i) out.emplace_back("\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = byte_of_token(token);
      if (byte >= 0) {
        bytes += static_cast<char>(static_cast<unsigned char>(byte));
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  };
}

Decoder make_fuse_decoder(const JsonPart&) {
  return [](Tokens& tokens) { tokens = {join(tokens, "")}; };
}

/// At most `start` such characters go from the front of each token, and `stop` from its end.
Decoder make_strip_decoder(const JsonPart& part) {
  std::string content;
  append_utf8(content, part.character("content"));
  const std::int32_t start = part.number("start", 0), stop = part.number("stop", 0);
  return [content, start, stop](Tokens& tokens) {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::int32_t i = 0; i < start && starts_with(rest, content); ++i)
        rest.remove_prefix(content.size());
      for (std::int32_t i = 0; i < stop && rest.ends_with(content); ++i)
        rest.remove_suffix(content.size());
      token = std::string(rest);
    }
  };
}

Decoder make_decoder_sequence(const JsonPart& part) {
  std::vector<Decoder> all;
  for (std::size_t i = 0; i < part.count("decoders"); ++i)
    all.push_back(make_decoder(part.item("decoders", i)));
  return [all = std::move(all)](Tokens& tokens) {
    for (const Decoder& each : all) each(tokens);
  };
}

constexpr Maker<Decoder> kDecoders[] = {
    {"BPEDecoder", make_bpe_decoder},       {"ByteFallback", make_byte_fallback_decoder},
    {"ByteLevel", make_byte_level_decoder}, {"Fuse", make_fuse_decoder},
    {"Metaspace", make_metaspace_decoder},  {"Replace", make_replace_decoder},
    {"Sequence", make_decoder_sequence},    {"Strip", make_strip_decoder},
    {"WordPiece", make_word_piece_decoder},
};

}  // namespace

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !starts_with(token, "<0x") || token[5] != '>') return -1;
  int out = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    out = out * 16 + digit;
  }
  return out;
}

Decoder make_decoder(const JsonPart& part) {
  return make_by_type<Decoder>(kDecoders, part, "decoder");
}

}  // namespace tessera::tokenizer

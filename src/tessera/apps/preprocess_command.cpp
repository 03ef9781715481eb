#include <chrono>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/token_files/preprocess.h"

namespace tessera {

namespace {

constexpr std::string_view kIn = "input", kOut = "output", kTokens = "tokenizer", kRun = "runtime";

std::vector<Flag> preprocess_flags() {
  return {
      {"input",
       {},
       "FILE...",
       "files with one JSON object per line, in this order",
       std::string(kIn),
       true},
      {"json-keys",
       {},
       "KEY...",
       "keys of the texts [text]; each key makes its own files",
       std::string(kIn),
       true},
      {"split-sentences",
       {},
       "",
       "write one sequence per sentence, as BERT and T5 need",
       std::string(kIn)},
      {"keep-newlines", {}, "", "keep blanks and newlines after a sentence", std::string(kIn)},
      {"lang",
       {},
       "english",
       "language of the sentences; only English is supported",
       std::string(kIn)},
      {"tokenizer-type",
       {},
       "TYPE",
       text("how text becomes ids: ", join(text_encoder_names()),
            "; HuggingFaceTokenizer with tokenizer-model, else bytes, unless given"),
       std::string(kTokens)},
      {"vocab-file", {"vocab"}, "FILE", "the vocabulary of the tokenizer", std::string(kTokens)},
      {"merge-file", {}, "FILE", "its merges", std::string(kTokens)},
      {"tokenizer-model",
       {"tokenizer-name-or-path"},
       "PATH",
       "a tokenizer's .model, its tokenizer.json, or its folder; nothing is fetched",
       std::string(kTokens)},
      {"vocab-size",
       {},
       "N",
       "how many tokens bpe learns, or ids NullTokenizer has",
       std::string(kTokens)},
      {"append-eod",
       {},
       "",
       "the last token of each document is the end of a document",
       std::string(kTokens)},
      {"output-prefix",
       {},
       "PREFIX",
       "files are PREFIX_KEY_document.bin and .idx, or PREFIX_KEY_sentence with split-sentences",
       std::string(kOut)},
      {"dataset-impl",
       {"data-impl"},
       "mmap",
       "the form of the files; there is this one",
       std::string(kOut)},
      {"overwrite", {}, "", "replace files that exist", std::string(kOut)},
      {"workers",
       {},
       "N",
       "threads that encode; 1, unless given; the files do not depend on it",
       std::string(kRun)},
      {"log-interval",
       {},
       "N",
       "documents between lines of progress; 0, unless given: none",
       std::string(kRun)},
      {"partitions",
       {},
       "1",
       "Megatron-LM's way to use more workers; there is no need for it here",
       std::string(kRun)},
  };
}

/// Takes a flag that can say one thing alone.
void take_only(ParsedFlags& parsed, std::string_view name, std::string_view only,
               Problems& problems) {
  const std::string value = parsed.take_value(name);
  if (!value.empty() && value != only)
    problems.add(text(name, " is '", value, "', but can only be ", only, "; leave it out"));
}

std::int64_t take_amount(ParsedFlags& parsed, std::string_view name, std::int64_t usual,
                         Problems& problems) {
  const std::string value = parsed.take_value(name);
  if (value.empty()) return usual;
  std::int64_t out = usual;
  problems.gather([&] {
    read_number(text("--", name), value, &out);
    require(out >= 0, name, " is ", out, "; give 0 or more");
  });
  return out;
}

}  // namespace

int preprocess_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = preprocess_flags();
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera preprocess_data --input FILE... --output-prefix PREFIX\n\n"
                   "Encodes the texts of JSON lines into token files for tessera train --data "
                   "PREFIX_text_document: the same files as Megatron-LM's tool of this name.\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  PreprocessRequest request;
  request.inputs = parsed.take_values("input");
  if (auto keys = parsed.take_values("json-keys"); !keys.empty()) request.keys = std::move(keys);
  request.output_prefix = parsed.take_value("output-prefix");
  request.split_sentences = parsed.take_switch("split-sentences");
  request.keep_newlines = parsed.take_switch("keep-newlines");
  request.append_eod = parsed.take_switch("append-eod");
  request.overwrite = parsed.take_switch("overwrite");
  request.workers = take_amount(parsed, "workers", 1, problems);
  request.encoder.vocab_file = parsed.take_value("vocab-file");
  request.encoder.merge_file = parsed.take_value("merge-file");
  request.encoder.path = parsed.take_value("tokenizer-model");
  if (!request.encoder.path.empty()) request.encoder.type = "HuggingFaceTokenizer";
  request.encoder.vocab_size = take_amount(parsed, "vocab-size", 0, problems);
  if (const std::string type = parsed.take_value("tokenizer-type"); !type.empty())
    request.encoder.type = type;
  take_only(parsed, "lang", "english", problems);
  take_only(parsed, "dataset-impl", "mmap", problems);
  take_only(parsed, "partitions", "1", problems);
  const std::int64_t interval = take_amount(parsed, "log-interval", 0, problems);
  if (request.keep_newlines && !request.split_sentences)
    problems.add(
        "keep-newlines does nothing without split-sentences; leave it out, or add split-sentences");
  for (const std::string& word : parsed.words)
    problems.add(text("'", word, "' belongs to no flag; give files with --input"));
  problems.raise();

  const auto start = std::chrono::steady_clock::now();
  std::int64_t next = interval;
  if (interval > 0)
    request.progress = [&](std::int64_t documents, std::int64_t bytes, std::int64_t of) {
      if (documents < next) return;
      next = (documents / interval + 1) * interval;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      const double rate = static_cast<double>(bytes) / 1e6 / std::max(passed.count(), 1e-9);
      console.err << text(grouped(documents), " documents, ", bytes_text(bytes), " of ",
                          bytes_text(of), ", ", static_cast<std::int64_t>(rate), " MB/s\n")
                  << std::flush;
    };
  console.out << to_text(preprocess(request));
  return 0;
}

}  // namespace tessera

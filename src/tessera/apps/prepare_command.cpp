#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/corpora/corpus.h"
#include "tessera/corpora/wmt.h"

namespace tessera {

namespace {

constexpr const char* kWmt = "wmt14";

/// `tessera prepare wmt14`: pairs from a folder of .sgm files.
int prepare_pairs(ParsedFlags& parsed, Problems& problems, Console& console) {
  WmtRequest request;
  request.overwrite = parsed.take_switch("overwrite");
  request.input = parsed.take_value("input");
  request.output = parsed.take_value("output");
  if (parsed.words.size() > 1)
    problems.add(text("prepare ", kWmt, " takes no SOURCE, and was given '", parsed.words[1],
                      "'; its files are those of --input DIR"));
  if (request.input.empty())
    problems.add("input is missing; give the folder of the .sgm files, like --input wmt14");
  if (request.output.empty())
    problems.add("output is missing; give the folder to write to, like --output data");
  problems.raise();
  console.out << to_text(prepare_wmt(request));
  return 0;
}

}  // namespace

int prepare_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = {
      {"output", {}, "PATH", "the text file to write; for wmt14 the folder", "", false},
      {"input", {}, "DIR", "for wmt14: the folder with the .sgm files", "", false},
      {"overwrite", {}, "", "replace an existing output with other contents", "", false},
  };
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera prepare SOURCE... --output FILE\n"
                   "tessera prepare wmt14 --input DIR --output DIR\n\n"
                   "A SOURCE is a text file, a folder of them, or a corpus by name: "
                << join(corpus_names())
                << ".\n"
                   "wmt14 makes pairs, one source and target per line, from the .sgm files of two "
                   "languages.\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  if (!parsed.words.empty() && parsed.words[0] == kWmt)
    return prepare_pairs(parsed, problems, console);
  const std::string* output = parsed.find("output");
  if (output == nullptr)
    problems.add("output is missing; give the text file to write, like --output corpus.txt");
  if (parsed.find("input") != nullptr)
    problems.add(
        "input is given without wmt14; name sources without a flag, or give prepare wmt14");
  if (parsed.words.empty())
    problems.add(
        text("no source; give text files, folders, or a corpus by name: ", join(corpus_names())));
  problems.raise();
  CorpusRequest request;
  request.sources = parsed.words;
  request.output = *output;
  request.overwrite = parsed.take_switch("overwrite");
  console.out << to_text(prepare_corpus(request));
  return 0;
}

}  // namespace tessera

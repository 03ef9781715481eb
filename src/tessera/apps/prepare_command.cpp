#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/data/corpus.h"

namespace tessera {

int prepare_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = {
      {"output", {}, "FILE", "the text file to write", "", false},
      {"overwrite",
       {},
       "",
       "replace the output where it exists and holds something else",
       "",
       false},
  };
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera prepare SOURCE... --output FILE\n\n"
                   "A SOURCE is a text file, a folder of them, or a corpus by name: "
                << join(corpus_names()) << ".\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  const std::string* output = parsed.find("output");
  if (output == nullptr)
    problems.add("output is missing; give the text file to write, like --output corpus.txt");
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

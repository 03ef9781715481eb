#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/bleu.h"
#include "tessera/files/text.h"

namespace tessera {

int score_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = {
      {"hypotheses", {}, "FILE", "the translations to score, one per line", "", false},
      {"references", {}, "FILE", "the reference translations, one per line", "", false},
  };
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out
        << "tessera score --hypotheses FILE --references FILE\n\n"
           "Prints BLEU as sacreBLEU does with its default settings: tokenizer 13a, case counts, "
           "smoothing exp.\n"
           "Files are UTF-8.\n\n"
        << flags_help(flags, console.columns);
    return 0;
  }
  for (const char* name : {"hypotheses", "references"}) {
    if (parsed.find(name) == nullptr)
      problems.add(
          text(name, " is missing; give a file with one text per line, like --", name, " FILE"));
  }
  for (const std::string& word : parsed.words)
    problems.add(
        text("'", word, "' belongs to no flag; give files with --hypotheses and --references"));
  problems.raise();
  const std::string hypotheses = parsed.take_value("hypotheses"),
                    references = parsed.take_value("references");
  const std::vector<std::string> ours = read_lines(hypotheses), theirs = read_lines(references);
  if (ours.size() != theirs.size())
    fail(Fault::Data, "'", hypotheses, "' has ", counted(std::ssize(ours), "line"), " and '",
         references, "' has ", counted(std::ssize(theirs), "line"),
         "; give one reference per hypothesis, in the same order");
  console.out << to_text(corpus_bleu(ours, theirs)) << "\n";
  return 0;
}

}  // namespace tessera

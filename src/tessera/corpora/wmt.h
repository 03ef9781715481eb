#pragma once
/// Pairs for training from WMT's test sets: what `tessera prepare wmt14` does.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/files/clean.h"

namespace tessera {

struct WmtRequest {
  std::string input;       // the folder with the .sgm files (sgm.h)
  std::string output;      // the folder to write to; made where it is not there
  bool overwrite = false;  // files that exist and hold something else
};

/// One file that was written: a pair in each line, source and target with a tab between them.
struct WmtText {
  std::string path;
  std::int64_t pairs = 0, source_words = 0, target_words = 0;
  std::vector<Cleaning> dropped;  // pairs left out, and why
  std::string digest;             // XXH3-128 of its bytes
};

struct WmtReport {
  std::vector<std::string> sources;  // what was read, a line for each file
  std::vector<WmtText> texts;        // the two directions
};

/// Writes wmt14.A_B.txt and wmt14.B_A.txt for the two languages A and B of a folder, A before B in
/// the alphabet. Both are complete on disk before either has its name.
///
/// The source of A_B is the <srcset> of A, its target the <refset> of B; where a set lacks one, the
/// other kind of file of that language serves. Lines are paired by set, document and segment, in
/// the order of the source. A language is what the attributes say; where they leave it open, as
/// WMT's do for sources ("any"), it is told by the file's name: NAME.en.sgm. Case does not matter.
///
/// Errors: Fault::Usage: a file that exists and is not to be overwritten. Fault::Data: no .sgm
/// file; not two languages; a language that is no word; two files for the same; a document that one
/// side lacks; those of parse_sgm.
WmtReport prepare_wmt(const WmtRequest& request);

/// One fact per line.
std::string to_text(const WmtReport& report);

}  // namespace tessera

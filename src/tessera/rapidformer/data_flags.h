#pragma once
/// --data-path and --data-name: which files a run trains and validates on.

#include <string>
#include <vector>

#include "tessera/rapidformer/given_flags.h"

namespace tessera {

/// Tells `data`, and `valid-data` and `test-data` where there are files for them; with --eval-iters
/// 0 neither.
///
/// With `pretraining` the path is the PREFIX of token files, or several. Else it is a file, or
/// several, or a folder DIR of which DIR/NAME (without a name DIR itself) has train, dev or
/// validation, and test, as .tsv, .csv, .jsonl, .json, .txt or .safetensors.
///
/// `checks`: that token files are there; a program may make something else of the path.
/// Problems: neither path nor name; names that disagree; no file; PREFIX_text_sentence where there
/// is PREFIX_text_document, and the reverse.
void take_data(GivenFlags& flags, bool pretraining, bool checks, Problems& problems,
               std::vector<std::string>& notices);

}  // namespace tessera

#pragma once
/// Text corpora made for training: what `tessera prepare` does.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/clean.h"
#include "tessera/files/text.h"

namespace tessera {

struct CorpusRequest {
  /// Files and folders (files/text.h), and corpora by name:
  ///   kjv       the King James Bible, from the Debian packages bible-kjv and bible-kjv-text; where
  ///             they cannot be fetched, the licences stand in for it and a notice says so
  ///   licences  the licence texts that every Debian has
  /// A file or folder with such a name is meant when it is written with a slash, as ./kjv.
  std::vector<std::string> sources;
  std::string output;
  std::string package_tool = "apt-get";
  bool overwrite = false;  // an output that exists and holds something else
};

/// What was made, for the user to judge.
struct CorpusReport {
  std::string output;
  std::vector<std::string> sources;  // where each part came from
  std::int64_t files = 0;
  std::int64_t bytes = 0, lines = 0, words = 0, characters = 0;  // of the output
  int distinct_characters = 0;
  std::vector<Cleaning> cleaned;
  std::vector<std::string> notices;
  std::string digest;  // XXH3-128 of the output's bytes
};

/// Gathers, cleans (files/clean.h) and writes one UTF-8 text file, which appears when it is
/// complete. Errors: no source, a source that is neither a name nor a path, and those of reading
/// and writing. Fault::Usage: the output is a source, lies in a folder that is one, or exists with
/// other bytes and is not to be overwritten.
CorpusReport prepare_corpus(const CorpusRequest& request);

/// One fact per line.
std::string to_text(const CorpusReport& report);

/// "kjv", "licences"
std::vector<std::string> corpus_names();

}  // namespace tessera

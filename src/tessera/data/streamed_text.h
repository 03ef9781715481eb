#pragma once
/// Texts that are read and encoded while a run trains, in memory that does not depend on how many
/// there are.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/files/table_file.h"
#include "tessera/files/text.h"
#include "tessera/token_files/samples.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

struct StreamChoice {
  /// Files of each source: all are texts, or, where `column` names the key of the texts, JSON lines.
  std::vector<std::vector<std::string>> sources = {};
  std::vector<double> weights = {};        // of each source, above 0; one source needs none
  std::string column = {};                 // empty: all are texts
  std::optional<TableFormat> format = {};  // none: as their names tell
  bool skip_bad_rows = false;
  std::uint64_t seed = 0;
  std::int64_t buffer = 4096;  // samples that are shuffled together
  std::int64_t offset = 0;   // the byte of the data before which nothing is read in the first pass
  std::int64_t workers = 1;  // threads of each source that encode; changes no sample
};

/// What a pass over all files reads.
struct StreamTally {
  std::int64_t files = 0, file_bytes = 0, tokens = 0;
};

/// The samples of a run that reads its data as it goes. A source is one row of tokens without an
/// end: its files in an order drawn anew for each pass, each document with its end. Neighbouring
/// samples share one token, a label of one and the first id of the next. So many as `buffer` are a
/// block, which is read ahead and shuffled; a sample comes from the source that is furthest behind
/// its weight. So which tokens a sample has is a pure function of its number, and where it begins
/// is known for as long as a run needs it.
class StreamedText {
 public:
  /// Encodes the first piece of each source. Errors: Fault::Usage: numbers that are not positive;
  /// an offset into several sources; texts among JSON lines. Fault::Data: as of PieceReader and PieceEncoder
  /// (streaming/pieces.h).
  StreamedText(StreamChoice choice, Vocabulary vocabulary);
  ~StreamedText();

  const StreamChoice& choice() const { return choice_; }
  /// Of all sources, with their bytes on the disk.
  std::vector<TextFile> files() const;
  /// XXH3-128 of how the data is chosen, and of the size, begin and end of each file.
  std::string digest() const;
  /// Reads all files once, and says so now and then.
  StreamTally read_once(const std::function<void(const StreamTally&)>& progress = {}) const;

  /// Where a run stands that has drawn samples [0, `consumed`) of `context` tokens, as a text for
  /// go_on. The blocks that have the next ones are known.
  std::string place(std::int64_t consumed, std::int64_t context) const;
  /// Begins there, without reading what lies before; what the user is to know of it, or empty.
  /// Errors: Fault::Checkpoint: no text of place(); `where` names its file.
  std::string go_on(const std::string& place, const std::string& where) const;
  /// Writes the ids and labels [context] of a sample.
  void sample(std::int64_t number, std::int64_t context, std::int32_t* ids,
              std::int32_t* labels) const;
  /// Tokens in memory, with samples of `context`.
  std::int64_t held_tokens(std::int64_t context) const;

 private:
  struct State;
  StreamChoice choice_;
  Vocabulary vocabulary_;
  std::unique_ptr<State> state_;  // what is being read
};

/// Samples of a model that predicts the next token and has so many ids. size() is none of an epoch
/// but a number that no run reaches, as nobody counts the samples. Errors of fill(): an id that the
/// model lacks; as of StreamedText.
std::unique_ptr<Samples> streamed_samples(std::shared_ptr<const StreamedText> texts,
                                          std::int64_t context, std::int64_t vocabulary);

}  // namespace tessera

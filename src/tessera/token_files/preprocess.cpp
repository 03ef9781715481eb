#include "tessera/token_files/preprocess.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/files/json_lines.h"
#include "tessera/files/text.h"
#include "tessera/token_files/in_order.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "tessera/token_files/sentences.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();  // and an end

/// What one worker makes of a block of lines, for one key.
struct EncodedBlock {
  std::vector<std::int32_t> ids, lengths;
  std::vector<std::int64_t> documents;  // sequences of each
};

std::string prefix_of(const PreprocessRequest& request, const std::string& key) {
  return text(request.output_prefix, "_", key, request.split_sentences ? "_sentence" : "_document");
}

std::string vocabulary_path(const PreprocessRequest& request) {
  return request.output_prefix + "_vocabulary.json";
}

void check_request(const PreprocessRequest& request) {
  require(!request.inputs.empty(), "input is missing; give files of JSON lines");
  require(!request.output_prefix.empty(), "output-prefix is missing; give the start of the file ",
          "names, like data/books");
  require(!request.keys.empty(), "json-keys is empty; give the keys of the texts, like text");
  std::vector<std::string> keys = request.keys;
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  require(twice == keys.end(), "json-keys names '", twice == keys.end() ? "" : *twice,
          "' twice; give each key once");
  require(request.workers >= 1 && request.workers <= 4096, "workers is ", request.workers,
          "; give 1 to 4096 threads");
  std::error_code unread;
  require(request.overwrite || !learns_vocabulary(request.encoder) ||
              !fs::exists(vocabulary_path(request), unread),
          "output '", vocabulary_path(request), "', for the learned vocabulary, exists; give ",
          "it as vocab-file, give another output-prefix, or add --overwrite");
  for (const std::string& key : request.keys) {
    for (const char* ending : {".bin", ".idx"}) {
      const std::string path = prefix_of(request, key) + ending;
      std::error_code ignored;
      require(request.overwrite || !fs::exists(path, ignored), "output '", path,
              "' exists; give another output-prefix, or add --overwrite");
      for (const std::string& input : request.inputs)
        require(!fs::equivalent(input, path, ignored), "output '", path,
                "' is also an input; give another output-prefix");
    }
  }
}

/// A document's texts as sequences behind those of `out`.
void encode_document(const PreprocessRequest& request, const TextEncoder& encoder,
                     const std::vector<std::string>& texts, EncodedBlock& out) {
  const std::size_t before = out.lengths.size();
  const auto add = [&](std::string_view sentence) {
    const std::vector<std::int32_t> ids = encoder.encode(sentence);
    if (ids.empty()) return;
    if (std::ssize(ids) >= kMostTokens)
      fail(Fault::Data, "a text has ", ids.size(), " tokens, but a sequence at most ",
           kMostTokens - 1, "; cut it into several lines");
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.lengths.push_back(static_cast<std::int32_t>(ids.size()));
  };
  for (const std::string& text : texts) {
    if (!request.split_sentences) {
      add(text);
      continue;
    }
    for (const std::string_view sentence : sentences_of(text, request.keep_newlines)) add(sentence);
  }
  if (request.append_eod && out.lengths.size() > before) {
    out.ids.push_back(*encoder.end_of_document);
    ++out.lengths.back();
  }
  out.documents.push_back(static_cast<std::int64_t>(out.lengths.size() - before));
}

std::vector<EncodedBlock> encode_block(const PreprocessRequest& request, const TextEncoder& encoder,
                                       const LineBlock& block) {
  std::vector<EncodedBlock> out(request.keys.size());
  for_each_line(block, [&](std::string_view line, const LinePlace& place) {
    const auto texts = texts_in_line(line, request.keys, place);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      try {
        encode_document(request, encoder, texts[i], out[i]);
      } catch (const Error& error) {
        throw error.with(
            text("in key '", request.keys[i], "' of '", *place.path, "' line ", place.line));
      }
    }
  });
  return out;
}

void write_block(const EncodedBlock& block, IndexedDatasetWriter& to,
                 PreprocessReport::Output& tally) {
  std::size_t token = 0, sequence = 0;
  for (const std::int64_t sequences : block.documents) {
    const auto lengths =
        std::span(block.lengths).subspan(sequence, static_cast<std::size_t>(sequences));
    std::size_t tokens = 0;
    for (const std::int32_t length : lengths) tokens += static_cast<std::size_t>(length);
    to.add_document(std::span(block.ids).subspan(token, tokens), lengths);
    token += tokens;
    sequence += static_cast<std::size_t>(sequences);
    if (sequences == 0) ++tally.empty_documents;
  }
}

TextEncoder encoder_for(const PreprocessRequest& request, const std::vector<std::string>& inputs) {
  TextEncoderChoice choice = request.encoder;
  choice.texts = [&](const std::function<void(std::string_view)>& take) {
    LineBlocks blocks(inputs);
    LineBlock block;
    while (blocks.next(block)) {
      for_each_line(block, [&](std::string_view line, const LinePlace& place) {
        for (const auto& texts : texts_in_line(line, request.keys, place)) {
          for (const std::string& text : texts) take(text);
        }
      });
    }
  };
  TextEncoder out = text_encoder(choice);
  require(!request.append_eod || out.end_of_document,
          "append-eod needs a tokenizer with an end of ", "document, and ", out.name,
          " has none; leave it out, or give another tokenizer-type");
  return out;
}

}  // namespace

PreprocessReport preprocess(const PreprocessRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  check_request(request);
  const std::vector<std::string> inputs = text_files(request.inputs);
  const TextEncoder encoder = encoder_for(request, inputs);
  PreprocessReport out;
  out.encoder = encoder.name;
  out.vocabulary = encoder.vocabulary;
  out.notices = encoder.notices;
  out.end_of_document = encoder.end_of_document ? text(*encoder.end_of_document) : "none";
  const TokenType type = token_type_for(encoder.vocabulary);
  out.token_type = to_text(type);

  std::vector<std::unique_ptr<IndexedDatasetWriter>> writers;
  for (const std::string& key : request.keys) {
    out.outputs.push_back({prefix_of(request, key)});
    writers.push_back(std::make_unique<IndexedDatasetWriter>(out.outputs.back().prefix, type));
  }
  LineBlocks blocks(inputs);
  using Encoded = std::vector<EncodedBlock>;
  std::int64_t read = 0;
  in_order<LineBlock, Encoded>(
      static_cast<std::size_t>(request.workers),
      [&](LineBlock& block) { return blocks.next(block); },
      [&](const LineBlock& block) { return encode_block(request, encoder, block); },
      [&](const LineBlock& block, const Encoded& encoded) {
        for (std::size_t i = 0; i < writers.size(); ++i)
          write_block(encoded[i], *writers[i], out.outputs[i]);
        read += block.file_bytes;
        if (request.progress)
          request.progress(writers.front()->num_documents(), read, blocks.bytes());
      });
  for (std::size_t i = 0; i < writers.size(); ++i) {
    PreprocessReport::Output& of_key = out.outputs[i];
    of_key.documents = writers[i]->num_documents();
    of_key.sequences = writers[i]->num_sequences();
    of_key.tokens = writers[i]->num_tokens();
    if (of_key.tokens == 0)
      fail(Fault::Data, "key '", request.keys[i], "' has no token in ",
           counted(of_key.documents, "document"), "; give other input, or another key");
  }
  for (const auto& writer : writers) writer->finish();
  if (!encoder.learned.empty()) {
    out.vocabulary_file = vocabulary_path(request);
    write_atomically(out.vocabulary_file, encoder.learned);
  }
  out.bytes = blocks.bytes();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

std::string to_text(const PreprocessReport& report) {
  std::string out;
  for (const PreprocessReport::Output& of_key : report.outputs) {
    out += text("wrote ", of_key.prefix, ".bin and .idx: ", grouped(of_key.documents),
                of_key.documents == 1 ? " document, " : " documents, ", grouped(of_key.sequences),
                of_key.sequences == 1 ? " sequence, " : " sequences, ", grouped(of_key.tokens),
                " tokens of type ", report.token_type, "\n");
    if (of_key.empty_documents > 0)
      out += text("  ", grouped(of_key.empty_documents), " of them have no token\n");
  }
  for (const std::string& notice : report.notices) out += text("note: ", notice, "\n");
  out += text("tokenizer ", report.encoder, ", vocab-size ", report.vocabulary,
              ", end of document ", report.end_of_document, "\n");
  if (!report.vocabulary_file.empty())
    out += text("the learned vocabulary is ", report.vocabulary_file,
                "; give it as vocab-file to encode other texts with the same ids\n");
  const double megabytes = static_cast<double>(report.bytes) / 1e6;
  out += text("read ", bytes_text(report.bytes), " in ", format("%.2f", report.seconds), " s, ",
              format("%.1f", megabytes / std::max(report.seconds, 1e-9)), " MB/s\n");
  return out;
}

}  // namespace tessera

#pragma once
/// Small files of labelled texts, tagged words and questions, and runs on them.

#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "train/tiny_run.h"

namespace tessera {

/// train has 37 rows of each kind, dev and test have 11; bare is test without labels. Files by how
/// they end: tsv (a text and a label), conll and jsonl (tagged words), json (questions), txt.
class TaskRows : public TrainerTest {
 protected:
  TaskRows() {
    for (const char* const part : {"train", "dev", "test", "bare"}) write(part);
  }

  /// 2 epochs of a small model, 8 rows in a step, judged on dev.
  RunConfig on_rows(const std::string& output, std::string_view task, const char* data,
                    const std::string& family = "bert") const {
    RunConfig out = config(output);
    out.model = published(FamilyRef(family));
    out.model.task = task;
    out.model.layers = 2, out.model.heads = 4, out.model.width = 32;
    out.model.context = 40, out.model.dropout = 0.1, out.model.vocabulary = 0;
    out.model.doc_stride = 8;
    if (family == "albert") out.model.embedding_width = 16;
    out.vocabulary = VocabularyKind::Bytes;
    out.data = {folder_ + text("/train.", data)};
    out.valid_data = {folder_ + text("/dev.", data)};
    out.global_batch_size = 8;
    out.epochs = 2;
    return out;
  }

 private:
  void write(const std::string& part) const {
    static constexpr const char* kWords[] = {"Anna", "sees", "Rome", "the", "cat", "Bob"};
    static constexpr const char* kTags[] = {"B-PER", "O", "B-LOC", "O", "O", "B-PER"};
    const bool labelled = part != "bare";
    const std::string path = folder_ + "/" + part;
    std::ofstream rows(path + ".tsv"), conll(path + ".conll"), lines(path + ".jsonl"),
        questions(path + ".json"), texts(path + ".txt");
    rows << "id\tsentence" << (labelled ? "\tlabel" : "") << "\n";
    questions << R"({"data": [{"paragraphs": [)";
    for (int i = 0; i < (part == "train" ? 37 : 11); ++i) {
      rows << i << "\tthe " << i * 7919 % 100 << " of " << i
           << (labelled ? (i * i + i / 3) % 2 == 0 ? "\tno" : "\tyes" : "") << "\n";
      nlohmann::json sentence;
      std::string context;
      for (int k = 0; k < 3 + i % 5; ++k) {
        const int word = (i * 7 + k * 5 + i * k) % 6;
        conll << kWords[word] << (labelled ? text(" x ", kTags[word]) : "") << "\n";
        sentence["tokens"].push_back(kWords[word]);
        if (labelled) sentence["ner_tags"].push_back(kTags[word]);
        context += text(k == 0 ? "" : " ", kWords[word]);
      }
      conll << "\n";
      lines << sentence.dump() << "\n";
      texts << context << "\n";
      nlohmann::json question = {{"id", text("q", i)}, {"question", "first?"}};
      if (labelled)
        question["answers"] = nlohmann::json::array(
            {{{"text", context.substr(0, context.find(' '))}, {"answer_start", 0}}});
      const std::string twice = context + (i % 3 == 0 ? " " + context : "");
      questions << (i == 0 ? "" : ",")
                << nlohmann::json{{"context", twice}, {"qas", {question}}}.dump();
    }
    questions << "]}]}";
  }
};

}  // namespace tessera

#pragma once
/// What a program gives to a model that it calls, as the inputs of a compiled program.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tessera/models/config.h"
#include "tessera/models/task.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/user_code/model_call.h"

namespace tessera {

/// Tensors by the names that transformers gives them: {"input_ids", [batch, s]}.
using NamedTensors = std::map<std::string, HostTensor, std::less<>>;

/// The sizes of a call, and of the program that computes it, whose sizes are not less.
struct CallSizes {
  std::int64_t rows = 0, length = 0, source = 0;  // tokens of a row; 0: it has none
  std::int64_t choices = 0;                       // rows of tokens of each row; 0: it is one itself
  friend bool operator==(const CallSizes&, const CallSizes&) = default;
};

/// A call of a model whose `config` is complete, as far as inputs tell.
class CallInputs {
 public:
  /// `end_padding`: the token behind the end of a text, where a classifier finds the end by it.
  /// Errors: Fault::Usage: a name that the model does not read, or twice; one that it needs is not
  /// there; shapes that do not fit each other or the model; numbers that the model does not have.
  /// Each names the tensor, and the place.
  CallInputs(const ModelConfig& config, const NamedTensors& given,
             std::optional<std::int32_t> end_padding);

  const CallSizes& sizes() const { return sizes_; }
  bool has_labels() const { return has_labels_; }
  /// Those of the task's inputs that its program reads.
  const std::set<std::string>& names() const { return names_; }
  /// An input of the program, [rows, ...] of `shape`, which is not less than was given: behind what
  /// was given is what does not count.
  void fill(std::string_view name, const Shape& shape, std::span<std::byte> out) const;

 private:
  struct Given {
    CallInput input;
    std::string name;  // as the program called it
    HostTensor value;
  };
  void take(const ModelCall& call, const std::string& name, const HostTensor& value);
  HostTensor as_read(const Given& given) const;
  void take_sizes();
  void require_numbers(const Given& given) const;
  void require_all();
  /// What is read where nothing was given: row and place of the input.
  std::int32_t usual(std::string_view name, std::int64_t row, std::int64_t at) const;
  std::int32_t last_token(std::int64_t row) const;
  const Given* find(std::string_view input) const;

  ModelConfig config_;
  Task task_;
  std::optional<std::int32_t> end_padding_;
  std::map<std::string, Given, std::less<>> given_;  // by the names of the task's inputs
  CallSizes sizes_;
  std::set<std::string> names_;
  bool has_labels_ = false;
};

/// The configuration of the program that computes calls of these sizes. Errors, as of task_of:
/// lengths that the model does not reach.
ModelConfig at_sizes(const ModelConfig& config, const CallSizes& sizes);
/// The most tokens of a row, and of a source, that the model sees; 0: any number.
CallSizes most_tokens(const ModelConfig& config);

}  // namespace tessera

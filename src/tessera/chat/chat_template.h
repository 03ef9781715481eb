#pragma once
/// The room `chat`: dialogues as the text that a model was trained on.
/// For: chat templates, which are programs in a part of Jinja, run as transformers runs them.
/// Not for: which tokens a text has (tokenizers), or which of them a run learns from (data).
/// Rejected: inja and minja: the first is another language, the second is in no package; and a
/// list of known formats in place of the language, because every model brings a template of its own.

#include <cstddef>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// What a template makes of a dialogue.
struct RenderedChat {
  std::string text;
  /// Bytes [begin, end) of what {% generation %} blocks wrote, ascending.
  std::vector<std::pair<std::size_t, std::size_t>> generated;
};

/// What running a template may take.
struct ChatLimits {
  std::int64_t steps = 10'000'000, bytes = 256 << 20;
};

/// A chat template. A plain value that never changes; several threads may use it at a time.
/// docs/reference/tokenizers.md lists what it has of Jinja.
class ChatTemplate {
 public:
  /// `name` is the template in messages. Errors: Fault::Data: text that is not UTF-8, or no
  /// template, or has what is not supported: with line, column and what stands there.
  static ChatTemplate parse(std::string_view source, const std::string& name);

  /// `variables` is an object: messages, add_generation_prompt, bos_token and the like;
  /// strftime_now tells `now`. Errors: Fault::Data: what the template raises with
  /// raise_exception; what fails, with line and column; more than `limits`.
  RenderedChat render(const nlohmann::ordered_json& variables, const std::tm& now,
                      const ChatLimits& limits = {}) const;

  /// Whether it says what the model writes, with {% generation %}.
  bool has_generation() const;

 private:
  struct Parts;
  explicit ChatTemplate(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

}  // namespace tessera

#pragma once
/// How dialogues are learned.

#include <array>
#include <string_view>

namespace tessera {

/// Which tokens of a dialogue are learned.
enum class DialogueLoss { Answers, All };
inline constexpr std::array<std::string_view, 2> kDialogueLosses = {"answers", "all"};

/// What becomes of dialogues that are longer than the context.
enum class LongDialogues { Refuse, Cut };
inline constexpr std::array<std::string_view, 2> kLongDialogues = {"refuse", "cut"};

}  // namespace tessera

#pragma once
/// Sentences of English text, by rules.

#include <string_view>
#include <vector>

namespace tessera {

/// The sentences of `text`, in order, without the blanks between them; all else of the text is in
/// one of them. With `keep_newlines` blanks behind a sentence stay with it.
///
/// A sentence ends behind a run of . ? ! and closing quotes and brackets, where blanks follow, or
/// the end. Behind a lone period it does not where what comes next begins with a small letter or a
/// digit-free sign like a comma, nor behind an abbreviation (Mr., e.g.), the initial of a name (J.)
/// or letters with periods between (U.S.) unless what comes next is a word that begins sentences
/// (The, He). Behind an ellipsis it does only where a capital letter follows.
///
/// NLTK's punkt, which Megatron-LM uses, has learned its abbreviations and which words begin
/// sentences from newspapers; the rules differ from it where an abbreviation is in one list and not
/// in the other, and behind initials and numbers. Which sentence a token is in decides what BERT
/// and T5 samples begin with, and nothing else.
std::vector<std::string_view> sentences_of(std::string_view text, bool keep_newlines = false);

}  // namespace tessera

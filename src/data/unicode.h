#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

/// Stands for bytes that are no UTF-8.
constexpr char32_t kReplacement = 0xfffd;

/// The character that starts at `at`, which moves past it; kReplacement and one byte where the text is not UTF-8.
char32_t next_character(std::string_view text, size_t& at);
void append_utf8(char32_t c, std::string& text);

/// What BERT's "uncased" models make of a character: lower case, accents off (Latin, Greek, Cyrillic).
char32_t fold_case(char32_t c);

/// The kinds of characters that BERT's tokenizer tells apart.
enum class CharacterKind { kLetter, kSpace, kPunctuation, kIdeograph, kIgnored };
CharacterKind kind_of(char32_t c);

}  // namespace tutti

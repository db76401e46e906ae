#include "data/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace tutti {
namespace {

// Character first + i becomes character i of the text: Unicode's lower case, decomposed (NFD), without marks.
constexpr char32_t kLatinFirst = 0xc0;
constexpr std::u32string_view kLatin =
    U"aaaaaaæceeeeiiiiðnooooo×øuuuuyþßaaaaaaæceeeeiiiiðnooooo÷øuuuuyþyaaaaaaccccccccddđđeeeeeeeeeegggg"
    U"gggghhħħiiiiiiiiiıĳĳjjkkĸllllllŀŀłłnnnnnnŉŋŋooooooœœrrrrrrssssssssttttŧŧuuuuuuuuuuuuwwyyyzzzzzzſ";
constexpr char32_t kGreekAndCyrillicFirst = 0x386;
constexpr std::u32string_view kGreekAndCyrillic =
    U"α·εηι�ο�υωιαβγδεζηθικλμνξοπρ�στυφχψωιυαεηιυαβγδεζηθικλμνξοπρςστυφχψωιυουωϗϐϑϒϒϒϕϖϗϙϙϛϛϝϝϟϟϡϡϣϣϥϥ"
    U"ϧϧϩϩϫϫϭϭϯϯϰϱϲϳθϵ϶ϸϸϲϻϻϼͻͼͽееђгєѕііјљњћкиуџабвгдежзииклмнопрстуфхцчшщъыьэюяабвгдежзииклмнопрстуфх"
    U"цчшщъыьэюяееђгєѕііјљњћкиуџ";
constexpr char32_t kMoreLatinFirst = 0x1e00;
constexpr std::u32string_view kMoreLatin =
    U"aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprrrrrrrr"
    U"ssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwyẚſẜẝßẟaaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
    U"eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyỻỻỽỽỿỿ";

struct Range {
  char32_t first;
  char32_t last;
};

// Unicode's categories P… beyond ASCII, for the scripts of Europe and East Asia.
constexpr Range kPunctuation[] = {
    {0xa1, 0xa1},     {0xa7, 0xa7},     {0xab, 0xab},     {0xb6, 0xb7},     {0xbb, 0xbb},     {0xbf, 0xbf},
    {0x37e, 0x37e},   {0x387, 0x387},   {0x55a, 0x55f},   {0x589, 0x58a},   {0x5be, 0x5be},   {0x5c0, 0x5c0},
    {0x5c3, 0x5c3},   {0x5c6, 0x5c6},   {0x5f3, 0x5f4},   {0x609, 0x60a},   {0x60c, 0x60d},   {0x61b, 0x61b},
    {0x61d, 0x61f},   {0x66a, 0x66d},   {0x6d4, 0x6d4},   {0x2010, 0x2027}, {0x2030, 0x2043}, {0x2045, 0x2051},
    {0x2053, 0x205e}, {0x207d, 0x207e}, {0x208d, 0x208e}, {0x2308, 0x230b}, {0x2329, 0x232a}, {0x2768, 0x2775},
    {0x27c5, 0x27c6}, {0x27e6, 0x27ef}, {0x2983, 0x2998}, {0x29d8, 0x29db}, {0x29fc, 0x29fd}, {0x2cf9, 0x2cfc},
    {0x2cfe, 0x2cff}, {0x2d70, 0x2d70}, {0x2e00, 0x2e2e}, {0x2e30, 0x2e4f}, {0x2e52, 0x2e5d}, {0x3001, 0x3003},
    {0x3008, 0x3011}, {0x3014, 0x301f}, {0x3030, 0x3030}, {0x303d, 0x303d}, {0x30a0, 0x30a0}, {0x30fb, 0x30fb},
    {0xfe10, 0xfe19}, {0xfe30, 0xfe52}, {0xfe54, 0xfe61}, {0xfe63, 0xfe63}, {0xfe68, 0xfe68}, {0xfe6a, 0xfe6b},
    {0xff01, 0xff03}, {0xff05, 0xff0a}, {0xff0c, 0xff0f}, {0xff1a, 0xff1b}, {0xff1f, 0xff20}, {0xff3b, 0xff3d},
    {0xff3f, 0xff3f}, {0xff5b, 0xff5b}, {0xff5d, 0xff5d}, {0xff5f, 0xff65}};

// Accents that follow their letter, and characters that show nothing.
constexpr Range kIgnored[] = {{0x7f, 0x9f},     {0xad, 0xad},     {0x300, 0x36f},   {0x483, 0x487},   {0x1ab0, 0x1aff},
                              {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20f0},
                              {0xd800, 0xf8ff}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffd}};

constexpr Range kSpaces[] = {{0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
                             {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                 {0x20000, 0x2a6df}, {0x2a700, 0x2ceaf}, {0x2f800, 0x2fa1f}};

template <size_t count>
bool is_in(const Range (&ranges)[count], char32_t c) {
  const auto* const found = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                             [](const Range& range, char32_t value) { return range.last < value; });
  return found != std::end(ranges) && found->first <= c;
}

bool is_letter_or_digit(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9');
}

}  // namespace

char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [text](size_t place) { return static_cast<uint8_t>(text[place]); };
  const uint8_t lead = byte(at++);
  if (lead < 0x80) return lead;
  if (lead < 0xc2 || lead > 0xf4) return kReplacement;
  const size_t more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  char32_t c = lead & (0x3fU >> more);
  for (size_t i = 0; i < more; ++i) {
    if (at + i >= text.size() || (byte(at + i) & 0xc0) != 0x80) return kReplacement;
    c = c << 6 | (byte(at + i) & 0x3fU);
  }
  const bool is_overlong = (more == 2 && c < 0x800) || (more == 3 && c < 0x10000);
  if (is_overlong || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return kReplacement;
  at += more;
  return c;
}

void append_utf8(char32_t c, std::string& text) {
  const auto add = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      add(0xe0 | c >> 12);
    } else {
      add(0xf0 | c >> 18);
      add(0x80 | (c >> 12 & 0x3f));
    }
    add(0x80 | (c >> 6 & 0x3f));
  }
  add(0x80 | (c & 0x3f));
}

char32_t fold_case(char32_t c) {
  if (c < 0x80) return c >= U'A' && c <= U'Z' ? c - U'A' + U'a' : c;
  const auto look_up = [c](char32_t first, std::u32string_view table) {
    return c >= first && c - first < table.size() ? table[c - first] : c;
  };
  char32_t folded = look_up(kLatinFirst, kLatin);
  if (folded == c) folded = look_up(kGreekAndCyrillicFirst, kGreekAndCyrillic);
  return folded == c ? look_up(kMoreLatinFirst, kMoreLatin) : folded;
}

CharacterKind kind_of(char32_t c) {
  if (c < 0x80) {
    if (is_letter_or_digit(c)) return CharacterKind::kLetter;
    if (c == U' ' || c == U'\n' || c == U'\r' || c == U'\t') return CharacterKind::kSpace;
    return c < 0x20 || c == 0x7f ? CharacterKind::kIgnored : CharacterKind::kPunctuation;
  }
  if (is_in(kPunctuation, c)) return CharacterKind::kPunctuation;
  if (is_in(kSpaces, c)) return CharacterKind::kSpace;
  if (is_in(kIdeographs, c)) return CharacterKind::kIdeograph;
  return is_in(kIgnored, c) ? CharacterKind::kIgnored : CharacterKind::kLetter;
}

}  // namespace tutti

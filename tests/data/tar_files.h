#pragma once

#include <cstdio>
#include <string>

namespace tutti::test {

/// A header block and content of a tar file.
inline std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header = name.substr(0, 100);
  header.resize(512, '\0');
  char number[13];
  std::snprintf(number, sizeof number, "%011o", static_cast<unsigned>(content.size()));
  header.replace(124, 11, number);
  header.replace(148, 8, 8, ' ');
  header[156] = type;
  header.replace(257, 8, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(number, sizeof number, "%06o", sum);
  header.replace(148, 7, std::string(number, 6) + '\0');
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512, '\0');
  return header + padded;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace tutti::test

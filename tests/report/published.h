#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/cell.h"
#include "report/import.h"
#include "support/published_texts.h"

namespace tutti::test {

/// Imports a text, writes its cells as records, and reads those back.
inline std::vector<Cell> through_records(const std::string& name, const std::string& content,
                                         std::vector<std::string>* notes = nullptr) {
  PublishedText text = published_text(name, content);
  std::vector<Cell> cells;
  for (const Cell& cell : import_published(text)) cells.push_back(parse_cell(nlohmann::json(cell).dump()));
  if (notes != nullptr) *notes = text.notes;
  return cells;
}

}  // namespace tutti::test

#pragma once

#include <string>
#include <vector>

#include "published/published_text.h"

namespace tutti {

/// Published figures as comma-separated values: comments ("# Source: …"), the names of the columns, then rows. The
/// files of published/ have this form.
struct FiguresTable {
  struct Row {
    std::size_t line = 0;  // counted from 0, for refuse_line()
    std::vector<std::string> fields;
  };
  std::vector<std::string> columns;
  std::vector<Row> rows;

  /// The field of a row; "" where there is no such column.
  std::string at(const Row& row, const std::string& column) const;
};

/// Whether a text has this form: its first line that is no comment names columns, these among them.
bool has_figures(const PublishedText& text, const std::vector<std::string>& columns = {"ranks"});

/// Notes the source. Throws Error naming the line that cannot be read, or that names an unknown column.
FiguresTable read_figures(PublishedText& text);

}  // namespace tutti

#include "report/table_forms.h"

namespace tutti {

Table failures_table(const std::vector<Cell>& cells) {
  Table table{"failures", "Failed cells", "", {}, {}};
  for (const Cell& cell : cells) {
    if (!cell.is_failed || !table.has_room()) continue;
    std::string reason = cell.error.substr(0, cell.error.find('\n'));
    table.rows.push_back({{text_value(cell.id.empty() ? cell.run : cell.id), text_value(describe(cell.config)),
                           whole_value(cell.repeat, 0), text_value(reason.empty() ? "no reason was recorded" : reason)},
                          false});
  }
  if (!table.rows.empty())
    table.columns = {as_setting({"cell", "cell"}),
                     {"config", "configuration"},
                     {"repeat", "repeat", "number"},
                     as_answer({"error", "error"})};
  return table;
}

}  // namespace tutti

// Tables that can be sorted and filtered. The page holds them as plain tables; here they get their controls.

// Beyond this many rows the rest waits behind a button: a browser lays out thousands of rows slowly.
const ROWS_AT_ONCE = 300;
const FEWEST_COLUMNS_TO_CHOOSE = 8;
const ORDERS = ['none', 'ascending', 'descending'];

class SortableTable {
  constructor(table) {
    this.body = table.tBodies[0];
    this.original = [...this.body.rows].filter((row) => !row.classList.contains('empty'));
    if (this.original.length === 0) return;
    this.order = this.original.slice();
    this.texts = new Map(this.original.map((row) => [row, row.textContent.toLowerCase()]));
    this.headers = [...table.tHead.rows[0].cells];
    this.limit = ROWS_AT_ONCE;
    this.table = table;
    this.makeHeaders();
    if (this.original.length > 1) this.makeControls();
    this.more = element('button', { type: 'button', class: 'button more', onclick: () => this.showMore() });
    table.parentElement.after(this.more);
    addEventListener('beforeprint', () => this.show(Infinity));
    addEventListener('afterprint', () => this.show());
    this.show();
  }

  makeHeaders() {
    this.headers.forEach((header, column) => {
      const label = header.textContent;
      const button = element('button', { type: 'button', class: 'sort' }, label, element('span', { class: 'arrow', 'aria-hidden': 'true' }));
      button.addEventListener('click', () => this.sort(column));
      header.replaceChildren(button);
      header.dataset.label = label;
    });
  }

  makeControls() {
    const name = this.table.dataset.name || 'this table';
    this.search = element('input', { type: 'search', placeholder: 'Search', 'aria-label': `Search in ${name}`, oninput: () => this.show() });
    this.menus = new Map();
    this.headers.forEach((header, column) => {
      const choices = columnChoices(this.original, column, header);
      if (choices) this.menus.set(column, new ValueMenu(header.dataset.label, choices, () => this.show()));
    });
    this.count = element('span', { class: 'row-count', role: 'status' });
    this.clear = element('button', { type: 'button', class: 'button quiet', onclick: () => this.clearFilters() }, 'Clear');
    const controls = element('div', { class: 'controls', role: 'group', 'aria-label': `Filters of ${name}` }, this.search);
    for (const menu of this.menus.values()) controls.append(menu.root);
    if (this.headers.length >= FEWEST_COLUMNS_TO_CHOOSE) controls.append(new ColumnsMenu(this.headers, this.original).root);
    controls.append(this.clear, this.count, copyButton('Copy', () => this.tabSeparated()));
    this.table.parentElement.before(controls);
  }

  /** First click: smallest first; second: largest first; third: as it was. Equal rows keep the order they have. */
  sort(column) {
    const header = this.headers[column];
    const order = ORDERS[(ORDERS.indexOf(header.getAttribute('aria-sort') || 'none') + 1) % ORDERS.length];
    for (const other of this.headers) other.removeAttribute('aria-sort');
    if (order === 'none') {
      this.order = this.original.slice();
    } else {
      header.setAttribute('aria-sort', order);
      const direction = order === 'ascending' ? 1 : -1;
      const keys = new Map(this.original.map((row) => [row, sortKey(row.cells[column])]));
      this.order.sort((a, b) => compareKeys(keys.get(a), keys.get(b), direction));
    }
    this.show();
  }

  accepts(row, words) {
    if (!words.every((word) => this.texts.get(row).includes(word))) return false;
    for (const [column, menu] of this.menus) if (!menu.accepts(row.cells[column].textContent.trim())) return false;
    return true;
  }

  accepted() {
    if (!this.search) return this.order;
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.order.filter((row) => this.accepts(row, words));
  }

  show(limit = this.limit) {
    const rows = this.accepted();
    this.body.replaceChildren(...rows.slice(0, limit));
    if (rows.length === 0)
      this.body.append(element('tr', { class: 'empty' }, element('td', { colspan: this.headers.length }, 'No row matches.')));
    this.more.hidden = rows.length <= limit;
    this.more.textContent = `Show ${Math.min(ROWS_AT_ONCE, rows.length - limit)} more of ${rows.length} rows`;
    if (!this.count) return;
    const all = this.original.length;
    this.count.textContent = rows.length === all ? `${all} rows` : `${rows.length} of ${all} rows`;
    this.clear.hidden = rows.length === all;
  }

  showMore() {
    this.limit += ROWS_AT_ONCE;
    this.show();
  }

  clearFilters() {
    this.search.value = '';
    for (const menu of this.menus.values()) menu.clear();
    this.show();
    this.search.focus();
  }

  /** What is shown, as spreadsheets take it. */
  tabSeparated() {
    const shown = (cells) => [...cells].filter((cell) => !cell.hidden);
    const lines = [shown(this.headers).map((header) => header.dataset.label)];
    for (const row of this.accepted()) lines.push(shown(row.cells).map((cell) => cell.textContent.trim().replace(/\s+/g, ' ')));
    return lines.map((line) => line.join('\t')).join('\n') + '\n';
  }
}

/** A number, a text, or null for a dash. */
function sortKey(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.querySelector('.none') ? null : cell.textContent.trim();
}

/** Numbers before texts; what is not there comes last in both directions. */
function compareKeys(a, b, direction) {
  if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
  if (typeof a === 'number' && typeof b === 'number') return direction * (a - b);
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return direction * naturalOrder.compare(a, b);
}

function setUpTables() {
  for (const table of document.querySelectorAll('table[data-name]')) new SortableTable(table);
}

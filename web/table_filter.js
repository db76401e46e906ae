// The controls above a table that choose rows: a search box, and a menu for each column with few different values.

const MOST_CHOICES = 16;

/** The different texts of a column in their order of size, or null where choosing among them makes no sense. */
function columnChoices(rows, column, header) {
  const texts = new Set();
  for (const row of rows) {
    const cell = row.cells[column];
    // Measured values are hardly ever the same twice; counts (ranks, nodes, batch) are.
    if (cell.dataset.value !== undefined && !Number.isInteger(Number(cell.dataset.value))) return null;
    if (cell.querySelector('.deviation')) return null;
    texts.add(cell.textContent.trim());
    if (texts.size > MOST_CHOICES) return null;
  }
  if (texts.size < 2 || texts.size > Math.max(2, rows.length / 2) || header.textContent.trim() === '') return null;
  return [...texts].sort(naturalOrder.compare);
}

const naturalOrder = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

/** A list of check boxes that opens below its name. */
class Menu {
  constructor(label, choices, changed) {
    this.label = label;
    this.count = element('span', { class: 'menu-count' });
    this.boxes = choices.map((choice, i) => element('input', { type: 'checkbox', value: choice, onchange: () => changed(i) }));
    const list = element('div', { class: 'menu-list', role: 'group', 'aria-label': label });
    this.boxes.forEach((box, i) => list.append(element('label', {}, box, ' ', choices[i])));
    this.summary = element('summary', {}, label, this.count);
    this.root = element('details', { class: 'menu' }, this.summary, list);
    this.root.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.root.open) return;
      this.root.open = false;
      this.summary.focus();
    });
    // Away from the menu it closes, by mouse and by keyboard.
    document.addEventListener('pointerdown', (event) => {
      if (!this.root.contains(event.target)) this.root.open = false;
    });
    this.root.addEventListener('focusout', (event) => {
      if (event.relatedTarget && !this.root.contains(event.relatedTarget)) this.root.open = false;
    });
  }

  /** How many choices differ from what they are at first. */
  showCount(count) {
    this.count.textContent = count > 0 ? String(count) : '';
    this.root.classList.toggle('active', count > 0);
  }
}

/** Chooses rows by the values of a column; none checked means all. */
class ValueMenu extends Menu {
  constructor(label, choices, changed) {
    super(label, choices, (i) => {
      if (this.boxes[i].checked) this.chosen.add(choices[i]);
      else this.chosen.delete(choices[i]);
      this.showCount(this.chosen.size);
      changed();
    });
    this.chosen = new Set();
  }

  accepts(text) {
    return this.chosen.size === 0 || this.chosen.has(text);
  }

  clear() {
    this.chosen.clear();
    for (const box of this.boxes) box.checked = false;
    this.showCount(0);
  }
}

/** Chooses columns of a wide table. */
class ColumnsMenu extends Menu {
  constructor(headers, rows) {
    super('Columns', headers.map((header) => header.dataset.label), (i) => {
      for (const row of [headers[i].parentElement, ...rows]) row.cells[i].hidden = !this.boxes[i].checked;
      this.showCount(this.boxes.filter((box) => !box.checked).length);
    });
    for (const box of this.boxes) box.checked = true;
  }
}

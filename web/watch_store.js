// What the page knows of runs. The server tells only what is new; a run that began anew has another generation.

const TABLES = ['progress', 'epochs', 'usage'];

class RunStore {
  constructor(key) {
    this.key = key;
    this.told = null;
    this.forget();
  }

  forget() {
    this.tables = Object.fromEntries(TABLES.map((name) => [name, { step: [], time: [], columns: {} }]));
    this.generation = null;
    this.have = '';
  }

  /** Takes what the server tells; whether there is anything new to draw. */
  take(told) {
    let isNew = this.told === null || told.generation !== this.generation;
    if (told.generation !== this.generation) this.forget();
    for (const name of TABLES) {
      if (told[name].step.length > 0) isNew = true;
      extendTable(this.tables[name], told[name]);
    }
    this.generation = told.generation;
    this.have = told.have;
    this.told = told;
    return isNew;
  }

  /** The seconds since 1970 at which it began. */
  beginning() {
    return this.told?.first_record ?? this.tables.progress.time[0] ?? 0;
  }

  /** Points of a column: {x, y}, by step or by the seconds since the run began. */
  points(table, column, byTime) {
    const { step, time, columns } = this.tables[table];
    const values = columns[column];
    if (!values) return [];
    const begin = this.beginning();
    const points = values.map((y, i) => ({ x: byTime ? time[i] - begin : step[i], y }));
    return points.filter((point) => point.x !== null && Number.isFinite(point.x));
  }

  lastOf(table, column) {
    const values = this.tables[table].columns[column] || [];
    for (let i = values.length - 1; i >= 0; --i) if (values[i] !== null) return values[i];
    return null;
  }

  /** Steps done, as far as anybody has said. */
  step() {
    const steps = (this.told?.ranks || []).map((rank) => rank.step);
    return Math.max(0, this.told?.summary?.steps ?? 0, ...steps, this.tables.progress.step.at(-1) ?? 0, this.tables.epochs.step.at(-1) ?? 0);
  }

  steps() {
    const planned = (this.told?.ranks || []).map((rank) => rank.steps);
    return this.told?.summary?.steps ?? Math.max(0, ...planned);
  }
}

function extendTable(table, rows) {
  table.step.length = table.time.length = rows.from;
  table.step.push(...rows.step);
  table.time.push(...rows.time);
  for (const name of Object.keys(rows.columns)) {
    table.columns[name] ??= [];
    while (table.columns[name].length < rows.from) table.columns[name].push(null);
  }
  for (const [name, values] of Object.entries(table.columns)) {
    values.length = rows.from;
    values.push(...(rows.columns[name] || rows.step.map(() => null)));
  }
}

// Times and sizes as people read them.

/** `12.3 ms` for 12300 µs. */
function timeText(us) {
  const [factor, unit] = timeUnit(Math.abs(us));
  return `${threeDigits(us * factor)} ${unit}`;
}

/** A mark on an axis whose marks are `step` apart and reach up to `largest`: all in one unit, with the digits that differ. */
function markText(us, step, largest) {
  const [factor, unit] = timeUnit(largest);
  const digits = Math.max(0, Math.ceil(-Math.log10(step * factor) - 1e-9));
  return `${(us * factor).toFixed(Math.min(digits, 9))} ${unit}`;
}

/** @returns {[number, string]} what to multiply µs by, and the unit's name */
function timeUnit(us) {
  if (us >= 1e6) return [1e-6, 's'];
  if (us >= 1e3) return [1e-3, 'ms'];
  if (us >= 1 || us === 0) return [1, 'µs'];
  return [1e3, 'ns'];
}

function threeDigits(value) {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    ++unit;
  }
  return `${unit === 0 ? bytes : threeDigits(bytes)} ${units[unit]}`;
}

/** One of an event's details: its name and value, `staging_us: 12` as "staging" and "12.0 µs". */
function detailText(key, value) {
  if (typeof value === 'number' && key.endsWith('_us')) return [key.slice(0, -3).replaceAll('_', ' '), timeText(value)];
  if (typeof value === 'number' && /(^|_)bytes$/.test(key)) return [key.replaceAll('_', ' '), bytesText(value)];
  // What the traces of training call by a name that has its unit in the middle.
  if (key === 'startable_us_before') return ['could have started', `${timeText(value)} before`];
  return [key.replaceAll('_', ' '), typeof value === 'string' ? value : JSON.stringify(value)];
}

/** Round places for marks on an axis from `begin` to `end`, about `count` of them. */
function axisStep(begin, end, count) {
  const rough = (end - begin) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (power * factor >= rough) return power * factor;
  return power * 10;
}

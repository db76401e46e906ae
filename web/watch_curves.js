// Which curves there are, and what is drawn in them. Columns that nobody has named here get a chart of their own.

const percentText = (value) => (value === null ? '–' : `${Number((100 * value).toPrecision(3))} %`);

const NAMED_CHARTS = [
  { title: 'Loss', curves: [['progress', 'loss', 'training', { smooth: true }], ['epochs', 'train_loss', 'training, by epoch', { marks: true, onlyWithout: 'loss' }], ['epochs', 'test_loss', 'test', { marks: true, dash: 1 }]], canBeLogarithmic: true },
  { title: 'Throughput', hint: 'samples per second', curves: [['progress', 'data_per_s', '', {}]], least: 0 },
  { title: 'Waiting', hint: 'for communication and for data, share of training time', yText: percentText, curves: [['epochs', 'exposed_share', 'communication', { marks: true }], ['epochs', 'data_wait_share', 'data', { marks: true, dash: 1 }]], least: 0 },
  { title: 'Processor use', hint: 'cores, all ranks; while this page is open', curves: [['usage', 'cores', '', {}]], least: 0 },
  { title: 'Learning rate', curves: [['progress', 'lr', '', {}]], least: 0 },
];
// The page smoothes the loss itself.
const NOT_DRAWN = new Set(['epoch', 'data_per_s', 'loss_smoothed']);

function readableName(column) {
  const text = column.replaceAll('_', ' ');
  return text[0].toUpperCase() + text.slice(1);
}

function secondsText(seconds) {
  const size = Math.abs(seconds);
  if (size < 100) return `${Number(seconds.toPrecision(2))} s`;
  if (size < 100 * 60) return `${Math.round(seconds / 60)} min`;
  return `${Number((seconds / 3600).toPrecision(3))} h`;
}

class RunCurves {
  constructor(place) {
    this.place = place;
    this.charts = new Map();
    this.byTime = false;
    this.smoothing = 0.6;
    this.isLogarithmic = false;
    if (!canDrawCurves()) place.before(missingCurves());
  }

  /** Named charts, then one for each other column: metrics behind the loss, the rest at the end. */
  definitions(runs) {
    const named = new Set(NAMED_CHARTS.flatMap((chart) => chart.curves.map(([table, column]) => `${table} ${column}`)));
    const metrics = [], others = [];
    const seen = new Set();
    for (const run of runs)
      for (const table of ['epochs', 'progress'])
        for (const column of Object.keys(run.tables[table].columns)) {
          const id = `${table} ${column}`;
          if (named.has(id) || seen.has(id) || NOT_DRAWN.has(column)) continue;
          seen.add(id);
          const isMetric = column.startsWith('test_');
          (isMetric ? metrics : others).push({ title: readableName(column), curves: [[table, column, '', { marks: table === 'epochs' }]] });
        }
    return [NAMED_CHARTS[0], ...metrics, ...NAMED_CHARTS.slice(1), ...others];
  }

  chart(definition) {
    let chart = this.charts.get(definition.title);
    if (!chart) {
      chart = new CurveChart({ title: definition.title, hint: definition.hint, least: definition.least, yText: definition.yText || numberText, xText: (x, isLong) => this.xText(x, isLong), xLeast: () => this.xLeast });
      this.charts.set(definition.title, chart);
      this.place.append(chart.root);
    }
    return chart;
  }

  xText(x, isLong) {
    if (this.byTime) return isLong ? `${secondsText(x)} after its start` : secondsText(x);
    return isLong ? `step ${numberText(x)}` : numberText(x);
  }

  curvesOf(definition, runs) {
    const curves = [];
    for (const run of runs)
      for (const [table, column, name, { smooth, marks, dash, onlyWithout }] of definition.curves) {
        if (onlyWithout && run.lastOf('progress', onlyWithout) !== null) continue;
        const points = run.points(table, column, this.byTime);
        if (!points.some((point) => point.y !== null)) continue;
        const curve = { key: `${run.key}\n${column}`, name: curveName(run, name, runs.length > 1, definition), colour: run.colour, dash, marks, points };
        if (smooth && this.smoothing > 0 && points.length > 2) {
          curve.points = smoothed(points, this.smoothing);
          curve.backdrop = points;
        }
        curves.push(curve);
      }
    return curves;
  }

  /** From the beginning on, unless it lies far behind. */
  leastOf(runs) {
    const places = runs.flatMap((run) => ['progress', 'epochs'].flatMap((table) => (run.tables[table].step.length > 0 ? [run.tables[table].step[0], run.tables[table].step.at(-1)] : [])));
    return this.byTime || 2 * Math.min(...places) < Math.max(...places) ? 0 : undefined;
  }

  show(runs) {
    this.xLeast = this.leastOf(runs);
    const definitions = this.definitions(runs);
    const drawn = new Set(definitions.map((definition) => definition.title));
    for (const [title, chart] of this.charts) if (!drawn.has(title)) chart.show([]);
    let before = null;
    for (const definition of definitions) {
      const chart = this.chart(definition);
      if (before !== null && before.root.nextSibling !== chart.root) before.root.after(chart.root);
      before = chart;
      chart.isLogarithmic = Boolean(definition.canBeLogarithmic && this.isLogarithmic);
      chart.show(this.curvesOf(definition, runs));
    }
  }
}

function curveName(run, name, areSeveral, definition) {
  if (!areSeveral) return name || (definition.curves.length > 1 ? 'training' : run.key);
  return name ? `${run.key}: ${name}` : run.key;
}

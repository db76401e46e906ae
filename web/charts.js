// Curves with values on hover, for pages of reports and of `tutti watch`. Chart.js draws them; a build without it says so.

// Okabe and Ito's colours, which people of every colour vision tell apart: on white, and on dark.
const CURVE_COLOURS = [
  ['#0072b2', '#56b4e9'], ['#d55e00', '#ff8a3d'], ['#00795a', '#2ec49a'], ['#b0508a', '#e59ac4'],
  ['#9a6a00', '#f0b429'], ['#6a55a0', '#ab98e6'], ['#4c5a6b', '#aab6c4'], ['#7a7000', '#d6cb4a'],
];
// More marks than this cover their line.
const MOST_MARKS = 40;
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

function isDarkPage() {
  return getComputedStyle(document.documentElement).colorScheme === 'dark';
}

/** Of a curve by its number; null: of one that others are only compared with. */
function curveColour(number) {
  if (number === null) return pageColours().muted;
  return CURVE_COLOURS[number % CURVE_COLOURS.length][isDarkPage() ? 1 : 0];
}

/** Four digits, as many as a person compares: `0.02513`, `1 234`, `2.5e-7`. */
function numberText(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2).replace('e+', 'e');
  if (size >= 1000) return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
  return String(Number(value.toPrecision(4)));
}

// Points of several curves that are this close to each other are told together.
const TOGETHER_PIXELS = 24;

/** Of each curve the point nearest to the pointer, where it has one there: curves have points of their own. */
function nearestOfEach(chart, event) {
  const items = [];
  const axis = chart.scales.x, x = axis.getValueForPixel(event.x);
  const away = axis.type === 'logarithmic' ? (point) => Math.abs(Math.log(point.x / x)) : (point) => Math.abs(point.x - x);
  chart.data.datasets.forEach((dataset, datasetIndex) => {
    if (!chart.isDatasetVisible(datasetIndex) || dataset.isBackdrop) return;
    const { data } = dataset, shown = chart.getDatasetMeta(datasetIndex).data;
    let best = -1;
    for (let i = 0; i < data.length; ++i) if (data[i].y !== null && (best < 0 || away(data[i]) < away(data[best]))) best = i;
    if (best >= 0 && shown[best]) items.push({ element: shown[best], datasetIndex, index: best });
  });
  const pixelsAway = ({ element }) => Math.abs(element.x - event.x);
  const closest = Math.min(...items.map(pixelsAway));
  const middle = items.find((item) => pixelsAway(item) === closest)?.element.x;
  return items.filter((item) => Math.abs(item.element.x - middle) <= TOGETHER_PIXELS);
}

/** A line through what the values are of. */
const pointerLine = {
  id: 'pointerLine',
  afterDatasetsDraw(chart) {
    const active = chart.getActiveElements();
    if (active.length === 0) return;
    const { ctx, chartArea } = chart;
    ctx.save();
    ctx.strokeStyle = pageColours().muted;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(active[0].element.x, chartArea.top);
    ctx.lineTo(active[0].element.x, chartArea.bottom);
    ctx.stroke();
    ctx.restore();
  },
};

/** Intervals around points that have a `half`. */
const intervals = {
  id: 'intervals',
  beforeDatasetsDraw(chart) {
    const { ctx, scales } = chart;
    ctx.save();
    ctx.lineWidth = 1.5;
    chart.data.datasets.forEach((dataset, i) => {
      if (!chart.isDatasetVisible(i)) return;
      ctx.strokeStyle = dataset.borderColor;
      ctx.beginPath();
      for (const { x, y, half } of dataset.data) {
        if (!(half > 0)) continue;
        const at = scales.x.getPixelForValue(x), top = scales.y.getPixelForValue(y + half);
        // On a logarithmic axis an interval may reach to where nothing can be drawn.
        const bottom = Math.min(scales.y.bottom, scales.y.getPixelForValue(Math.max(y - half, scales.y.type === 'logarithmic' ? scales.y.min : -Infinity)));
        ctx.moveTo(at, top);
        ctx.lineTo(at, bottom);
        for (const end of [top, bottom]) {
          ctx.moveTo(at - 3, end);
          ctx.lineTo(at + 3, end);
        }
      }
      ctx.stroke();
    });
    ctx.restore();
  },
};

/** The ends of the data get marks of their own, which may come close to the round ones. */
function dropCrowdedTicks(axis) {
  const at = axis.ticks.map((tick) => tick.value), last = at.length - 1;
  if (last < 3) return;
  const step = at[2] - at[1];
  if (at[last] - at[last - 1] < 0.7 * step) axis.ticks.pop();
  if (at[1] - at[0] < 0.7 * step) axis.ticks.shift();
}

function canDrawCurves() {
  return typeof Chart !== 'undefined';
}

function missingCurves() {
  return element('p', { class: 'none' }, 'This build of tutti draws no curves: it was made without Chart.js. Install it (Debian: apt install libjs-chart.js), build again, and they are here.');
}

/**
 * A figure with curves. `options`: title, hint, yText (a value as text), xText (a place on the axis as text), xTitle, yTitle,
 * least (the axis begins there at the latest), xLeast (a function that says the same of the other axis), isLogarithmicX,
 * xMarks (the values that the axis names), isInside (of a figure that has a title already).
 */
class CurveChart {
  constructor(options) {
    this.options = options;
    this.hidden = new Set();
    this.curves = [];
    this.isLogarithmic = false;
    this.legend = element('div', { class: 'curve-legend', role: 'group', 'aria-label': `${options.title}: show or hide curves` });
    this.spoken = element('div', { class: 'off-screen', role: 'status' });
    this.root = options.isInside ? element('div', {}) : element('figure', { class: 'card curve-card' }, element('h3', {}, options.title, options.hint ? element('small', {}, options.hint) : null));
    if (canDrawCurves()) {
      this.canvas = element('canvas', { tabindex: '0', role: 'img', 'aria-label': `${options.title}. Arrow keys left and right tell values.` });
      this.root.append(element('div', { class: 'curve-frame' }, this.canvas));
      this.canvas.addEventListener('keydown', (event) => this.key(event));
      this.canvas.addEventListener('blur', () => this.point([]));
      onThemeChange(() => this.show(this.curves));
    }
    this.root.append(this.legend, this.spoken);
  }

  /** @param {{key: string, name: string, colour: number, dash?: number, points: {x: number, y: number|null}[], backdrop?: {x: number, y: number|null}[], marks?: boolean}[]} curves */
  show(curves) {
    this.curves = curves;
    this.root.hidden = curves.length === 0;
    this.showLegend();
    this.redraw();
  }

  /** Names with their last values: what a person reads first, and what is left without Chart.js. */
  showLegend() {
    const names = this.curves.map((curve) => curve.key).join('\n');
    if (names !== this.legendNames) {
      this.legendNames = names;
      this.buttons = this.curves.map((curve) => this.legendButton(curve));
      this.legend.replaceChildren(...this.buttons.map((button) => button.root));
    }
    this.curves.forEach((curve, i) => {
      this.buttons[i].name.textContent = curve.name;
      this.buttons[i].value.textContent = this.options.yText(lastValue(curve.points));
      this.buttons[i].line.style.borderTopColor = curveColour(curve.colour);
      this.buttons[i].line.style.borderTopStyle = curve.dash ? 'dashed' : 'solid';
    });
  }

  legendButton(curve) {
    const line = element('span', { class: 'curve-line' }), name = element('span', { class: 'curve-name' }), value = element('span', { class: 'curve-value' });
    const root = element('button', { type: 'button', class: 'legend-button', 'aria-pressed': String(!this.hidden.has(curve.key)) }, line, name, value);
    root.addEventListener('click', () => {
      if (!this.hidden.delete(curve.key)) this.hidden.add(curve.key);
      root.setAttribute('aria-pressed', String(!this.hidden.has(curve.key)));
      this.redraw();
    });
    return { root, line, name, value };
  }

  datasets() {
    const sets = [];
    for (const curve of this.curves) {
      const hidden = this.hidden.has(curve.key), colour = curveColour(curve.colour);
      const common = { borderColor: colour, backgroundColor: colour, hidden, pointHitRadius: 0 };
      if (curve.backdrop) sets.push({ ...common, data: curve.backdrop, borderColor: `${colour}40`, borderWidth: 1, pointRadius: 0, pointHoverRadius: 0, isBackdrop: true });
      const isMarked = curve.points.length === 1 || (curve.marks && curve.points.length <= MOST_MARKS);
      sets.push({ ...common, label: curve.name, data: curve.points, borderWidth: 2, borderDash: DASHES[curve.dash || 0], pointRadius: isMarked ? 2.5 : 0, pointHoverRadius: 4 });
    }
    return sets;
  }

  redraw() {
    if (!this.canvas || this.root.hidden || !this.root.isConnected) return;
    const colours = pageColours();
    const axis = (text) => ({ grid: { color: colours.line, borderColor: colours.line }, border: { color: colours.line }, ticks: { color: colours.muted, maxRotation: 0, includeBounds: false, autoSkipPadding: 14, callback: text } });
    const { xText, yText, xTitle, yTitle, least, isLogarithmicX, xMarks } = this.options;
    const title = (text) => ({ display: Boolean(text), text, color: colours.muted });
    const scales = {
      x: {
        ...axis((value) => xText(value)), type: isLogarithmicX ? 'logarithmic' : 'linear', bounds: 'data', suggestedMin: this.options.xLeast?.(), title: title(xTitle),
        afterBuildTicks: xMarks?.length > 0 ? (scale) => (scale.ticks = xMarks.map((value) => ({ value }))) : dropCrowdedTicks,
      },
      y: { ...axis((value) => yText(value)), type: this.isLogarithmic ? 'logarithmic' : 'linear', suggestedMin: this.isLogarithmic ? undefined : least, title: title(yTitle) },
    };
    if (!this.chart) {
      Chart.Interaction.modes.nearestOfEach = nearestOfEach;
      this.chart = new Chart(this.canvas, { type: 'line', data: { datasets: [] }, options: {}, plugins: [pointerLine, intervals] });
    }
    this.chart.options = {
      animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false, scales,
      interaction: { mode: 'nearestOfEach', intersect: false },
      elements: { line: { tension: 0 } },
      plugins: {
        legend: { display: false },
        tooltip: {
          animation: false, backgroundColor: colours.card, titleColor: colours.muted, bodyColor: colours.text, borderColor: colours.line, borderWidth: 1,
          padding: 10, boxPadding: 4, callbacks: {
            title: (items) => (items.length > 0 ? xText(items[0].parsed.x, true) : ''),
            label: (item) => ` ${item.dataset.label}: ${yText(item.parsed.y)}${item.raw.half > 0 ? ` ± ${yText(item.raw.half)}` : ''}`,
          },
        },
      },
    };
    this.chart.data.datasets = this.datasets();
    this.chart.update('none');
  }

  /** Arrow keys go from point to point of the first curve in view, and say what is there. */
  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || !this.chart) return;
    event.preventDefault();
    const first = this.curves.find((curve) => !this.hidden.has(curve.key) && curve.points.length > 0);
    if (!first) return;
    this.at = Math.max(0, Math.min(first.points.length - 1, (this.at ?? first.points.length) + steps[event.key]));
    const x = this.chart.scales.x.getPixelForValue(first.points[this.at].x);
    const items = nearestOfEach(this.chart, { x });
    this.point(items, x);
    const { xText, yText } = this.options;
    this.spoken.textContent = [xText(first.points[this.at].x, true), ...items.map(({ datasetIndex, index }) => {
      const set = this.chart.data.datasets[datasetIndex];
      return `${set.label}: ${yText(set.data[index].y)}`;
    })].join(', ');
  }

  point(items, x = 0) {
    if (!this.chart) return;
    this.chart.setActiveElements(items);
    this.chart.tooltip.setActiveElements(items, { x, y: (this.chart.chartArea.top + this.chart.chartArea.bottom) / 2 });
    this.chart.update('none');
  }
}

function lastValue(points) {
  for (let i = points.length - 1; i >= 0; --i) if (points[i].y !== null) return points[i].y;
  return null;
}

/**
 * A running mean in which what is `weight` points back counts half as much or so; 0: none. It begins without a bias
 * towards 0, as Adam's do.
 */
function smoothed(points, weight) {
  if (weight <= 0) return points;
  let sum = 0, known = 1;
  return points.map(({ x, y }) => {
    if (y === null) return { x, y };
    sum = weight * sum + (1 - weight) * y;
    known *= weight;
    return { x, y: sum / (1 - known) };
  });
}

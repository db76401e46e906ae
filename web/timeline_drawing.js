// Draws a timeline on a canvas. Only what is in view is drawn, and what is narrower than a pixel is drawn once per pixel.

// Okabe and Ito's colours, which people of every colour vision tell apart; waiting is hatched too, for print.
const KIND_COLOURS = {
  step: '#8a93a3', data: '#cc79a7', forward: '#56b4e9', backward: '#0072b2', wait: '#d55e00', optimizer: '#009e73',
  transfer: '#e69f00', checkpoint: '#b8a200', evaluation: '#7a68a6',
};
const OTHER_COLOUR = '#8a93a3';
const DARK_KINDS = new Set(['backward', 'wait', 'optimizer', 'evaluation']);

function kindColour(kind) {
  return KIND_COLOURS[kind] || OTHER_COLOUR;
}

/** The page's colours, as they are now. */
function pageColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return { text: colour('--text'), muted: colour('--muted'), line: colour('--line'), lane: colour('--lane'), accent: colour('--accent'), paper: colour('--paper'), card: colour('--card') };
}

class TimelineDrawing {
  constructor(canvas, layout) {
    this.canvas = canvas;
    this.layout = layout;
    this.context = canvas.getContext('2d');
    this.hatching = makeHatching(this.context);
  }

  resize(width) {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    this.width = width;
    this.gutter = width < 560 ? 84 : 128;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.layout.height * scale);
    this.canvas.style.height = `${this.layout.height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  /** Pixels per µs, and from one to the other. */
  scaleOf(view) {
    return (this.width - this.gutter) / (view.end - view.begin);
  }
  xOf(us, view) {
    return this.gutter + (us - view.begin) * this.scaleOf(view);
  }
  timeAt(x, view) {
    return view.begin + (x - this.gutter) / this.scaleOf(view);
  }

  draw(view, { selected, isHidden, cursor }) {
    const { context, layout, width } = this;
    this.colours = pageColours();
    context.clearRect(0, 0, width, layout.height);
    this.drawLanes();
    this.drawAxis(view);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, width - this.gutter, layout.height);
    context.clip();
    for (const lane of layout.lanes) for (const row of lane.rows) this.drawRow(row, view, isHidden);
    if (cursor !== null) this.drawCursor(cursor, view);
    if (selected) this.outline(selected, view);
    context.restore();
  }

  drawLanes() {
    const { context, layout, colours } = this;
    context.textBaseline = 'middle';
    for (const lane of layout.lanes) {
      context.fillStyle = colours.lane;
      context.fillRect(this.gutter, lane.top, this.width - this.gutter, lane.height);
      const isRoomy = lane.isFirstOfRank && layout.rowHeight >= 14;
      const rank = lane.process ?? `rank ${lane.rank}`;
      if (lane.isFirstOfRank) this.label(isRoomy ? rank : `${rank} ${lane.name}`, lane.top + 8, '600 13px', colours.text);
      if (isRoomy || !lane.isFirstOfRank) this.label(lane.name, lane.top + (isRoomy ? 24 : lane.height / 2), '12px', colours.muted);
    }
  }

  label(text, y, font, colour) {
    this.context.font = `${font} system-ui, sans-serif`;
    this.context.fillStyle = colour;
    this.context.fillText(text, 0, y, this.gutter - 8);
  }

  drawAxis(view) {
    const { context, layout, colours, width } = this;
    const step = axisStep(view.begin, view.end, (width - this.gutter) / 96);
    const largest = Math.max(Math.abs(view.begin), Math.abs(view.end));
    context.font = '11.5px system-ui, sans-serif';
    context.textAlign = 'center';
    for (let i = Math.ceil(view.begin / step); i * step <= view.end; ++i) {
      const x = Math.round(this.xOf(i * step, view)) + 0.5;
      context.fillStyle = colours.line;
      context.fillRect(x - 0.5, AXIS_HEIGHT - 7, 1, layout.height - AXIS_HEIGHT);
      context.fillStyle = colours.muted;
      const text = markText(i * step, step, largest);
      context.fillText(text, Math.min(x, width - context.measureText(text).width / 2), 10);
    }
    context.textAlign = 'start';
  }

  drawRow(row, view, isHidden) {
    const { context, layout } = this;
    let drawnTo = -Infinity, drawnKind = '';
    for (let i = firstEndingAfter(row, view.begin); i < row.length && row[i].begin <= view.end; ++i) {
      const event = row[i];
      if (isHidden(event)) continue;
      const left = this.xOf(event.begin, view);
      const width = Math.max(1, this.xOf(event.end, view) - left);
      if (left + width < drawnTo + 0.5 && event.kind === drawnKind) continue;
      [drawnTo, drawnKind] = [left + width, event.kind];
      // A hair of space between neighbours that have room for it.
      const shown = width > 4 ? width - 1 : width;
      const top = layout.rowTop(event);
      const height = layout.rowHeight - 2;
      context.fillStyle = kindColour(event.kind);
      context.fillRect(left, top + 1, shown, height);
      if (event.kind === 'wait') {
        context.fillStyle = this.hatching;
        context.fillRect(left, top + 1, shown, height);
      }
      if (shown > 26 && layout.rowHeight >= 14) this.drawName(event, left, shown, top);
    }
  }

  drawName(event, left, width, top) {
    const { context } = this;
    const from = Math.max(left, this.gutter) + 5;
    const room = Math.floor((Math.min(left + width, this.width) - from - 3) / 6.1);
    if (room < Math.min(6, event.label.length)) return;
    const text = event.label.length <= room ? event.label : `${event.label.slice(0, room - 1)}…`;
    context.font = '11px system-ui, sans-serif';
    if (event.kind === 'wait') {  // no hatching behind letters
      context.fillStyle = kindColour(event.kind);
      context.fillRect(from - 3, top + 2, context.measureText(text).width + 6, this.layout.rowHeight - 4);
    }
    context.fillStyle = DARK_KINDS.has(event.kind) ? '#ffffff' : '#10151d';
    context.fillText(text, from, top + this.layout.rowHeight / 2 + 0.5);
  }

  drawCursor(us, view) {
    this.context.fillStyle = this.colours.muted;
    this.context.fillRect(Math.round(this.xOf(us, view)), AXIS_HEIGHT - 7, 1, this.layout.height);
  }

  outline(event, view) {
    const { context, layout } = this;
    const left = this.xOf(event.begin, view), width = Math.max(2, this.xOf(event.end, view) - left);
    context.lineWidth = 2;
    context.strokeStyle = this.colours.text;
    context.strokeRect(left, layout.rowTop(event) + 1, width, layout.rowHeight - 2);
  }
}

function makeHatching(context) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const pen = tile.getContext('2d');
  pen.strokeStyle = 'rgba(255, 255, 255, 0.38)';
  pen.lineWidth = 2;
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat');
}

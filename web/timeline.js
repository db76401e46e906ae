// A timeline that answers to mouse, touch and keyboard: zoom, pan, and what each event is.

const ZOOM_STEP = 1.5;
const SHORTEST_VIEW_US = 0.1;

class Timeline {
  constructor(place, data) {
    this.layout = new TimelineLayout(data);
    if (this.layout.events.length === 0) {
      place.append(element('p', { class: 'none' }, 'No events.'));
      return;
    }
    this.hidden = new Set();
    this.isHidden = (event) => this.hidden.has(event.kind);
    this.selected = null;
    this.cursor = null;
    this.pointers = new Map();
    this.draw = oncePerFrame(() => this.drawing.draw(this.view, this));
    this.build(place, data.title || 'Timeline');
    this.drawing = new TimelineDrawing(this.canvas, this.layout);
    const margin = (this.layout.end - this.layout.begin) * 0.01 || 1;
    this.whole = { begin: this.layout.begin - margin, end: this.layout.end + margin };
    // A step may have neighbours that reach into it; it is what is shown first.
    const length = data.length_us;
    this.first = length > 0 ? { begin: Math.max(this.whole.begin, -length * 0.02), end: Math.min(this.whole.end, length * 1.02) } : this.whole;
    this.view = { ...this.first };
    this.listen();
    onThemeChange(() => this.drawing.width && this.drawing.draw(this.view, this));
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  build(place, title) {
    const button = (label, text, action) => element('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick: action }, text);
    const legend = element('div', { class: 'legend', role: 'group', 'aria-label': 'Kinds of events: show or hide' });
    for (const kind of this.layout.kinds) legend.append(this.legendButton(kind));
    const tools = element('div', { class: 'tools', role: 'group', 'aria-label': 'View' },
      button('Previous event', '‹', () => this.walk(-1)), button('Next event', '›', () => this.walk(1)),
      button('Zoom out', '−', () => this.zoom(1 / ZOOM_STEP)), button('Zoom in', '+', () => this.zoom(ZOOM_STEP)),
      button('Show the whole step', '↔', () => this.fit()));
    this.canvas = element('canvas', {
      tabindex: '0', role: 'application', 'aria-roledescription': 'timeline',
      'aria-label': `${title}. Arrow keys left and right move, plus and minus zoom, 0 shows all, n and p go to the next and previous event, up and down to the lane above and below.`,
    });
    this.tip = element('div', { class: 'tip', role: 'tooltip', hidden: true });
    this.spoken = element('div', { class: 'off-screen', role: 'status' });
    this.frame = element('div', { class: 'timeline-frame' }, this.canvas, this.tip);
    const hint = element('p', { class: 'hint' }, 'Drag to move; click, then turn the wheel to zoom (or pinch, or Ctrl and wheel). Keys: ← → + − 0, n and p for events, ↑ ↓ for lanes.');
    place.append(element('div', { class: 'controls' }, legend, tools), this.frame, this.spoken, hint);
  }

  legendButton(kind) {
    const swatch = element('span', { class: `swatch swatch-${kind}`, style: `background-color:${kindColour(kind)}` });
    const button = element('button', { type: 'button', class: 'legend-button', 'aria-pressed': 'true' }, swatch, kind);
    button.addEventListener('click', () => {
      const hide = !this.hidden.has(kind);
      if (hide) this.hidden.add(kind);
      else this.hidden.delete(kind);
      button.setAttribute('aria-pressed', String(!hide));
      if (this.selected && this.isHidden(this.selected)) this.select(null);
      this.draw();
    });
    return button;
  }

  listen() {
    const on = (name, handler, options) => this.canvas.addEventListener(name, handler, options);
    on('pointerdown', (event) => this.press(event));
    on('pointermove', (event) => this.move(event));
    for (const name of ['pointerup', 'pointercancel']) on(name, (event) => this.release(event));
    on('pointerleave', () => this.pointers.size === 0 && this.leave());
    on('wheel', (event) => this.wheel(event), { passive: false });
    on('dblclick', (event) => this.zoom(ZOOM_STEP * ZOOM_STEP, this.timeUnder(event)));
    on('keydown', (event) => this.key(event));
    on('blur', () => this.select(null));
  }

  resize() {
    const width = this.frame.clientWidth;
    if (width < 120) return;
    this.drawing.resize(width);
    this.drawing.draw(this.view, this);
  }

  // ---- the view ----

  timeUnder(event) {
    return this.drawing.timeAt(event.clientX - this.canvas.getBoundingClientRect().left, this.view);
  }

  /** Keeps the view inside the whole, and not too short to see anything. */
  show(begin, end) {
    const most = this.whole.end - this.whole.begin;
    const length = Math.min(most, Math.max(SHORTEST_VIEW_US, end - begin));
    begin = Math.min(Math.max(begin, this.whole.begin), this.whole.end - length);
    this.view = { begin, end: begin + length };
    this.draw();
  }

  zoom(factor, around = (this.view.begin + this.view.end) / 2) {
    const { begin, end } = this.view;
    const length = Math.min(Math.max((end - begin) / factor, SHORTEST_VIEW_US), this.whole.end - this.whole.begin);
    const from = around - ((around - begin) / (end - begin)) * length;
    this.show(from, from + length);
  }

  pan(share) {
    const by = share * (this.view.end - this.view.begin);
    this.show(this.view.begin + by, this.view.end + by);
  }

  fit() {
    this.show(this.first.begin, this.first.end);
  }

  // ---- mouse and touch ----

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event.clientX);
    this.hasMoved = false;
    this.pressedAt = event.clientX;
  }

  move(event) {
    if (!this.pointers.has(event.pointerId)) return this.hover(event);
    const before = this.span();
    this.pointers.set(event.pointerId, event.clientX);
    const after = this.span();
    if (Math.abs(event.clientX - this.pressedAt) > 4 || this.pointers.size > 1) this.hasMoved = true;
    if (!this.hasMoved) return;
    if (this.pointers.size > 1 && before.length > 4) this.zoom(after.length / before.length, this.drawing.timeAt(before.middle, this.view));
    const by = (before.middle - after.middle) / this.drawing.scaleOf(this.view);
    this.show(this.view.begin + by, this.view.end + by);
    this.canvas.classList.add('dragged');
    this.hideTip();
  }

  /** The middle of the fingers on the canvas, and how far apart they are. */
  span() {
    const left = this.canvas.getBoundingClientRect().left;
    const places = [...this.pointers.values()].map((x) => x - left);
    const least = Math.min(...places), most = Math.max(...places);
    return { middle: (least + most) / 2, length: most - least };
  }

  release(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.canvas.classList.remove('dragged');
    // A tap shows what is under the finger, as hovering does with a mouse.
    if (event.type === 'pointerup' && !this.hasMoved) this.hover(event);
  }

  wheel(event) {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    const pixels = (isSideways ? event.deltaX || event.deltaY : event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
    // The page scrolls on where the timeline was not asked for.
    if (!isSideways && !event.ctrlKey && !event.metaKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    if (isSideways) this.pan(pixels / (this.drawing.width - this.drawing.gutter));
    else this.zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.002)), this.timeUnder(event));
    this.hover(event);
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const slack = (event.pointerType === 'touch' ? 10 : 3) / this.drawing.scaleOf(this.view);
    const time = this.drawing.timeAt(x, this.view);
    const found = x >= this.drawing.gutter ? this.layout.find(time, y, slack, this.isHidden) : null;
    this.cursor = x >= this.drawing.gutter ? time : null;
    this.select(found, x, y);
  }

  leave() {
    this.cursor = null;
    this.select(null);
  }

  // ---- keyboard ----

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1),
      ArrowUp: () => this.changeLane(-1), ArrowDown: () => this.changeLane(1),
      '+': () => this.zoom(ZOOM_STEP, this.focusTime()), '=': () => this.zoom(ZOOM_STEP, this.focusTime()),
      '-': () => this.zoom(1 / ZOOM_STEP, this.focusTime()), 0: () => this.fit(), Home: () => this.fit(),
      n: () => this.walk(1), p: () => this.walk(-1), Escape: () => this.select(null),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
    if (this.selected) this.select(this.selected);
  }

  focusTime() {
    return this.selected ? (this.selected.begin + this.selected.end) / 2 : undefined;
  }

  /** To the next event of the same lane, or the first one in view. */
  walk(direction) {
    const lane = this.selected ? this.selected.lane : 0;
    const events = this.layout.events.filter((event) => event.lane === lane && !this.isHidden(event));
    if (events.length === 0) return;
    const at = events.indexOf(this.selected);
    this.choose(events[at < 0 ? 0 : Math.min(events.length - 1, Math.max(0, at + direction))]);
  }

  /** To the event of another lane that is nearest in time. */
  changeLane(direction) {
    if (!this.selected) return this.walk(1);
    const lane = this.selected.lane + direction, time = this.selected.begin;
    let best = null;
    for (const event of this.layout.events)
      if (event.lane === lane && !this.isHidden(event) && (!best || Math.abs(event.begin - time) < Math.abs(best.begin - time))) best = event;
    if (best) this.choose(best);
  }

  /** Selects by keyboard or button: brings it into view, and says it aloud where a screen reader listens. */
  choose(event) {
    const { begin, end } = this.view;
    if (event.begin > end || event.end < begin) {
      const middle = (event.begin + event.end) / 2;
      this.show(middle - (end - begin) / 2, middle + (end - begin) / 2);
    }
    this.select(event);
    this.tip.scrollIntoView({ block: 'nearest' });
    this.spoken.textContent = `${event.name}, ${event.kind}, ${this.laneName(event)}, begins at ${timeText(event.begin)}, takes ${timeText(event.end - event.begin)}`;
  }

  // ---- what an event is ----

  laneName(event) {
    const lane = this.layout.lanes[event.lane];
    return `${lane.process ?? `rank ${lane.rank}`}, ${lane.name}`;
  }

  select(event, x = null, y = null) {
    this.selected = event;
    if (event) this.showTip(event, x, y);
    else this.hideTip();
    this.draw();
  }

  hideTip() {
    this.tip.hidden = true;
  }

  showTip(event, x, y) {
    const rows = [['begins at', timeText(event.begin)], ['takes', timeText(event.end - event.begin)], ['on', this.laneName(event)]];
    for (const [key, value] of Object.entries(event.details)) rows.push(detailText(key, value));
    this.tip.replaceChildren(
      element('strong', {}, event.name), element('span', { class: 'tip-kind' }, element('span', { class: `swatch swatch-${event.kind}`, style: `background-color:${kindColour(event.kind)}` }), event.kind),
      element('dl', {}, ...rows.map(([key, value]) => element('div', {}, element('dt', {}, key), element('dd', {}, value)))));
    this.tip.hidden = false;
    const middle = this.drawing.xOf((Math.max(event.begin, this.view.begin) + Math.min(event.end, this.view.end)) / 2, this.view);
    x ??= Math.min(Math.max(middle, this.drawing.gutter), this.drawing.width);
    y ??= this.layout.rowTop(event) + this.layout.rowHeight;
    // Beside the pointer, and where there is no room to the right, to the left of it.
    const width = this.tip.offsetWidth;
    const left = x + 14 + width <= this.drawing.width ? x + 14 : x - 14 - width;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${y + 18}px`;
  }
}

function setUpTimelines() {
  const data = document.getElementById('timelines-data');
  const timelines = data ? JSON.parse(data.textContent) : [];
  for (const place of document.querySelectorAll('[data-timeline]')) new Timeline(place, timelines[Number(place.getAttribute('data-timeline'))]);
}

// Where the events of a timeline lie: lanes, rows within them, heights. Knows nothing of canvases.

const AXIS_HEIGHT = 28;
const LANE_GAP = 4;
const RANK_GAP = 12;
const KNOWN_KINDS = ['step', 'data', 'forward', 'backward', 'wait', 'optimizer', 'transfer', 'checkpoint', 'evaluation'];

class TimelineLayout {
  constructor(data) {
    this.lanes = (data.lanes || []).map((lane) => ({ ...lane, rows: [] }));
    const events = (data.events || []).map((event) => ({
      name: String(event.name ?? ''), label: String(event.label ?? event.name ?? ''), begin: event.begin_us, end: Math.max(event.begin_us, event.end_us),
      kind: String(event.kind || 'other'), details: event.details || {}, lane: event.lane, row: 0,
    }));
    events.sort((a, b) => a.begin - b.begin || b.end - a.end);
    for (const event of events) if (event.kind === 'step') this.lanes[event.lane].hasSteps = true;
    for (const event of events) putInRow(this.lanes[event.lane], event);
    this.events = events;
    this.begin = events.reduce((least, event) => Math.min(least, event.begin), Infinity);
    this.end = events.reduce((most, event) => Math.max(most, event.end), -Infinity);
    const found = new Set(events.map((event) => event.kind));
    this.kinds = [...KNOWN_KINDS.filter((kind) => found.has(kind)), ...[...found].filter((kind) => !KNOWN_KINDS.includes(kind)).sort()];
    this.placeLanes();
  }

  placeLanes() {
    const rows = this.lanes.reduce((sum, lane) => sum + Math.max(1, lane.rows.length), 0);
    // Readable rows, unless so many ranks are shown that the picture would be many screens high.
    this.rowHeight = Math.max(7, Math.min(20, Math.floor(900 / Math.max(1, rows))));
    let top = AXIS_HEIGHT;
    this.lanes.forEach((lane, i) => {
      lane.isFirstOfRank = i === 0 || this.lanes[i - 1].rank !== lane.rank;
      if (i > 0) top += lane.isFirstOfRank ? RANK_GAP : LANE_GAP;
      lane.top = top;
      lane.height = Math.max(1, lane.rows.length) * this.rowHeight;
      // Room for the name of the rank above that of the lane.
      if (lane.isFirstOfRank && this.rowHeight >= 14) lane.height = Math.max(lane.height, 32);
      top += lane.height;
    });
    this.height = top + 8;
  }

  rowTop(event) {
    return this.lanes[event.lane].top + event.row * this.rowHeight;
  }

  /** The event at a time and a height, or the nearest within `slack` µs: short ones are narrower than a finger. */
  find(us, y, slack, isHidden) {
    const lane = this.lanes.find((candidate) => y >= candidate.top && y < candidate.top + candidate.height);
    if (!lane) return null;
    const row = lane.rows[Math.floor((y - lane.top) / this.rowHeight)];
    if (!row) return null;
    let best = null, bestDistance = Infinity;
    for (let i = firstEndingAfter(row, us - slack); i < row.length && row[i].begin <= us + slack; ++i) {
      const distance = Math.max(row[i].begin - us, us - row[i].end, 0);
      if (!isHidden(row[i]) && distance < bestDistance) [best, bestDistance] = [row[i], distance];
    }
    return best;
  }
}

/**
 * The first row with room: what lies within another event, as layers in forward, lands below it. The topmost is for steps
 * alone, also where those of the neighbours are not shown.
 */
function putInRow(lane, event) {
  const rounding = 1e-3;
  const first = lane.hasSteps && event.kind !== 'step' ? 1 : 0;
  let row = lane.rows.findIndex((events, i) => i >= first && (events.length === 0 || events[events.length - 1].end <= event.begin + rounding));
  if (row < 0) {
    while (lane.rows.length < first) lane.rows.push([]);
    row = lane.rows.push([]) - 1;
  }
  event.row = row;
  lane.rows[row].push(event);
}

/** The events of a row follow each other, so those before a moment can be skipped by halving. */
function firstEndingAfter(row, us) {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].end < us) low = middle + 1;
    else high = middle;
  }
  return low;
}

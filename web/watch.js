// The page of `tutti watch`: asks the server for what is new, and shows it.

const POLL_LIVE_MS = 1000, POLL_QUIET_MS = 3000, POLL_HIDDEN_MS = 20000, POLL_LATEST_MS = 10000;

class WatchPage {
  constructor() {
    const find = (selector) => document.querySelector(selector);
    this.connection = find('.connection');
    this.cardPlace = find('.run-cards'), this.rankPlace = find('.rank-tables'), this.timelinePlace = find('.watch-timelines');
    this.curves = new RunCurves(find('.curve-charts'));
    this.runs = new Map();
    this.failures = 0;
    this.choice = new RunChoice(() => this.ask());
    this.empty = element('p', { class: 'none', hidden: true }, 'There is no run yet. Start one with tutti train: it appears here by itself.');
    this.cardPlace.before(this.empty);
    this.makeControls(find('.watch-controls'));
    onThemeChange(() => this.draw());
    document.addEventListener('visibilitychange', () => !document.hidden && this.ask());
    setInterval(() => this.showConnection(), 1000);
    this.ask();
  }

  makeControls(place) {
    const select = element('select', { 'aria-label': 'Axis' }, element('option', { value: 'step' }, 'by step'), element('option', { value: 'time' }, 'by time'));
    select.addEventListener('change', () => this.redraw(() => (this.curves.byTime = select.value === 'time')));
    const range = element('input', { type: 'range', min: '0', max: '0.98', step: '0.02', value: String(this.curves.smoothing) });
    range.addEventListener('input', () => this.redraw(() => (this.curves.smoothing = Number(range.value))));
    const log = element('input', { type: 'checkbox' });
    log.addEventListener('change', () => this.redraw(() => (this.curves.isLogarithmic = log.checked)));
    place.append(this.choice.root, select, element('label', { class: 'control' }, 'Smoothing of the loss', range), element('label', { class: 'control' }, log, 'Logarithmic loss'));
  }

  redraw(change) {
    change();
    this.draw();
  }

  // ---- asking ----

  /** Now, and from then on by itself. */
  ask() {
    clearTimeout(this.timer);
    if (this.isAsking) {
      this.asksAgain = true;
      return;
    }
    this.isAsking = true;
    this.askOnce().finally(() => {
      this.isAsking = false;
      const again = this.asksAgain;
      this.asksAgain = false;
      this.timer = setTimeout(() => this.ask(), again ? 0 : this.pause());
    });
  }

  pause() {
    if (this.failures > 0) return Math.min(POLL_LATEST_MS, 500 * 2 ** this.failures);
    if (document.hidden) return POLL_HIDDEN_MS;
    return [...this.runs.values()].some((run) => run.told?.state === 'running' || run.told?.state === 'missing') ? POLL_LIVE_MS : POLL_QUIET_MS;
  }

  async askOnce() {
    const question = new URLSearchParams();
    for (const key of this.choice.shown) {
      question.append('run', key);
      question.append('have', this.runs.get(key)?.have || '');
    }
    const abort = new AbortController();
    const patience = setTimeout(() => abort.abort(), 15000);
    try {
      const answer = await fetch(`api/state?${question}`, { signal: abort.signal });
      this.isUnwanted = answer.status === 401;
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      this.take(await answer.json());
      this.failures = 0;
      this.heardAt = Date.now();
    } catch {
      ++this.failures;
    } finally {
      clearTimeout(patience);
    }
    this.showConnection();
  }

  showConnection() {
    let text = 'asking …', isWell = true;
    if (this.isUnwanted) [text, isWell] = ['tutti watch was started anew with another token: open the address that it printed', false];
    else if (this.failures > 0) [text, isWell] = [`no answer from tutti watch${this.heardAt ? ` for ${secondsText((Date.now() - this.heardAt) / 1000)}` : ''}; trying again`, false];
    else if (this.heardAt) text = 'connected';
    if (this.connection.textContent !== text) this.connection.textContent = text;
    this.connection.classList.toggle('lost', !isWell);
  }

  // ---- showing ----

  take(state) {
    this.now = state.now;
    let isNew = this.choice.take(state.known);
    if (isNew) this.asksAgain = true; // for the runs that were just chosen
    this.empty.hidden = state.known.length > 0;
    for (const told of state.runs) {
      if (!this.choice.shown.has(told.key)) continue;
      let run = this.runs.get(told.key);
      if (!run) {
        run = this.addRun(told.key);
        isNew = true;
      }
      isNew = run.take(told) || isNew;
      this.askForTimeline(run);
    }
    for (const key of this.runs.keys()) if (!this.choice.shown.has(key)) isNew = this.removeRun(key);
    for (const run of this.runs.values()) {
      run.card.show(this.now);
      run.ranks.show(this.now);
    }
    const [first] = this.runs.values();
    document.title = this.runs.size === 1 && first.steps() > 0 ? `${Math.floor((100 * first.step()) / first.steps())} % ${first.key} – tutti watch` : 'tutti watch';
    if (isNew) this.draw();
    document.documentElement.dataset.ready = 'yes';
  }

  addRun(key) {
    const run = new RunStore(key);
    const taken = new Set([...this.runs.values()].map((other) => other.colour));
    run.colour = 0;
    while (taken.has(run.colour)) ++run.colour;
    run.card = new RunCard(run, () => this.draw());
    run.ranks = new RankTable(run);
    run.timeline = element('section', { class: 'watch-timeline', hidden: true });
    this.cardPlace.append(run.card.root);
    this.rankPlace.append(run.ranks.root);
    this.timelinePlace.append(run.timeline);
    this.runs.set(key, run);
    return run;
  }

  removeRun(key) {
    const run = this.runs.get(key);
    for (const part of [run.card.root, run.ranks.root, run.timeline]) part.remove();
    return this.runs.delete(key);
  }

  draw() {
    const runs = [...this.runs.values()].filter((run) => run.told);
    for (const run of runs) run.card.show(this.now);
    this.curves.show(runs.filter((run) => !run.isHidden));
  }

  async askForTimeline(run) {
    const version = run.told.timeline || '';
    if (version === run.timelineVersion) return;
    run.timelineVersion = version;
    run.timeline.hidden = version === '';
    if (version === '') return;
    const answer = await fetch(`api/timeline?${new URLSearchParams({ run: run.key })}`).catch(() => null);
    if (!answer) {
      run.timelineVersion = undefined; // asked for again
      return;
    }
    const place = element('div', { class: 'card timeline' });
    run.timeline.replaceChildren(element('h2', {}, `A step of ${run.key}`), place);
    if (!answer.ok) {
      place.append(element('p', { class: 'none' }, await answer.text()));
      return;
    }
    const data = await answer.json();
    place.append(element('h3', {}, data.title, ' ', element('span', { class: 'tag' }, 'measured')));
    new Timeline(place, data);
  }
}

const page = new WatchPage();
setUpTheme();

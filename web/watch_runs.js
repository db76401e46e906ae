// A card for each run: how far it is, how it does, what it is; and the menu that chooses runs.

const STATES = {
  running: 'running', finished: 'finished', failed: 'ended badly', missing: 'not there yet', idle: 'not running',
};

class RunCard {
  constructor(run, onToggle) {
    this.run = run;
    this.swatch = element('button', { type: 'button', class: 'run-swatch', 'aria-pressed': 'true', 'aria-label': `Curves of ${run.key}`, title: 'Show or hide its curves' });
    this.swatch.addEventListener('click', () => {
      run.isHidden = !run.isHidden;
      this.swatch.setAttribute('aria-pressed', String(!run.isHidden));
      onToggle();
    });
    this.state = element('span', { class: 'tag run-state' });
    this.bar = element('progress', { max: 1, value: 0, 'aria-label': `Progress of ${run.key}` });
    this.line = element('p', { class: 'run-line' });
    this.values = element('dl', { class: 'run-values' });
    this.facts = element('p', { class: 'run-facts' });
    this.notes = element('ul', { class: 'notes' });
    this.root = element('section', { class: 'card run-card', 'aria-label': `Run ${run.key}` },
      element('div', { class: 'run-head' }, this.swatch, element('h2', {}, run.key), this.state), this.bar, this.line, this.values, this.facts, this.notes);
  }

  show(now) {
    const { run } = this, told = run.told;
    this.swatch.style.backgroundColor = curveColour(run.colour);
    this.state.textContent = STATES[told.state] || told.state;
    this.state.className = `tag run-state run-${told.state}`;
    const step = run.step(), steps = run.steps();
    this.bar.hidden = steps === 0;
    this.bar.value = steps > 0 ? Math.min(1, step / steps) : 0;
    this.line.textContent = progressLine(run, now, step, steps);
    const values = valuesOf(run);
    this.values.replaceChildren(...values.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
    this.facts.textContent = factsOf(told).join(' · ');
    const notes = notesOf(told);
    this.notes.hidden = notes.length === 0;
    this.notes.replaceChildren(...notes.map((note) => element('li', { class: 'warning' }, note)));
  }
}

function progressLine(run, now, step, steps) {
  const { told } = run;
  if (told.state === 'missing') return 'It is shown as soon as it starts.';
  const parts = [];
  if (steps > 0) parts.push(`step ${numberText(step)} of ${numberText(steps)}`);
  else if (step > 0) parts.push(`step ${numberText(step)}`);
  const left = secondsLeft(run, step, steps);
  if (told.state === 'running') {
    const phase = told.ranks?.[0]?.phase;
    if (phase && phase !== 'training') parts.push(phase);
    if (left !== null) parts.push(`about ${secondsText(left)} left`);
  } else if (told.last_record) {
    parts.push(`last record ${secondsText(Math.max(0, now - told.last_record))} ago`);
  }
  if (told.summary) parts.push(`${secondsText(told.summary.train_s)} of training`);
  return parts.join(', ');
}

/** From the steps of the last records. */
function secondsLeft(run, step, steps) {
  const { step: at, time } = run.tables.progress;
  const last = at.length - 1, first = Math.max(0, last - 20);
  if (last <= first || steps <= step || at[last] <= at[first]) return null;
  return ((steps - step) * (time[last] - time[first])) / (at[last] - at[first]);
}

function valuesOf(run) {
  const values = [];
  const put = (name, value, text = numberText) => value !== null && value !== undefined && values.push([name, text(value)]);
  put('loss', run.lastOf('progress', 'loss_smoothed') ?? run.lastOf('progress', 'loss') ?? run.lastOf('epochs', 'train_loss'));
  for (const column of Object.keys(run.tables.epochs.columns))
    if (column.startsWith('test_') && column !== 'test_loss') put(column.replaceAll('_', ' '), run.lastOf('epochs', column));
  const rates = (run.told.ranks || []).map((rank) => rank.data_per_s).filter((rate) => rate > 0);
  put('data/s', run.told.summary?.samples_per_s_steady || (run.told.state === 'running' && rates[0]) || run.lastOf('progress', 'data_per_s'));
  put('exposed', run.lastOf('epochs', 'exposed_share'), percentText);
  return values;
}

function factsOf(told) {
  const config = told.config;
  if (!config) return told.ranks?.length ? [ranksText(told.ranks[0].ranks)] : [];
  const strategy = told.summary?.strategy_used || told.plan?.strategy;
  const facts = [config.model, config.data, ranksText(config.ranks)];
  if (config.strategy) facts.push(strategy && strategy !== config.strategy ? `${config.strategy} (${strategy})` : config.strategy);
  facts.push(told.summary?.transport || told.ranks?.[0]?.transport || config.transport, config.device, config.precision, config.optimizer);
  if (config.batch) facts.push(`batch ${config.batch}${config.accumulate > 1 ? ` × ${config.accumulate}` : ''}`);
  if (told.checkpoint) facts.push(`checkpoint of step ${told.checkpoint.step}`);
  if (told.resumes?.length) facts.push(`resumed at step ${told.resumes.map((resume) => resume.step).join(', ')}`);
  return facts.filter(Boolean);
}

const ranksText = (ranks) => `${ranks} rank${ranks === 1 ? '' : 's'}`;

function notesOf(told) {
  const notes = [...(told.warnings || [])];
  if (told.state === 'failed') notes.push(...endingsOf(told.ranks || []));
  if (told.last_epoch?.stragglers?.length) notes.push(`rank ${told.last_epoch.stragglers.join(', ')} takes longer than the others, who wait for it`);
  return notes;
}

const MOST_ENDINGS = 3;
const EXIT_PEER_FAILED = 75;

/** How ranks ended, the causes first: who exits with 75 says that another rank is the cause. */
function endingsOf(ranks) {
  const gone = ranks.filter((rank) => rank.condition === 'gone').map((rank) => `rank ${rank.rank} is gone without a word: it was killed, or its machine went down`);
  const said = ranks.filter((rank) => rank.error).sort((a, b) => (a.exit_code === EXIT_PEER_FAILED) - (b.exit_code === EXIT_PEER_FAILED))
    .map((rank) => `rank ${rank.rank} ended with exit code ${rank.exit_code}: ${rank.error.split('\n')[0]}`);
  return [...gone, ...said].slice(0, MOST_ENDINGS);
}

/** Which runs are shown: those suggested, less and more what was chosen here. The address keeps what was chosen. */
class RunChoice {
  constructor(onChange) {
    this.shown = new Set(), this.added = new Set(), this.dropped = new Set();
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const key of chosen.getAll('run')) this.added.add(key);
    this.isOwn = this.added.size > 0;
    this.onChange = onChange;
    this.list = element('div', { class: 'menu-list' });
    this.count = element('span', { class: 'menu-count' });
    this.root = element('details', { class: 'menu' }, element('summary', {}, 'Runs', this.count), this.list);
    this.root.addEventListener('keydown', (event) => event.key === 'Escape' && this.root.removeAttribute('open'));
    document.addEventListener('click', (event) => !this.root.contains(event.target) && this.root.removeAttribute('open'));
  }

  take(known) {
    const before = [...this.shown].join('\n');
    if (!this.isOwn) for (const { key, suggested } of known) if (suggested) this.shown.add(key);
    for (const key of this.added) this.shown.add(key);
    for (const key of this.dropped) this.shown.delete(key);
    this.showList(known);
    return [...this.shown].join('\n') !== before;
  }

  showList(known) {
    this.root.hidden = known.length < 2;
    this.count.textContent = String(this.shown.size || '');
    const names = known.map(({ key, live }) => `${key} ${live}`).join('\n') + [...this.shown].join('\n');
    if (names === this.names) return;
    this.names = names;
    this.list.replaceChildren(...known.map(({ key, live }) => {
      const box = element('input', { type: 'checkbox', value: key });
      box.checked = this.shown.has(key);
      box.addEventListener('change', () => this.choose(key, box.checked));
      return element('label', {}, box, ` ${key}`, live ? element('span', { class: 'tag run-running' }, 'running') : null);
    }));
  }

  choose(key, isShown) {
    (isShown ? this.added : this.dropped).add(key);
    (isShown ? this.dropped : this.added).delete(key);
    if (isShown) this.shown.add(key);
    else this.shown.delete(key);
    const chosen = new URLSearchParams([...this.shown].map((shown) => ['run', shown]));
    history.replaceState(null, '', `${location.pathname}#${chosen}`);
    this.onChange();
  }
}

// What each rank of the shown runs is doing, as `tutti status` says it.

const CONDITIONS = {
  running: '', stopped: 'stopped by a signal', ended: 'ended', gone: 'gone without a word', silent: 'no sign from its machine',
};

class RankTable {
  constructor(run) {
    this.run = run;
    this.title = element('h2', {});
    this.note = element('p', { class: 'caption' });
    this.head = element('tr', {});
    this.body = element('tbody', {});
    this.root = element('section', { class: 'rank-table' }, this.title,
      element('div', { class: 'card' }, this.note, element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, this.head), this.body))));
  }

  show(now) {
    const ranks = this.run.told.ranks || [];
    this.root.hidden = ranks.length === 0;
    if (ranks.length === 0) return;
    this.title.textContent = `Ranks of ${this.run.key}`;
    const heldUp = new Set(this.run.told.held_up_by || []);
    this.note.textContent = heldUp.size > 0 ? `The others wait for rank ${[...heldUp].join(', ')}.` : '';
    this.note.hidden = heldUp.size === 0;
    const hosts = new Set(ranks.map((rank) => rank.host));
    const shares = this.run.told.last_epoch?.ranks || [];
    const columns = [
      ['Rank', (rank) => (rank.is_server ? `server ${rank.rank - rank.ranks}` : String(rank.rank))],
      ...(hosts.size > 1 ? [['Machine', (rank) => rank.host]] : []),
      ['Does', (rank) => does(rank, now), 'does'],
      ['Step', (rank) => (rank.is_server ? '' : numberText(rank.step)), 'number'],
      ['Waits', (rank) => waits(rank)],
      ['Cores', (rank) => (rank.cores === undefined ? '–' : rank.cores.toFixed(2)), 'number'],
      ['Exposed', (rank) => percentText(shares[rank.rank]?.exposed_share ?? null), 'number'],
      ['Process', (rank) => String(rank.pid), 'number'],
    ];
    this.head.replaceChildren(...columns.map(([name, , kind]) => element('th', { scope: 'col', class: kind || null }, element('span', { class: 'plain-head' }, name))));
    this.body.replaceChildren(...ranks.map((rank) => element('tr', { class: heldUp.has(rank.rank) ? 'held-up' : `rank-${rank.condition}` },
      ...columns.map(([, text, kind]) => element('td', { class: kind || null }, text(rank))))));
  }
}

function does(rank, now) {
  const since = (time) => secondsText(Math.max(0, now - time));
  if (rank.condition === 'ended') return `ended with exit code ${rank.exit_code}, ${since(rank.updated)} ago`;
  if (rank.condition !== 'running') return `${CONDITIONS[rank.condition]} (${rank.phase}), for ${since(rank.updated)}`;
  return `${rank.phase} for ${since(rank.phase_since)}`;
}

function waits(rank) {
  const waited = rank.waits;
  if (!waited || rank.condition !== 'running') return '';
  const whom = waited.for_ranks.length > 0 ? ` for rank ${waited.for_ranks.join(', ')}` : '';
  return `${secondsText(waited.seconds)}${whom} in ${waited.transfer || waited.in}`;
}

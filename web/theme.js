// Light or dark: as the system says, or as the button in the top bar says. Printed pages are always light.

const themeListeners = [];

/** Calls `listener` whenever the colours of the page change. */
function onThemeChange(listener) {
  themeListeners.push(listener);
}

function setUpTheme() {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  // A page opened as a file may have no storage; the choice then lasts as long as the page.
  const remembered = { get: () => localStorage.getItem('tutti-theme'), set: (value) => localStorage.setItem('tutti-theme', value) };
  const attempt = (work) => {
    try {
      return work();
    } catch {
      return null;
    }
  };
  const saved = attempt(remembered.get);
  if (saved === 'light' || saved === 'dark') root.dataset.theme = saved;

  const button = element('button', { type: 'button', class: 'icon-button theme-button' });
  const show = () => {
    button.setAttribute('aria-label', isDark() ? 'Switch to light colours' : 'Switch to dark colours');
    button.title = button.getAttribute('aria-label');
    button.textContent = isDark() ? '☀' : '☾';
    for (const listener of themeListeners) listener();
  };
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    attempt(() => remembered.set(root.dataset.theme));
    show();
  });
  document.querySelector('.bar-inside').append(button);
  system.addEventListener('change', show);

  let before = '';
  addEventListener('beforeprint', () => {
    before = root.dataset.theme || '';
    root.dataset.theme = 'light';
    for (const listener of themeListeners) listener();
  });
  addEventListener('afterprint', () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    show();
  });
  show();
}

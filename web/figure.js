// Figures can be enlarged to the size of the window.

function setUpFigures() {
  const pictures = [...document.querySelectorAll('.picture')].filter((picture) => picture.querySelector('svg'));
  if (pictures.length === 0) return;
  const place = element('div', { class: 'picture' });
  const title = element('h3', { id: 'enlarged-title' });
  const close = element('button', { type: 'button', class: 'icon-button', 'aria-label': 'Close', onclick: () => dialog.close() }, '✕');
  const dialog = element('dialog', { class: 'enlarged', 'aria-labelledby': 'enlarged-title' }, element('div', { class: 'enlarged-bar' }, title, close), place);
  // A click beside what it holds closes it.
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  for (const picture of pictures) {
    const heading = picture.closest('figure').querySelector('h3');
    const button = element('button', { type: 'button', class: 'icon-button enlarge', 'aria-label': `Enlarge: ${heading.textContent}`, title: 'Enlarge' }, '⤢');
    const open = () => {
      title.textContent = heading.textContent;
      place.replaceChildren(picture.querySelector('svg').cloneNode(true));
      dialog.showModal();
    };
    button.addEventListener('click', open);
    picture.addEventListener('click', open);
    picture.before(button);
  }
}

/** On paper nothing stays folded. */
function setUpFolds() {
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details.fold:not([open])')];
    for (const fold of opened) fold.setAttribute('open', '');
  });
  addEventListener('afterprint', () => {
    for (const fold of opened) fold.removeAttribute('open');
  });
}

// Copying to the clipboard.

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages opened as files may not use the clipboard's own interface; selecting and copying works everywhere.
    const area = element('textarea', { class: 'off-screen', 'aria-hidden': 'true', readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** A button that copies what `text()` returns and says so. */
function copyButton(label, text) {
  const button = element('button', { type: 'button', class: 'button', 'aria-live': 'polite' }, label);
  button.addEventListener('click', async () => {
    button.textContent = (await copyText(text())) ? 'Copied' : 'Not copied';
    button.focus();
    setTimeout(() => (button.textContent = label), 1600);
  });
  return button;
}

function setUpCommand() {
  for (const place of document.querySelectorAll('.command'))
    place.append(copyButton('Copy', () => place.querySelector('code').textContent));
}

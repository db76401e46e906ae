// Small helpers. All files here share one scope, see cmake/embed_page.cmake.

/**
 * A new element. Texts become text, never markup.
 * @param {string} name
 * @param {Record<string, any>} [attributes] `class`, `on…` listeners, anything else as an attribute; null leaves it out
 * @param {...(Node|string|null)} children
 * @returns {any}
 */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') made.style.cssText = value; // an attribute is what a strict Content-Security-Policy forbids
    else made.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

/** Calls `work` once before the next frame, however often it was asked for. */
function oncePerFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

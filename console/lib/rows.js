// Rows that change in place: whoever points at one, presses it or has the focus in it keeps it.

/** Puts children in this order and takes others away. Those that are where they belong are not touched. @param {Element} parent @param {Element[]} children */
export function arrange(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

/**
 * Makes an element look like one that was just made for the same thing, touching only what differs. Listeners stay those
 * of the first, so they must not remember what may change. @param {Element} old @param {Element} made
 */
export function become(old, made) {
  for (const name of old.getAttributeNames()) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) {
    // A menu that was opened from it is still open.
    if (old.getAttribute(name) === value || name === "aria-expanded") continue;
    // The page's policy forbids styles as attributes, not styles by script.
    if (name === "style") /** @type {HTMLElement} */ (old).style.cssText = value;
    else old.setAttribute(name, value);
  }
  if (old instanceof HTMLInputElement) old.checked = /** @type {HTMLInputElement} */ (made).checked;
  const [were, are] = [[...old.childNodes], [...made.childNodes]];
  were.slice(are.length).forEach((node) => node.remove());
  are.forEach((node, place) => {
    const was = were[place];
    if (!was) old.append(node);
    else if (was.nodeName !== node.nodeName) was.replaceWith(node);
    else if (!(was instanceof Element && node instanceof Element)) was.textContent === node.textContent || (was.textContent = node.textContent);
    // Elements with a life of their own, such as times, fill themselves.
    else if (!was.localName.includes("-")) become(was, node);
    else if (was.getAttribute("title") !== node.getAttribute("title")) was.replaceWith(node);
  });
}

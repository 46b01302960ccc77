// A small box beside the pointer: the first line of data-tip in bold, the rest below it.
const {el, text} = opscope;
const box = el("div", "tip");
box.hidden = true;
box.setAttribute("aria-hidden", "true"); // everything it says is in the page as well

const place = (event) => {
  const gap = 14;
  const {offsetWidth: width, offsetHeight: height} = box;
  const left = Math.min(event.clientX + gap, innerWidth - width - 8);
  const below = event.clientY + gap;
  const top = below + height > innerHeight - 8 ? event.clientY - height - gap : below;
  box.style.transform = `translate(${Math.max(left, 8)}px, ${Math.max(top, 8)}px)`;
};

document.addEventListener("pointermove", (event) => {
  const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
  box.hidden = !target || event.pointerType === "touch";
  if (box.hidden) return;
  const [first, ...rest] = target.dataset.tip.split("\n");
  box.replaceChildren(text(el("b"), first), ...rest.map((line) => text(el("div"), line)));
  place(event);
});
document.addEventListener("pointerleave", () => (box.hidden = true));
document.addEventListener("scroll", () => (box.hidden = true), {capture: true, passive: true});
document.addEventListener("DOMContentLoaded", () => document.body.append(box));

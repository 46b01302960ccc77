// The last script: puts every section in its place.
const root = document.documentElement;

const themes = () => {
  const button = document.getElementById("theme");
  const tell = () => {
    button.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("opscope-theme", root.dataset.theme);
    } catch {
      // Then it is forgotten when the page is closed.
    }
    opscope.emit("theme");
  });
  opscope.on("theme", tell);
  tell();
};

// Paper is light. Styles see to that by themselves; canvases have to be drawn again.
const printing = () => {
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    opscope.emit("theme");
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = before || root.dataset.theme;
    opscope.emit("theme");
  });
};

// Which section the reader is in, for the links at the top.
const sections = () => {
  const links = new Map();
  for (const link of document.querySelectorAll("header nav a")) {
    links.set(link.hash.slice(1), link);
  }
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      links.get(entry.target.id).classList.toggle("is-here", entry.isIntersecting);
    }
  }, {rootMargin: "-35% 0px -60% 0px"});
  for (const id of links.keys()) watch.observe(document.getElementById(id));
};

const mount = (id, piece) => {
  const section = document.getElementById(id);
  if (section && piece) piece.mount(section);
};

document.addEventListener("DOMContentLoaded", () => {
  themes();
  printing();
  mount("whole", opscope.whole);
  mount("operators", opscope.table);
  mount("paths", opscope.icicle);
  mount("timeline", opscope.timeline);
  sections();
});

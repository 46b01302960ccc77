// In the head, before anything is painted: which theme, by choice or as the system has it.
(() => {
  "use strict";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("opscope-theme");
    } catch {
      return null; // a browser that keeps nothing for files
    }
  };
  const apply = () => {
    root.dataset.theme = chosen() || (system.matches ? "dark" : "light");
  };
  system.addEventListener("change", () => {
    apply();
    document.dispatchEvent(new Event("opscope-theme"));
  });
  apply();
})();

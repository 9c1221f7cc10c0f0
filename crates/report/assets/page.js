"use strict";
// What every page does: keep a list of what went wrong, for the tests, and switch between light and
// dark. A `theme` event on the document tells that the colours have changed.
(() => {
  const root = document.documentElement;
  const errors = [];
  const report = () => { root.dataset.errors = JSON.stringify(errors); };
  addEventListener("error", (event) => { errors.push(event.message); report(); });
  addEventListener("unhandledrejection", (event) => { errors.push(String(event.reason)); report(); });
  report();

  const changed = () => document.dispatchEvent(new Event("theme"));
  const setTheme = (theme) => { root.style.colorScheme = theme; changed(); };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.style.colorScheme || (dark.matches ? "dark" : "light")) === "dark";
  document.getElementById("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  dark.addEventListener("change", changed);
  let screenTheme = "";
  addEventListener("beforeprint", () => { screenTheme = root.style.colorScheme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(screenTheme));
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") root.style.colorScheme = asked;
})();

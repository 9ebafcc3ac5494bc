// Light or dark, as it was last chosen; before anything is painted.
try {
  const chosen = localStorage.getItem("memgrove-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* Without storage the system decides. */ }

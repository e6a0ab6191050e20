// On every page: times go on by themselves.
"use strict";

(() => {
  const two = (whole, large, rest, small) => rest ? `${whole} ${large} ${rest} ${small}` : `${whole} ${large}`;
  function duration(s) {
    if (s < 10) return `${Math.max(s, 0).toFixed(1)} s`;
    if (s < 60) return `${Math.round(s)} s`;
    if (s < 600) return two(Math.floor(s / 60), "m", Math.floor(s % 60), "s");
    if (s < 3600) return `${Math.floor(s / 60)} m`;
    if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor(s % 3600 / 60), "m");
    return two(Math.floor(s / 86400), "d", Math.floor(s % 86400 / 3600), "h");
  }
  setInterval(() => {
    if (document.hidden) return;
    document.querySelectorAll("time[data-moment]").forEach((element) => {
      const s = (Date.now() - Date.parse(element.dateTime)) / 1000;
      const told = s >= 0 ? `${duration(s)} ago` : `in ${duration(-s)}`;
      if (element.textContent !== told) element.textContent = told;
    });
  }, 1000);
})();

// The key "/" goes to the field that finds a job.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("[data-find]");
  if (event.key !== "/" || !field || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  field.focus();
});

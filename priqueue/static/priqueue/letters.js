// Dead letters and jobs: copy, select, count on, and drive a run.
"use strict";

(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  function copying() {
    if (!navigator.clipboard) return;
    for (const button of all("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
        await pause(2000);
        button.textContent = "Copy";
      });
    }
  }

  function selecting() {
    const form = one("[data-letters]"), every = one("[data-select-all]");
    if (!form || !every) return;
    const boxes = all('[data-letters] input[name="id"]');
    function tell() {
      const number = boxes.filter((box) => box.checked).length;
      one("[data-selected]").textContent = `${number} of ${boxes.length} selected`;
      every.checked = number === boxes.length;
      every.indeterminate = number > 0 && number < boxes.length;
      for (const button of all("[data-needs-selection]")) button.disabled = number === 0;
      const hint = one("[data-all-selected]");
      if (hint) hint.hidden = number < boxes.length;
    }
    every.addEventListener("change", () => { for (const box of boxes) box.checked = every.checked; tell(); });
    for (const box of boxes) box.addEventListener("change", tell);
    tell();
  }

  // The number is counted in steps, each an address of its own; the last of them is the page with the question.
  async function counting() {
    const link = one("[data-count-on]");
    if (!link) return;
    let next = link.href, failures = 0;
    while (true) {
      try {
        const answer = await fetch(next, {headers: {Accept: "application/json"}, credentials: "same-origin"});
        const told = answer.ok && answer.headers.get("Content-Type").startsWith("application/json") ? await answer.json() : null;
        if (!told) { window.location.replace(next); return; }
        one("[data-counted]").textContent = told.number;
        next = new URL(told.next, window.location.href).href;
        link.href = next;
        failures = 0;
      } catch {
        failures += 1;
        await pause(Math.min(30000, 500 * 2 ** failures));
      }
    }
  }

  // A run is done by whoever has its page open: one step after the other, never two at once.
  async function running() {
    const box = one('[data-run="going"]'), form = one("[data-run-form]");
    if (!box) return;
    const text = one("[data-run-text]"), bar = one("[data-run-progress]");
    one("[data-run-work]").hidden = true;
    let stopping = false, failures = 0, wait = Number(box.dataset.wait);
    form.addEventListener("submit", () => { stopping = true; });
    while (!stopping) {
      await pause(Math.max(20, wait));
      if (stopping) return;
      try {
        const body = new FormData(form);
        body.set("do", "work");
        const answer = await fetch(window.location.href, {
          method: "POST", body, headers: {Accept: "application/json"}, credentials: "same-origin",
        });
        if (!answer.ok) throw new Error(String(answer.status));
        const told = await answer.json();
        text.textContent = told.text;
        bar.value = told.done;
        failures = 0;
        wait = told.wait_ms;
        if (told.state !== "going") { window.location.reload(); return; }
      } catch (error) {
        failures += 1;
        text.textContent = `No answer (${error.message}), trying again. What was done, stays done.`;
        wait = Math.min(30000, 500 * 2 ** failures);
      }
    }
  }

  // j goes to the next older letter, k to the next newer one: in the list from row to row, on a letter's page to another.
  function stepping() {
    const rows = all("[data-letter]");
    // Back from a letter: the address says which row is next.
    rows.find((row) => row.id && `#${row.id}` === window.location.hash)?.focus();
    document.addEventListener("keydown", (event) => {
      const step = {j: 1, k: -1}[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
      const beside = one(step > 0 ? "a[data-older]" : "a[data-newer]");
      if (beside) { event.preventDefault(); beside.click(); return; }
      if (!rows.length) return;
      event.preventDefault();
      const at = rows.findIndex((row) => row.closest("tr").contains(document.activeElement));
      rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))].focus();
    });
  }

  copying();
  selecting();
  stepping();
  counting();
  running();
})();

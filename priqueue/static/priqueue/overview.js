// Keeps the overview up to date: one document every two seconds, whose parts are put into the page where they differ.
"use strict";

(() => {
  const EVERY_MS = 2000, SLOWEST_MS = 30000, GIVE_UP_MS = 5000, STALE_MS = 6000;
  const clock = (at) => at.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short"});
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const board = document.querySelector("[data-board]"), fresh = document.querySelector("[data-fresh]");
  const live = document.querySelector("[data-live]"), config = read("pq-chart");

  document.querySelectorAll(".pq-js").forEach((element) => { element.hidden = false; });
  const charts = priqueue.charts(config, read("pq-points"));

  let waitMs = EVERY_MS, timer = null, busy = false, paused = false, tag = "", away = board.classList.contains("pq-stale");
  let asOf = fresh.querySelector("[data-as-of]"), heardMs = performance.now(), known = "";

  // Makes one element like another, in place: what has focus, is selected or is open stays so.
  function patch(old, made) {
    if (old.nodeType !== made.nodeType || old.nodeName !== made.nodeName) return old.replaceWith(made);
    if (old.nodeType !== Node.ELEMENT_NODE) { if (old.data !== made.data) old.data = made.data; return undefined; }
    for (const {name, value} of [...made.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const {name} of [...old.attributes]) if (!made.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    return patchChildren(old, made);
  }

  function patchChildren(old, made) {
    const key = (node) => node.dataset ? node.dataset.key : undefined;
    const byKey = new Map([...old.children].filter(key).map((child) => [key(child), child]));
    const wanted = [...made.childNodes];
    wanted.forEach((child, at) => {
      const here = old.childNodes[at], same = key(child) ? byKey.get(key(child)) : here;
      if (same && same !== here) old.insertBefore(same, here || null);
      const found = same || here;
      if (!found) old.append(child);
      else if (!same) old.insertBefore(child, here);
      else patch(found, child);
    });
    while (old.childNodes.length > wanted.length) old.lastChild.remove();
  }

  function put(parts) {
    for (const [name, html] of Object.entries(parts)) {
      const old = document.querySelector(`[data-part="${name}"]`);
      const made = new DOMParser().parseFromString(html, "text/html").body;
      if (!old) continue;
      const inner = made.querySelector(`[data-part="${name}"]`);
      if (inner) patch(old, inner); else patchChildren(old, made);
    }
    document.querySelectorAll("[data-of]").forEach((figure) => {
      patchChildren(document.querySelector(`[data-figure="${figure.dataset.of}"]`), figure.cloneNode(true));
    });
    const status = document.querySelector("[data-status]"), level = document.querySelector("[data-level]");
    // Spoken only when the worst is something else than before, not when a number in it has moved.
    const now = `${level.dataset.level} ${level.dataset.about}`;
    if (known && now !== known) live.textContent = status.textContent.trim();
    known = now;
  }

  function setAway(isAway) {
    away = isAway;
    board.classList.toggle("pq-stale", isAway);
    board.querySelectorAll("a.pq-button").forEach((link) => {
      link.toggleAttribute("inert", isAway);
      if (isAway) { link.setAttribute("aria-disabled", "true"); link.title = "Redis does not answer"; }
      else { link.removeAttribute("aria-disabled"); link.removeAttribute("title"); }
    });
  }

  async function poll() {
    if (busy || paused || document.hidden) return;
    busy = true;
    try {
      const headers = tag ? {"If-None-Match": tag} : {};
      const answer = await fetch(`${config.data}?since=${charts.last}`, {headers, cache: "no-store", signal: AbortSignal.timeout(GIVE_UP_MS)});
      if (answer.status === 503) {
        put((await answer.json()).parts);
        setAway(true);
        tag = "";
        throw new Error("away");
      }
      if (!answer.ok && answer.status !== 304) throw new Error(String(answer.status));
      if (answer.redirected) throw new Error("logged out");
      if (answer.status !== 304) {
        const body = await answer.json();
        put(body.parts);
        charts.add(body.points);
        tag = answer.headers.get("ETag") || "";
      }
      setAway(false);
      document.querySelectorAll(".pq > .errornote").forEach((note) => note.remove());
      heardMs = performance.now();
      say(new Date(Number(answer.headers.get("Priqueue-As-Of"))));
      waitMs = EVERY_MS;
    } catch (error) {
      waitMs = away ? EVERY_MS * 2 : Math.min(waitMs * 2, SLOWEST_MS);
    } finally {
      busy = false;
      again();
    }
  }

  function again() {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(poll, waitMs);
  }

  function say(at) {
    if (!asOf) { asOf = document.createElement("span"); fresh.prepend(asOf); }
    asOf.className = "";
    asOf.dataset.asOf = at.toISOString();
    asOf.textContent = `as of ${clock(at)}`;
  }

  // In the browser alone: it has to turn by itself when no answer comes.
  setInterval(() => {
    const silentMs = performance.now() - heardMs;
    if (!asOf || paused || document.hidden || silentMs < STALE_MS) return;
    asOf.className = "pq-warn";
    asOf.textContent = `stale ${Math.round(silentMs / 1000)} s, as of ${clock(new Date(asOf.dataset.asOf))}`;
    board.classList.add("pq-stale");
  }, 1000);

  fresh.querySelector("[data-pause]").addEventListener("click", ({currentTarget: button}) => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Go on" : "Pause";
    if (paused) clearTimeout(timer); else poll();
  });
  document.querySelectorAll("[data-range]").forEach((button) => button.addEventListener("click", () => {
    document.querySelectorAll("[data-range]").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    charts.range(Number(button.dataset.range));
  }));
  document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else poll(); });
  if (asOf) say(new Date(asOf.dataset.asOf)); // in the zone of whoever looks, as the charts are
  again();
})();

// Live pages without a framework. The server says that something changed; this fetches the same page again and carries the
// difference over. Everything works without it. It never makes an element out of text: markup comes from our own origin only.
"use strict";
(() => {
  const policy = window.trustedTypes ? trustedTypes.createPolicy("surefoot", { createHTML: (html) => html }) : { createHTML: (html) => html };
  const root = document.documentElement, find = (css, at = document) => at.querySelector(css), all = (css, at = document) => [...at.querySelectorAll(css)];
  const base = document.body.dataset.base || "", live = find(".live"), said = find("#said");
  let waiting = +document.body.dataset.waiting || 0, busy = false, again = false, source = null, off = 0;

  // --- the same page again -------------------------------------------------------------------------
  const kept = (node) => node.nodeType === 1 && node.matches("details[open].menu");
  const keyed = (node) => node.nodeType === 1 && node.id;
  function alike(a, b) { return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (keyed(a) || "") === (keyed(b) || ""); }
  function carry(old, now) {
    if (kept(old) || old.isEqualNode(now)) return;
    if (old.nodeType !== 1) { if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue; return; }
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    for (const { name, value } of [...now.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const named = new Map(all(":scope > [id]", old).map((node) => [node.id, node]));
    let at = old.firstChild;
    for (const next of [...now.childNodes]) {
      const known = keyed(next) ? named.get(next.id) : at && alike(at, next) ? at : null;
      if (!known) { old.insertBefore(document.importNode(next, true), at); continue; }
      if (known !== at) old.insertBefore(known, at); else at = at.nextSibling;
      carry(known, next);
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  }
  async function refresh() {
    if (document.hidden) { again = true; return; }
    if (busy) { again = true; return; }
    busy = true; again = false;
    try {
      const answer = await fetch(document.body.dataset.here, { headers: { "X-Live": "1" }, credentials: "same-origin", redirect: "manual" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
      const focus = document.activeElement && document.activeElement.id;
      for (const part of all("[data-live]")) {
        const now = page.getElementById(part.id), form = find("form[data-frozen]", part);
        if (now && !form) carry(part, now);
        else if (form) { const twin = now && find(`#${form.id}`, now); if (!twin || twin.dataset.seen !== form.dataset.seen) form.classList.add("is-stale"); }
      }
      document.title = page.title;
      if (focus && document.activeElement === document.body) { const back = document.getElementById(focus); if (back) back.focus({ preventScroll: true }); }
      tell(+page.body.dataset.waiting || 0); paths();
    } catch { stale(); } finally { busy = false; if (again && !document.hidden) setTimeout(refresh, 150); }
  }
  function tell(now) {
    if (now > waiting) {
      const more = now - waiting;
      said.textContent = `${more} new in the inbox`;
      if (window.Notification && Notification.permission === "granted" && localStorage.getItem("tell")) new Notification("surefoot", { body: `${more} new to decide`, tag: "surefoot" });
    }
    waiting = now;
  }

  // --- live ----------------------------------------------------------------------------------------
  function stale() { if (!live || live.hasAttribute("data-off")) return; live.setAttribute("data-off", ""); find("span", live).textContent = `not live since ${new Date().toTimeString().slice(0, 5)}`; }
  function fresh() { clearTimeout(off); off = 0; if (live && live.hasAttribute("data-off")) { live.removeAttribute("data-off"); find("span", live).textContent = "live"; refresh(); } }
  function listen() {
    if (source || document.hidden || !document.body.dataset.events) return;
    source = new EventSource(document.body.dataset.events);
    source.onopen = fresh;
    source.addEventListener("changed", () => { fresh(); refresh(); });
    source.onerror = () => { if (!off) off = setTimeout(stale, 5000); if (source.readyState === 2) { source = null; setTimeout(listen, 3000); } };
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { if (source) source.close(); source = null; } else { listen(); if (again) refresh(); }
  });

  // --- forms: frozen from the first change; a double click is one entry --------------------------------
  document.addEventListener("input", (event) => { const form = event.target.closest("form[data-seen]"); if (form) form.setAttribute("data-frozen", ""); if (event.target.matches("[data-scrub]")) find("output", event.target.form).textContent = event.target.value; });
  document.addEventListener("change", (event) => { if (event.target.matches("[data-go], [data-scrub]")) event.target.form.requestSubmit(); });
  document.addEventListener("submit", (event) => { if (event.target.dataset.sent) event.preventDefault(); else if (event.target.method === "post") event.target.dataset.sent = "1"; });
  addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => delete form.dataset.sent));
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) { await navigator.clipboard.writeText(find("code", button.parentNode).dataset.text); button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); }
    if (event.target.closest("[data-tell]") && window.Notification && await Notification.requestPermission() === "granted") { localStorage.setItem("tell", "1"); event.target.closest("[data-tell]").hidden = true; }
    for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  // --- keys: a letter opens, it never records ---------------------------------------------------------
  let going = false;
  const press = (key) => { const there = find(`[data-key="${key}"]:not([disabled]):not([aria-disabled])`); if (there) { if (there.matches("input, textarea, select")) there.focus(); else there.click(); } return !!there; };
  function move(step) {
    const items = all("[data-item]"); if (!items.length) return false;
    const here = items.findIndex((one) => one.matches("[aria-current]"));
    const next = items[Math.min(Math.max(here + step, 0), items.length - 1)];
    if (next && next !== items[here]) next.click(); return true;
  }
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=radio]):not([type=range]), textarea, select"), dialog = find("[role=dialog]");
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) { const form = event.target.closest("form[data-seen]") || find("form[data-seen]"); const record = form && find("[data-record]", form); if (record) { event.preventDefault(); form.requestSubmit(record); } return; }
    if (event.key === "Escape") { if (field && !dialog) field.blur(); else press("Escape"); return; }
    if (event.key === "Tab" && dialog) { const stops = all("a[href], button:not([disabled]), input:not([type=hidden]), select, textarea, summary", dialog).filter((one) => one.offsetParent); const edge = event.shiftKey ? stops[0] : stops[stops.length - 1]; if (document.activeElement === edge || !dialog.contains(document.activeElement)) { event.preventDefault(); (event.shiftKey ? stops[stops.length - 1] : stops[0]).focus(); } return; }
    if (field || event.metaKey || event.ctrlKey || event.altKey || localStorage.getItem("keys") === "off") return;
    let done = true;
    if (going) { going = false; done = press(`g${event.key}`); }
    else if (event.key === "g") going = setTimeout(() => { going = false; }, 1200);
    else if (!dialog && (event.key === "j" || event.key === "k")) done = move(event.key === "j" ? 1 : -1);
    else done = /^[a-z?/[\]]$/.test(event.key) && !(dialog && event.key !== "?") && press(event.key);
    if (done) event.preventDefault();
  });

  // --- what only a script can do ----------------------------------------------------------------------
  function paths() { for (const one of all("time[datetime]")) { const at = new Date(one.dateTime); if (!isNaN(at)) one.title = `${one.dateTime.replace("T", " ").replace("Z", " UTC")}\n${at.toLocaleString()}`; } }
  all("[data-script]").forEach((one) => { one.hidden = false; });
  all("[data-plain]").forEach((one) => { one.hidden = true; });
  const key = find("[data-keys]"); if (key) { key.checked = localStorage.getItem("keys") !== "off"; key.addEventListener("change", () => localStorage.setItem("keys", key.checked ? "on" : "off")); }
  if (window.Notification && Notification.permission === "default") all("[data-tell]").forEach((one) => { one.hidden = false; });
  const dialog = find("[role=dialog]"); if (dialog) (find("[autofocus]", dialog) || find("input:not([type=hidden]), textarea, select, button, a", dialog)).focus();
  const chosen = find("[data-item][aria-current]"); if (chosen) chosen.scrollIntoView({ block: "nearest" });
  paths(); listen();
  // A process that dies writes nothing: nobody would say so. What waits is looked at again by itself, in the tab that is seen.
  if ((document.body.dataset.events || "").includes("inbox")) setInterval(() => { if (!document.hidden && source) refresh(); }, 5000);
})();

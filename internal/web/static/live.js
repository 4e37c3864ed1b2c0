// This script updates parts of the page, and shows that the connection is lost. A stream of the
// server reports changes; without it, the parts poll. Parts are morphed, so focus, scroll
// positions and open details stay.
(function () {
  "use strict";

  // ---- announcements for screen readers ----
  function announce() {
    var from = document.querySelector("[data-announce]");
    var to = document.getElementById("announcer");
    if (from && to && to.textContent !== from.dataset.announce) to.textContent = from.dataset.announce;
  }

  // ---- the connection ----
  var isLost = false;

  function lost(is) {
    var note = document.getElementById("connection");
    if (!note || is === isLost) return;
    if (is) busy(false); // restores the text
    isLost = is;
    note.hidden = !is;
    document.body.classList.toggle("lost", is);
    document.querySelectorAll("form button").forEach(function (b) {
      if (is) b.setAttribute("aria-disabled", "true");
      else b.removeAttribute("aria-disabled");
    });
    if (!is) refresh("run events");
  }

  var behind = Date.now() - Date.parse(document.documentElement.dataset.now); // use the clock of the server
  var updatedAt = now();
  var text = "";

  function now() { return new Date(Date.now() - behind).toISOString(); }

  // busy shows that the server does not update the parts now. Actions stay possible.
  function busy(is) {
    var note = document.getElementById("connection");
    if (!note || isLost) return;
    if (text === "") text = note.textContent;
    note.textContent = text;
    if (is) {
      var time = document.createElement("span"); // app.js shows it in local time on request
      time.dataset.at = updatedAt;
      time.dataset.form = "second";
      time.textContent = updatedAt.slice(11, 19);
      note.replaceChildren("The server is busy. The figures are those of ", time, ".");
      document.dispatchEvent(new CustomEvent("assay:updated"));
    }
    note.hidden = !is;
  }

  document.addEventListener("submit", function (e) {
    if (!isLost) return;
    e.preventDefault(); // the action would be lost, or leave the page
    e.stopImmediatePropagation();
  }, true);
  document.addEventListener("assay:lost", function () { lost(true); });

  // ---- the stream ----
  var stream = null;
  var streaming = false;
  var heard = 0;

  // refresh requests the parts that show any of these subjects.
  function refresh(subjects) {
    if (!window.htmx) return;
    subjects.split(" ").forEach(function (subject) {
      document.querySelectorAll('[data-stream~="' + subject + '"]').forEach(function (part) { htmx.trigger(part, "stream"); });
    });
  }

  function hear() {
    heard = Date.now();
    streaming = true;
    lost(false);
  }

  function connect() {
    stream = new EventSource("/stream");
    stream.addEventListener("hello", hear);
    stream.addEventListener("heartbeat", hear);
    stream.addEventListener("changed", function (e) {
      hear();
      refresh(e.data);
    });
    stream.onerror = function () {
      streaming = false;
      stream.close();
      probe();
    };
  }

  // probe finds out why the stream ended: the server is gone, the session has ended, or there
  // are too many streams.
  function probe() {
    fetch("/health", { headers: { "HX-Request": "true" }, cache: "no-store" }).then(function (response) {
      if (response.status === 401) return location.reload();
      lost(response.status >= 500 && response.status !== 503);
      setTimeout(connect, 5000);
    }).catch(function () {
      lost(true);
      setTimeout(probe, 2000);
    });
  }

  if (window.EventSource && document.body.classList.contains("framed")) {
    connect();
    setInterval(function () {
      if (!streaming || Date.now() - heard < 40000) return;
      streaming = false; // the connection is open but silent
      stream.close();
      probe();
    }, 10000);
    addEventListener("pagehide", function () { stream.close(); });
    addEventListener("pageshow", function (e) { if (e.persisted) connect(); });
  }

  // ---- updated parts ----
  var pressed = false; // a button or link is pressed
  addEventListener("pointerdown", function () { pressed = true; }, true);
  addEventListener("pointerup", function () { pressed = false; }, true);
  addEventListener("pointercancel", function () { pressed = false; }, true);

  function selecting(part) {
    var selection = getSelection();
    return !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  // changed reports whether the user changed what the attribute sets: opened or closed details,
  // chose an item or an option, or typed a text. An update keeps it.
  function changed(name, node) {
    if (name === "open") return node.tagName === "DETAILS";
    if (name === "checked") return node.checked !== node.defaultChecked;
    if (name === "selected") return node.selected !== node.defaultSelected;
    return name === "value" && "defaultValue" in node && node.value !== node.defaultValue;
  }

  if (window.Idiomorph) {
    Idiomorph.defaults.callbacks.beforeNodeRemoved = function (node) {
      return !(node.classList && node.classList.contains("uplot")); // live-chart.js drew it
    };
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = function (name, node) { return !changed(name, node); };
  }

  document.addEventListener("htmx:beforeRequest", function (e) {
    var polled = !e.detail.requestConfig.triggeringEvent;
    if (document.hidden || polled && streaming && e.detail.elt.matches('[data-stream~="run"]')) e.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", function (e) {
    if (pressed || selecting(e.detail.target)) e.detail.shouldSwap = false; // keep the click or selection
  });
  document.addEventListener("htmx:afterSwap", function () {
    document.dispatchEvent(new CustomEvent("assay:updated"));
    announce();
    lost(false);
    updatedAt = now();
    busy(false);
  });
  document.addEventListener("htmx:sendError", function () { lost(true); });
  document.addEventListener("htmx:responseError", function (e) { if (e.detail.xhr.status >= 500) busy(true); });
  document.addEventListener("visibilitychange", function () { if (!document.hidden) refresh("run events"); });

  announce();
})();

// This script updates relative times, announces progress to screen readers, and
// protects clicks and selections while parts of the page are replaced.
(function () {
  "use strict";

  // ---- relative times, in the format of the server (format.go) ----
  function coarse(s) {
    if (s < 60) return Math.floor(s) + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 172800) return Math.floor(s / 3600) + " h";
    return Math.floor(s / 86400) + " d";
  }

  function relative(age) {
    if (age <= -1) return "in " + coarse(-age);
    return age < 5 ? "just now" : coarse(age) + " ago";
  }

  // Use the clock of the server.
  var behind = Date.now() - Date.parse(document.documentElement.dataset.now);

  function tick() {
    var now = Date.now() - behind;
    document.querySelectorAll("time[datetime]").forEach(function (t) {
      var text = relative((now - Date.parse(t.dateTime)) / 1000);
      if (t.textContent !== text) t.textContent = text;
    });
  }
  setInterval(tick, 10000);

  // ---- announcements for screen readers ----
  function announce() {
    var from = document.querySelector("[data-announce]");
    var to = document.getElementById("announcer");
    if (from && to && to.textContent !== from.dataset.announce) to.textContent = from.dataset.announce;
  }

  // ---- replaced parts ----
  var pressed = false; // a button or link is pressed
  addEventListener("pointerdown", function () { pressed = true; }, true);
  addEventListener("pointerup", function () { pressed = false; }, true);
  addEventListener("pointercancel", function () { pressed = false; }, true);

  function selecting(part) {
    var selection = getSelection();
    return !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  var kept = { open: [], scroll: {} };

  function keep(part) {
    kept.open = Array.from(part.querySelectorAll("details[open][id]"), function (d) { return d.id; });
    kept.scroll = {};
    part.querySelectorAll(".scroll").forEach(function (box, i) {
      kept.scroll[i] = [box.scrollLeft, box.scrollTop];
    });
  }

  function restore(id) {
    var part = document.getElementById(id);
    if (!part) return;
    kept.open.forEach(function (d) {
      var fold = document.getElementById(d);
      if (fold) fold.open = true;
    });
    part.querySelectorAll(".scroll").forEach(function (box, i) {
      if (!kept.scroll[i]) return;
      box.scrollLeft = kept.scroll[i][0];
      box.scrollTop = kept.scroll[i][1];
    });
  }

  function lost(isLost) {
    var note = document.getElementById("connection");
    if (note) note.hidden = !isLost;
  }

  document.addEventListener("htmx:beforeRequest", function (e) {
    if (document.hidden) e.preventDefault(); // the page is not visible
  });
  document.addEventListener("htmx:beforeSwap", function (e) {
    if (pressed || selecting(e.detail.target)) {
      e.detail.shouldSwap = false; // keep the click or selection
      return;
    }
    keep(e.detail.target);
  });
  document.addEventListener("htmx:afterSwap", function (e) {
    restore(e.detail.target.id);
    announce();
    lost(false);
  });
  document.addEventListener("htmx:sendError", function () { lost(true); });
  document.addEventListener("htmx:responseError", function () { lost(true); });

  announce();
})();

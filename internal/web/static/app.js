// This script updates relative times and shows exact ones in UTC or local time.
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
      var age = (now - Date.parse(t.dateTime)) / 1000;
      var text = "for" in t.dataset ? coarse(Math.max(0, age)) : relative(age);
      if (t.textContent !== text) t.textContent = text;
    });
  }
  setInterval(tick, 10000);

  // ---- exact times: UTC, or local if the cookie says so ----
  var isLocal = /(^|; )assay_times=local(;|$)/.test(document.cookie);
  var forms = {
    exact: { dateStyle: "medium", timeStyle: "long" },
    second: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
    minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    day: { day: "numeric", month: "short" },
    month: { month: "short", year: "numeric" },
  };

  function inZone(iso, form) {
    return new Date(iso).toLocaleString("en-GB", forms[form]).replace("Sept", "Sep"); // as the server writes it
  }

  function localize() {
    if (!isLocal) return;
    document.querySelectorAll("time[datetime]").forEach(function (t) { t.title = ("for" in t.dataset ? "Since " : "") + inZone(t.dateTime, "exact"); });
    document.querySelectorAll("[data-at]").forEach(function (t) { t.textContent = inZone(t.dataset.at, t.dataset.form); });
    document.querySelectorAll("[data-moment]").forEach(function (t) { // a title that contains the time
      var time = inZone(t.dataset.moment, "day") + " " + inZone(t.dataset.moment, "minute");
      var said = (t.getAttribute("aria-label") || t.textContent).replace(/\d+ [A-Z][a-z]{2} \d\d:\d\d/, time);
      if (t.hasAttribute("aria-label")) t.setAttribute("aria-label", said);
      else t.textContent = said;
    });
  }

  var zone = document.getElementById("zone");
  if (zone) {
    zone.hidden = false;
    zone.textContent = isLocal ? "Times: local" : "Times: UTC";
    zone.addEventListener("click", function () {
      document.cookie = "assay_times=" + (isLocal ? "utc" : "local") + "; path=/; max-age=31536000; samesite=strict";
      location.reload();
    });
  }
  localize();

  document.addEventListener("assay:updated", localize);
})();

// This script handles keys: / focuses the search, g and a letter open a section, and ? lists
// them. It ignores keys while the user types.
(function () {
  "use strict";

  var waiting = 0; // time of the key g

  function typing(target) {
    return target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox], [type=radio])");
  }

  function help() {
    if (document.querySelector("dialog[open]")) return;
    var dialog = document.createElement("dialog");
    dialog.className = "keys-help";
    dialog.setAttribute("aria-labelledby", "keys-title");
    var panel = document.createElement("section");
    panel.className = "panel";
    panel.innerHTML = '<h2 id="keys-title">Keys</h2><dl class="pairs"></dl><form method="dialog"><button>Close</button></form>';
    var rows = [["/", "Search"], ["?", "This list"]];
    document.querySelectorAll(".rail [data-key]").forEach(function (a) { rows.push(["g " + a.dataset.key, a.textContent]); });
    rows.forEach(function (row) {
      var line = document.createElement("div");
      var key = document.createElement("dt");
      var text = document.createElement("dd");
      key.append(document.createElement("kbd"));
      key.firstChild.textContent = row[0];
      text.textContent = row[1];
      line.append(key, text);
      panel.querySelector("dl").append(line);
    });
    dialog.append(panel);
    document.body.append(dialog);
    dialog.addEventListener("close", function () { dialog.remove(); });
    dialog.showModal();
  }

  document.addEventListener("keydown", function (e) {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return;
    var after = Date.now() - waiting < 1500;
    waiting = 0;
    if (after) {
      var link = document.querySelector('.rail [data-key="' + CSS.escape(e.key) + '"]');
      if (link) {
        e.preventDefault();
        location.assign(link.href);
        return;
      }
    }
    if (e.key === "g") waiting = Date.now();
    else if (e.key === "?") help();
    else if (e.key === "/") {
      var search = document.getElementById("search-text");
      if (!search) return;
      e.preventDefault();
      search.focus();
      search.select();
    }
  });
})();

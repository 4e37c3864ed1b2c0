// This script selects all items of a list, and shows how many are selected. Without it, items
// are selected one by one. It finds the items anew each time, because an update may replace them.
(function () {
  "use strict";

  function boxesOf(form) { return Array.from(form.querySelectorAll('input[name="item"]')); }

  function show(form) {
    var all = form.querySelector("[data-select-all]");
    if (!all) return; // a read-only session selects nothing
    var boxes = boxesOf(form);
    var n = boxes.filter(function (b) { return b.checked; }).length;
    all.closest("label").hidden = false;
    all.checked = n === boxes.length;
    all.indeterminate = n > 0 && n < boxes.length;
    form.querySelector("[data-selected]").textContent = n + " selected";
    form.querySelectorAll("[data-needs-selection]").forEach(function (b) { b.disabled = n === 0; });
  }

  function showAll() { document.querySelectorAll("form[data-select]").forEach(show); }

  document.addEventListener("change", function (e) {
    var form = e.target.closest("form[data-select]");
    if (!form) return;
    if (e.target.matches("[data-select-all]")) boxesOf(form).forEach(function (b) { b.checked = e.target.checked; });
    show(form);
  });
  document.addEventListener("assay:updated", showAll);
  showAll();
})();

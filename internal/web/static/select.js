// This script selects all items of a list, and shows how many are selected. Without it, items
// are selected one by one.
(function () {
  "use strict";

  document.querySelectorAll("form[data-select]").forEach(function (form) {
    var all = form.querySelector("[data-select-all]");
    if (!all) return; // a read-only session selects nothing
    var note = form.querySelector("[data-selected]");
    var boxes = Array.from(form.querySelectorAll('input[name="item"]'));

    function show() {
      var n = boxes.filter(function (b) { return b.checked; }).length;
      all.checked = n === boxes.length;
      all.indeterminate = n > 0 && n < boxes.length;
      note.textContent = n + " selected";
      form.querySelectorAll("[data-needs-selection]").forEach(function (b) { b.disabled = n === 0; });
    }

    all.closest("label").hidden = false;
    all.addEventListener("change", function () {
      boxes.forEach(function (b) { b.checked = all.checked; });
      show();
    });
    form.addEventListener("change", show);
    show();
  });
})();

// This script shows the question before an action as a dialog. Without it, the question is a
// page.
(function () {
  "use strict";

  function ask(form, submitter, html) {
    var question = new DOMParser().parseFromString(html, "text/html").getElementById("confirm");
    if (!question) return false;
    var dialog = document.createElement("dialog");
    dialog.setAttribute("aria-labelledby", "question");
    dialog.append(document.importNode(question, true));
    document.body.append(dialog);
    dialog.addEventListener("close", function () {
      dialog.remove();
      if (document.contains(submitter)) submitter.focus();
    });
    dialog.querySelector("[data-close]").addEventListener("click", function (e) {
      e.preventDefault();
      dialog.close();
    });
    // One submission is enough. The browser has read the fields of the form by the next task.
    dialog.addEventListener("submit", function (e) {
      setTimeout(function () { if (e.submitter) e.submitter.disabled = true; });
    });
    dialog.showModal();
    return true;
  }

  // show replaces the content of the page with a response that asks nothing: the server refused.
  function show(html) {
    var page = new DOMParser().parseFromString(html, "text/html");
    var main = page.querySelector("main");
    if (!main) return location.reload();
    document.querySelector("main").replaceWith(document.importNode(main, true));
    document.title = page.title;
    scrollTo(0, 0);
    var heading = document.querySelector("main h1");
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus();
  }

  // back opens the page that the form names, which shows the result of the action.
  function back(form) {
    var to = new URL(form.elements.back ? form.elements.back.value : "/", location.href);
    if (to.pathname + to.search === location.pathname + location.search) location.reload();
    else location.assign(to);
  }

  // A form with data-confirm is answered with a question. A redirect is not followed, because
  // the page behind it would show the result of the action to the script only.
  document.addEventListener("submit", function (e) {
    var form = e.target;
    if (!form.matches("form[data-confirm]")) return;
    e.preventDefault();
    var submitter = e.submitter || form;
    var body = new URLSearchParams(new FormData(form, e.submitter));
    var action = submitter.hasAttribute("formaction") ? submitter.formAction : form.action;
    fetch(action, { method: "POST", body: body, headers: { Accept: "text/html" }, redirect: "manual" }).then(function (response) {
      if (response.type === "opaqueredirect") return back(form);
      return response.text().then(function (html) {
        if (!ask(form, submitter, html)) show(html);
      });
    }).catch(function () {
      document.dispatchEvent(new CustomEvent("assay:lost"));
    });
  });
})();

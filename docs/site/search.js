// Searches the sections of all pages. Every word of the query must be in a section.
"use strict";

const input = document.getElementById("search");
const results = document.getElementById("results");
const root = document.body.dataset.root;

// Pages for contributors come after all pages for users.
const contributor = (s) => /^(contribute|adr)\//.test(s.page);

function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found = [];
  for (const s of sections) {
    const title = (s.title + " " + s.heading).toLowerCase();
    const text = s.text.toLowerCase();
    if (!words.every((w) => title.includes(w) || text.includes(w))) continue;
    const rank = words.filter((w) => title.includes(w)).length;
    found.push({ s, rank, at: Math.max(0, text.indexOf(words[0]) - 40) });
  }
  found.sort((a, b) => contributor(a.s) - contributor(b.s) || b.rank - a.rank);
  return found.slice(0, 12);
}

function show() {
  results.replaceChildren();
  const found = find(input.value);
  results.hidden = input.value.trim() === "";
  for (const { s, at } of found) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + s.page;
    link.textContent = s.title === s.heading ? s.title : s.title + " › " + s.heading;
    const text = document.createElement("p");
    text.textContent = s.text.slice(at, at + 140);
    item.append(link, text);
    results.append(item);
  }
  if (found.length === 0) results.textContent = "No page has all these words.";
}

input.addEventListener("input", show);
input.form.addEventListener("submit", (event) => {
  event.preventDefault();
  const first = results.querySelector("a");
  if (first) first.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === "Escape") results.hidden = true;
});

// Measures the page as it was laid out and writes what it found into the document. Runs in a copy of the page:
// see browser.rs. It shares nothing with what made the page but the outcome inside it.
"use strict";
const outcome = JSON.parse(document.getElementById("outcome").textContent);
const found = {
  width: window.innerWidth,
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  overflowing: [],
  wrong: [],
  checked: { figures: 0, quotes: 0, shapes: 0 },
};

// The value that a JSON pointer (RFC 6901) leads to.
function at(pointer) {
  const steps = pointer.split("/").slice(1);
  return steps.reduce((value, step) => value?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], outcome);
}

// What people read from the log ratio of a pair.
function gain(log) {
  return outcome.primary.better === "lower" ? 1 - Math.exp(-log) : Math.exp(log) - 1;
}

function middle(element) {
  const box = element.getBoundingClientRect();
  return box.left + box.width / 2;
}

// Texts and figures.
for (const element of document.querySelectorAll("data[data-at]")) {
  found.checked.figures += 1;
  const pointer = element.dataset.at;
  if (Number(element.value) !== at(pointer)) found.wrong.push(`${pointer}: ${element.value} is not ${at(pointer)}`);
}
for (const element of document.querySelectorAll("span[data-at]")) {
  found.checked.quotes += 1;
  const pointer = element.dataset.at;
  if (element.textContent !== at(pointer)) found.wrong.push(`${pointer}: ${element.textContent}`);
}

// Every shape stands where the ticks of its chart say that its number is; one beyond the scale stands at its end.
for (const chart of document.querySelectorAll("figure.chart")) {
  const ticks = [...chart.querySelectorAll("[data-tick]")];
  const [first, last] = [ticks[0], ticks[ticks.length - 1]];
  const span = (middle(last) - middle(first)) / (last.dataset.tick - first.dataset.tick);
  const place = (value) => middle(first) + (value - first.dataset.tick) * span;
  const edges = first.ownerSVGElement.getBoundingClientRect();
  for (const shape of chart.querySelectorAll("[data-value]")) {
    found.checked.shapes += 1;
    const { at: pointer, value } = shape.dataset;
    if (Number(value) !== at(pointer)) found.wrong.push(`${pointer}: drawn as ${value}, not ${at(pointer)}`);
    const shown = pointer.includes("/pair_logs/") ? gain(Number(value)) : Number(value);
    const beyond = shape.classList.contains("beyond");
    const wanted = Math.min(Math.max(place(shown), edges.left), edges.right);
    const isBeyond = place(shown) < edges.left - 0.5 || place(shown) > edges.right + 0.5;
    const slack = beyond ? 5 : 1;
    if (beyond !== isBeyond) found.wrong.push(`${pointer}: beyond the scale is ${isBeyond}`);
    if (Math.abs(middle(shape) - wanted) > slack) {
      found.wrong.push(`${pointer}: ${value} stands at ${middle(shape)}, its place is ${wanted}`);
    }
  }
}

// Nothing is wider than the window; a table may scroll inside its own box.
if (document.documentElement.scrollWidth > window.innerWidth) {
  found.overflowing.push(`the page is ${document.documentElement.scrollWidth} px wide`);
}
for (const element of document.body.querySelectorAll("*:not(script)")) {
  const box = element.getBoundingClientRect();
  const scrolls = element.closest(".scroll") !== null || element.closest(".stack thead") !== null;
  if (box.width > 0 && box.right > window.innerWidth + 0.5 && !scrolls) {
    found.overflowing.push(`${element.tagName} ${element.className.baseVal ?? element.className}: ${box.right}`);
  }
}

const pre = document.createElement("pre");
pre.id = "found";
pre.textContent = JSON.stringify(found);
document.body.append(pre);

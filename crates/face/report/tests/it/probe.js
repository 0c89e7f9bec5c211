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

// Seconds, bytes and the like that a printed unit stands for.
const TIMES = { ns: 1e-9, "\u00b5s": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const BYTES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const OTHERS = { "%": 0.01, "/s": 1, "M/s": 1e6, "G/s": 1e9 };

// The unit in which the outcome keeps a number: told beside it, else by the end of its name.
function unitAt(pointer) {
  const cut = pointer.lastIndexOf("/");
  const beside = at(`${pointer.slice(0, cut)}/unit`);
  if (typeof beside === "string") return beside;
  const ending = pointer.match(/[_/](ns|ms|kb)(?=\/|$)/)?.[1];
  return pointer.endsWith("hours_needed") ? "h" : ending === "kb" ? "kB" : ending ?? "s";
}

// What one printed unit is worth in the unit of the outcome.
function worth(printed, unit) {
  if (printed in TIMES) return TIMES[printed] / (TIMES[unit] ?? 1);
  if (printed in BYTES) return BYTES[printed] / (unit === "kB" ? BYTES.KiB : 1);
  return OTHERS[printed] ?? 1;
}

// The lowest and the highest number that a rounded text stands for: `+7.1 %`, `3 min 20 s`, `12,134 /s`, `1.20e-8`.
function said(text, unit) {
  const words = text.replaceAll("\u2212", "-").replaceAll(",", "").split("\u00a0");
  let [sum, slack] = [0, 0];
  for (let index = 0; index < words.length; index += 1) {
    const number = words[index];
    if (Number.isNaN(Number(number)) || number === "") continue;
    const next = words[index + 1] ?? "";
    const factor = Number.isNaN(Number(next)) ? worth(next, unit) : 1;
    const [mantissa, power] = number.split("e");
    const decimals = (mantissa.split(".")[1] ?? "").length;
    sum += Number(number) * factor;
    slack = 0.5000001 * 10 ** (Number(power ?? 0) - decimals) * factor;
  }
  return slack === 0 ? [NaN, NaN] : [sum - slack, sum + slack];
}

// Whether the text that a reader sees stands for the number behind it.
function reads(element, pointer, value) {
  const text = element.textContent;
  if (pointer === "/started_at") {
    const [day, time] = text.replaceAll("\u2010", "-").split("\u00a0");
    return Date.parse(`${day}T${time}Z`) / 1000 === value;
  }
  const [low, high] = said(text, unitAt(pointer));
  return low <= value && value <= high;
}

// Texts and figures.
for (const element of document.querySelectorAll("data[data-at]")) {
  found.checked.figures += 1;
  const pointer = element.dataset.at;
  const value = at(pointer);
  if (Number(element.value) !== value) found.wrong.push(`${pointer}: ${element.value} is not ${value}`);
  if (!reads(element, pointer, value)) found.wrong.push(`${pointer}: reads "${element.textContent}", is ${value}`);
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

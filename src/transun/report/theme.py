"""How pages look: one style sheet for light, dark, paper and phones, and a script.

The script sorts tables, and writes numbers with the decimal and thousands marks of the reader's browser, so that one
page serves readers of any country: 1,234.5 is 1.234,5 in German and 1 234,5 in French, €1,234 is 1.234 €. Without a
script, in Markdown and in the terminal numbers are as in English. What is code or a name from the data is left alone.
"""

__all__ = ["CHARTS", "COLOURS", "SCRIPT", "STYLE"]

COLOURS = """
:root { color-scheme: light dark; --paper: #ffffff; --card: #f5f6f8; --ink: #1b1f24; --muted: #59636e; --line: #d5dae0;
  --accent: #0b62a8; --bad: #b3400a; --good: #1a7040; --warn: #8a6100; --shade: #59636e66; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161b; --card: #1b2128; --ink: #e8ebee; --muted: #9fabb7;
  --line: #343d47; --accent: #6cb6f2; --bad: #ff9a66; --good: #6fce98; --warn: #e6bd57; --shade: #9fabb788; } }
"""

CHARTS = """
svg text { fill: var(--muted); font-family: inherit; } svg .axis, svg .name { fill: var(--ink); }
svg .grid { stroke: var(--line); stroke-width: .7; fill: none; } svg .even { stroke: var(--muted); stroke-width: 1.2;
  stroke-dasharray: 4 3; fill: none; } svg .path, svg .range { stroke: var(--accent); fill: none; stroke-width: 1.6; }
svg .dot, svg .fill { fill: var(--accent); } svg .dot.bad { fill: var(--bad); }
svg .range.bad, svg .path.bad { stroke: var(--bad); }
"""

STYLE = (
    COLOURS
    + CHARTS
    + """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main, header, footer { max-width: 74rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.6rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; padding-top: .9rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; overflow-wrap: anywhere; }
p { margin: .5rem 0; max-width: 46rem; overflow-wrap: anywhere; }
.sub, .note, footer, caption { color: var(--muted); font-size: .9rem; overflow-wrap: anywhere; }
code { font: .88em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--card); padding: .1em .3em;
  border-radius: 3px; overflow-wrap: anywhere; }
.verdict { margin: 1.1rem 0; padding: .9rem 1.1rem; background: var(--card); border-left: .35rem solid var(--muted);
  border-radius: 4px; font-size: 1.15rem; overflow-wrap: anywhere; }
.verdict.bad { border-color: var(--bad); } .verdict.warn { border-color: var(--warn); }
.verdict.good { border-color: var(--good); }
.verdict b { display: block; font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; }
.bad b, .flag { color: var(--bad); } .warn b { color: var(--warn); } .good b, .ok { color: var(--good); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem; margin: 1rem 0; }
@media (max-width: 40rem) { .facts div:first-child { grid-column: 1 / -1; } }
.facts div { background: var(--card); border-radius: 4px; padding: .55rem .8rem; }
.facts dt { color: var(--muted); font-size: .82rem; } .facts dd { margin: 0; font-size: 1.3rem;
  overflow-wrap: anywhere; }
.facts small { display: block; font-size: .8rem; color: var(--muted); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: .5rem 1.6rem; }
.both > div { min-width: 0; }
@media (min-width: 64rem) { .both { display: grid; grid-template-columns: minmax(0, 25rem) minmax(0, 1fr);
  gap: 0 1.8rem; align-items: start; } }
figure { margin: .6rem 0; max-width: 34rem; } figcaption { color: var(--muted); font-size: .9rem; }
/* Where a table goes on beyond an edge, the edge is shaded; the first two layers scroll along and cover the shade at
   the ends of the table. */
.scroll { overflow-x: auto; margin: .6rem 0; background:
  linear-gradient(to right, var(--paper) 40%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / 1rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / 1rem 100% no-repeat scroll; }
table { border-collapse: collapse; min-width: min(100%, 36rem); font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .55rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
.both table { width: 100%; }
td small { display: block; color: var(--muted); font-size: .8rem; }
td.words { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 6.5rem; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7.5rem; }
table:has(td.words) th { text-align: left; }
th { color: var(--muted); font-weight: 600; vertical-align: bottom; white-space: normal; }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort=ascending] button::after { content: " \\25B2"; }
th[aria-sort=descending] button::after { content: " \\25BC"; }
dl.words dt { font-weight: 600; margin-top: .5rem; } dl.words dd { margin: 0; color: var(--muted); max-width: 46rem; }
ul { padding-left: 1.2rem; margin: .4rem 0; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; font-size: 11px; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--muted); overflow-wrap: anywhere; }
footer { padding-top: 1.4rem; padding-bottom: 2rem; }
@media (max-width: 40rem) { table { font-size: .8rem; } td small { font-size: .72rem; }
  th, td { padding: .3rem .25rem; }
  th:first-child, td:first-child { min-width: 6.4rem; } .verdict { font-size: 1.05rem; } }
@media print { :root { --paper: #fff; --card: #f3f3f3; --ink: #000; --muted: #444; --line: #bbb; --accent: #0b62a8;
  --bad: #b3400a; --good: #1a7040; --warn: #8a6100; color-scheme: light; }
  body { font-size: 11pt; } h2, h3 { break-after: avoid; } figure, tr, .verdict { break-inside: avoid; }
  .scroll { overflow: visible; background: none; } .both { display: block; }
  table { width: 100%; min-width: 0; font-size: 7.5pt; } td small { font-size: 6.5pt; }
  th, td, th:first-child, td:first-child { white-space: normal; min-width: 0; padding: .15rem .25rem; }
  main, header, footer { max-width: none; } }
"""
)

SCRIPT = """
const currencies = { "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR" };
// A number with a thousands or a decimal mark, or with a currency; neither a version nor part of a word.
const written = /(?<![\\w.,/])([€$£¥₹]?)(\\d{1,3}(?:,\\d{3})+|\\d+)(\\.\\d+)?(?![.,]\\w|\\d)/g;
const localised = (text, currency, whole, fraction = "") => {
  if (!currency && !fraction && !whole.includes(",")) return text;
  const digits = Math.max(fraction.length - 1, 0);
  const style = currency ? { style: "currency", currency: currencies[currency], currencyDisplay: "narrowSymbol" } : {};
  return new Intl.NumberFormat(navigator.language, { ...style, numberingSystem: "latn",
    useGrouping: whole.includes(","), minimumFractionDigits: digits, maximumFractionDigits: digits,
  }).format(whole.replaceAll(",", "") + fraction);
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const node = texts.currentNode;
  if (!node.parentElement.closest("code, script, style, .name, [translate=no]"))
    node.data = node.data.replace(written, localised);
}
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.parentElement, body = head.closest("table").tBodies[0];
  const column = [...head.parentElement.children].indexOf(head);
  const down = head.getAttribute("aria-sort") === "descending";
  const key = row => { const cell = row.cells[column];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent; };
  const order = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b);
  const rows = [...body.rows].sort((a, b) => (down ? 1 : -1) * order(key(a), key(b)));
  for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "ascending" : "descending");
  body.append(...rows);
});
"""

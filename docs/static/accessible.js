/* What the theme leaves to be said to readers who use a keyboard or a screen reader. */

function describe() {
  // Captions of the side bar are headings of no level.
  for (const caption of document.querySelectorAll("p.caption[role=heading]")) caption.ariaLevel = "2";
  // The title of an example is hidden in the link that covers its card.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) link.ariaLabel = link.textContent.trim();
}

function focusWhatScrolls() {
  for (const region of document.querySelectorAll("pre, .table-wrapper, .highlight, p:has(> img.chart)"))
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
}

addEventListener("DOMContentLoaded", () => { describe(); focusWhatScrolls(); });
addEventListener("resize", focusWhatScrolls);

// The marks in the charts: what happened to lanes and workers, out of the list beside the charts, which tells it in words.
"use strict";

window.priqueue = window.priqueue || {};

(() => {
  // The same shapes as in the list.
  const SHAPES = {pause: "‖", resume: "▸", start: "+", drain: "◐", leave: "−"}, APART = 12;

  const read = () => [...document.querySelectorAll("[data-mark]")].map((line) => (
    {t: Number(line.dataset.mark), shape: SHAPES[line.dataset.kind], text: line.querySelector("[data-what]").textContent}));

  // A line for each, and its shape at the top where there is room for it: the oldest of some that are close has it.
  function draw(plot, style) {
    const {ctx} = plot, {left, top, width, height} = plot.bbox, ratio = uPlot.pxRatio;
    let free = left;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = style("--body-quiet-color") || "#666";
    ctx.font = `bold ${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "center"; ctx.textBaseline = "top";
    for (const {t, shape} of read().reverse()) {
      const x = Math.round(plot.valToPos(t, "x", true));
      if (x < left || x > left + width) continue;
      const named = x >= free;
      if (named) { ctx.fillText(shape, x, top); free = x + APART * ratio; }
      ctx.lineWidth = ratio;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.beginPath(); ctx.moveTo(x, top + (named ? APART * ratio : 0)); ctx.lineTo(x, top + height); ctx.stroke();
    }
    ctx.restore();
  }

  priqueue.marks = {
    draw,
    told: (from, to) => read().filter(({t}) => t >= from && t < to).map(({shape, text}) => `${shape} ${text}`),
    note() {
      const number = read().length;
      return number ? `; ${number} mark${number > 1 ? "s" : ""} in it ${number > 1 ? "are" : "is"} told below the charts` : "";
    },
  };
})();

// The three charts of the overview, their tables, and what they say in words. Points come from the page and from its
// document: sums of thirty seconds, so that rates, shares and coarser rows are made of them without error.
"use strict";

window.priqueue = window.priqueue || {};

(() => {
  const HOUR_S = 3600, POINT_S = 30, ROW_S = 300, HEIGHT = 150, HEIGHT_SMALL = 120;
  const DASHES = [[], [10, 5], [2, 4], [12, 4, 2, 4], [6, 6], [2, 2, 8, 2]];

  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const rate = (perS) => perS >= 10 || perS === 0 ? Math.round(perS).toLocaleString("en-US") : perS.toFixed(1);
  const percent = (part) => `${(part * 100).toFixed(1)} %`;
  const clock = (s, seconds) => new Date(s * 1000).toLocaleTimeString("en-GB",
    {hour: "2-digit", minute: "2-digit", ...(seconds ? {second: "2-digit"} : {})});

  // What each chart shows of a point: one value per line, null where nothing is known.
  const KINDS = {
    throughput: {
      lines: (config) => config.lanes, word: rate, unit: "/s", below: true,
      values: (point) => point.acked.map((number) => point.s ? number / point.s : null),
      judged: (values) => values.some((value) => value === null) ? null : sum(values),
    },
    share: {
      lines: (config) => config.lanes, word: percent, unit: "", top: 1,
      values: (point) => { const all = sum(point.picks); return point.picks.map((number) => all ? number / all : null); },
      judged: () => null,
    },
    errors: {
      lines: () => ["errors"], word: percent, unit: "", alone: true,
      values: (point) => { const runs = point.failed + sum(point.acked); return [runs ? point.failed / runs : null]; },
      judged: (values) => values[0],
    },
    load: {
      lines: () => ["slots in use"], word: percent, unit: "", alone: true, top: 1,
      values: (point) => [point.capacity ? point.slots / point.capacity : null],
      judged: (values) => values[0],
    },
  };

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const color = (place) => style(`--pq-lane-${place % 6}`);

  function nice(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
  }

  // Where an axis has its marks, as parts of its length: at round numbers.
  function steps(top) {
    const lead = top / 10 ** Math.floor(Math.log10(top) + 1e-9), number = lead > 2.2 ? 5 : 4;
    return Array.from({length: number + 1}, (_, at) => at / number);
  }

  function merged(points) {
    const rows = new Map();
    for (const point of points) {
      const t = point.t - point.t % ROW_S;
      const row = rows.get(t) || {t, s: 0, acked: point.acked.map(() => 0), picks: point.picks.map(() => 0), failed: 0, slots: 0, capacity: 0};
      for (const name of ["s", "failed", "slots", "capacity"]) row[name] += point[name];
      for (const name of ["acked", "picks"]) row[name] = row[name].map((number, at) => number + point[name][at]);
      rows.set(t, row);
    }
    return [...rows.values()].reverse();
  }

  class Chart {
    constructor(section, config) {
      this.section = section;
      this.config = config;
      this.kind = section.dataset.chart;
      this.rangeS = HOUR_S;
      this.points = [];
      this.plotBox = section.querySelector("[data-plot]");
      this.tip = document.createElement("div");
      this.tip.className = "pq-tip";
      this.tip.hidden = true;
      this.empty = document.createElement("p");
      this.empty.className = "pq-collecting";
      this.plotBox.setAttribute("role", "img");
      this.showTable(false);
      section.querySelector("[data-table]").addEventListener("click", () => this.showTable(!this.asTable));
      const share = section.querySelector("[data-share]");
      if (share) share.addEventListener("click", () => {
        this.kind = this.kind === "share" ? "throughput" : "share";
        share.setAttribute("aria-pressed", String(this.kind === "share"));
        this.renew();
      });
      new ResizeObserver(() => this.resize()).observe(section);
    }

    get shape() { return KINDS[this.kind]; }
    get slo() { return this.kind === "share" ? null : this.config.slo[this.kind]; }

    showTable(asTable) {
      this.asTable = asTable;
      this.plotBox.hidden = asTable;
      this.section.querySelector("[data-rows]").hidden = !asTable;
      this.section.querySelector("[data-table]").setAttribute("aria-pressed", String(asTable));
      if (!asTable) this.resize();
    }

    set(points) {
      this.points = points;
      if (this.plot) this.plot.setData(this.data()); else this.renew();
      this.tell();
    }

    data() {
      const xs = this.points.map((point) => point.t + POINT_S / 2);
      const values = this.points.map((point) => this.shape.values(point));
      return [xs, ...this.shape.lines(this.config).map((_, line) => values.map((each) => each[line]))];
    }

    renew() {
      if (this.plot) this.plot.destroy();
      this.plot = new uPlot(this.options(), this.data(), this.plotBox);
      this.plot.over.append(this.tip);
      this.plotBox.append(this.empty);
      this.tell();
    }

    resize() {
      const width = this.plotBox.clientWidth;
      if (this.plot && width && width !== this.plot.width) this.plot.setSize({width, height: this.height()});
    }

    height() { return window.innerWidth < 600 ? HEIGHT_SMALL : HEIGHT; }

    options() {
      const quiet = style("--body-quiet-color") || "#666", hairline = style("--hairline-color") || "#ddd";
      const font = `11px ${getComputedStyle(document.body).fontFamily}`;
      const axis = {stroke: quiet, font, grid: {stroke: hairline, width: 1}, ticks: {show: false}};
      const lines = this.shape.lines(this.config);
      return {
        width: this.plotBox.clientWidth || 300, height: this.height(), legend: {show: false},
        padding: [8, this.shape.alone ? 10 : 58, 0, 0],
        cursor: {y: false, drag: {x: false, y: false}, points: {size: 6}},
        scales: {x: {time: true, range: () => this.xRange()}, y: {range: (_, __, max) => [0, this.yTop(max)]}},
        axes: [
          {...axis, size: 24, space: 40, incrs: this.rangeS > 1200 ? [600, 1200] : [180, 300, 600], values: (_, at) => at.map((s) => clock(s))},
          {...axis, size: 48, space: 28, splits: (_, __, min, max) => steps(max).map((step) => min + (max - min) * step),
            values: (_, at) => at.map((value) => this.axisWord(value))},
        ],
        series: [{}, ...lines.map((label, at) => ({
          label, stroke: this.shape.alone ? style("--pq-line") : color(at), dash: this.shape.alone ? [] : DASHES[at % DASHES.length],
          width: 2, spanGaps: false, points: {show: (plot, series) => this.isLonely(series)},
        }))],
        hooks: {
          drawClear: [(plot) => this.tint(plot)], draw: [(plot) => { priqueue.marks.draw(plot, style); this.threshold(plot); this.ends(plot); }],
          setCursor: [(plot) => this.tooltip(plot)],
        },
      };
    }

    // A value between two gaps has no line that would show it.
    isLonely(series) {
      const values = this.data()[series];
      return values.some((value, at) => value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null);
    }

    xRange() {
      const last = this.points.length ? this.points[this.points.length - 1].t + POINT_S : Math.floor(Date.now() / 1000);
      return [last - this.rangeS, last];
    }

    yTop(max) {
      if (this.shape.top) return this.shape.top;
      const most = Math.max(max || 0, (this.slo || 0) * 1.25);
      return this.kind === "errors" ? Math.min(1, nice(Math.max(most, 0.01))) : nice(Math.max(most, 1));
    }

    axisWord(value) {
      const short = (number) => Number(number.toPrecision(3)).toLocaleString("en-US");
      return this.kind === "throughput" ? short(value) : `${short(value * 100)} %`;
    }

    tint(plot) {
      if (this.slo === null || this.slo === undefined) return;
      const {left, top, width, height} = plot.bbox, y = plot.valToPos(this.slo, "y", true);
      plot.ctx.save();
      plot.ctx.globalAlpha = 0.08;
      plot.ctx.fillStyle = style("--error-fg") || "#ba2121";
      if (this.shape.below) plot.ctx.fillRect(left, y, width, top + height - y); else plot.ctx.fillRect(left, top, width, y - top);
      plot.ctx.restore();
    }

    threshold(plot) {
      if (this.slo === null || this.slo === undefined) return;
      const {ctx} = plot, {left, width} = plot.bbox, y = plot.valToPos(this.slo, "y", true), ratio = uPlot.pxRatio;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = style("--body-fg") || "#333";
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + width, y); ctx.stroke();
      ctx.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = "right"; ctx.textBaseline = "bottom";
      ctx.setLineDash([]);
      ctx.strokeStyle = style("--body-bg") || "#fff";
      ctx.lineWidth = 4 * ratio;
      ctx.strokeText(`SLO ${this.shape.word(this.slo)}${this.shape.unit}`, left + width - 2 * ratio, y - 2 * ratio);
      ctx.fillText(`SLO ${this.shape.word(this.slo)}${this.shape.unit}`, left + width - 2 * ratio, y - 2 * ratio);
      ctx.restore();
    }

    // The lines' names, at their right ends, pushed apart where they would overlap.
    ends(plot) {
      if (this.shape.alone) return;
      const {ctx} = plot, {left, top, width, height} = plot.bbox, ratio = uPlot.pxRatio, gap = 13 * ratio;
      const ends = plot.series.slice(1).map((series, at) => {
        const values = plot.data[at + 1], value = values.findLast((each) => each !== null);
        return value === undefined ? null : {label: series.label, at, y: plot.valToPos(value, "y", true)};
      }).filter(Boolean).sort((one, other) => one.y - other.y);
      ends.forEach((end, at) => { if (at) end.y = Math.max(end.y, ends[at - 1].y + gap); });
      const over = ends.length ? Math.max(0, ends[ends.length - 1].y - (top + height - 4 * ratio)) : 0;
      ctx.save();
      ctx.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = "left"; ctx.textBaseline = "middle";
      for (const end of ends) {
        ctx.fillStyle = color(end.at);
        ctx.fillText(end.label.length > 8 ? `${end.label.slice(0, 7)}…` : end.label, left + width + 5 * ratio, end.y - over);
      }
      ctx.restore();
    }

    tooltip(plot) {
      const at = plot.cursor.idx, point = at === null || at === undefined ? null : this.points[at];
      this.tip.hidden = !point || plot.cursor.left < 0;
      if (this.tip.hidden) return;
      const values = this.shape.values(point), names = this.shape.lines(this.config);
      const lines = [`${clock(point.t, true)}–${clock(point.t + POINT_S, true)}`,
        ...values.map((value, line) => `${names[line]} ${value === null ? "–" : this.shape.word(value) + this.shape.unit}`)];
      lines.push(...(this.slo ? [`SLO ${this.shape.word(this.slo)}${this.shape.unit}`] : []), ...priqueue.marks.told(point.t, point.t + POINT_S));
      this.tip.replaceChildren(...lines.map((line) => { const row = document.createElement("span"); row.textContent = line; return row; }));
      const right = plot.cursor.left > plot.over.clientWidth / 2;
      this.tip.style.left = right ? "" : `${plot.cursor.left + 10}px`;
      this.tip.style.right = right ? `${plot.over.clientWidth - plot.cursor.left + 10}px` : "";
    }

    // What the picture says, in words and in the table.
    tell() {
      const values = this.points.map((point) => this.shape.judged(this.shape.values(point)));
      const bad = (value) => value !== null && (this.shape.below ? value < this.slo : value > this.slo);
      let breached = 0;
      while (this.slo && breached < values.length && bad(values[values.length - 1 - breached])) breached += 1;
      this.section.querySelector("[data-breach]").textContent = breached > 1 ? `for ${Math.round(breached * POINT_S / 60) || 1} min` : "";
      const known = this.points.filter((point) => point.s);
      const away = document.querySelector("[data-board]").classList.contains("pq-stale");
      const why = away ? "Nothing is known while Redis does not answer." : "Collecting: a point comes every half minute.";
      this.empty.textContent = known.length < 2 ? why : "";
      this.section.querySelector("[data-gaps]").textContent = this.gaps(known);
      this.plotBox.setAttribute("aria-label", `${this.kind}: a chart of the last hour; the button Table shows its numbers${priqueue.marks.note()}`);
      this.fillTable();
    }

    gaps(known) {
      if (!known.length) return "";
      const spans = [];
      for (const point of this.points.filter((each) => each.t > known[0].t && !each.s)) {
        const last = spans[spans.length - 1];
        if (last && last[1] === point.t) last[1] = point.t + POINT_S; else spans.push([point.t, point.t + POINT_S]);
      }
      return spans.length ? `No samples ${spans.slice(-3).map(([from, to]) => `${clock(from)}–${clock(to)}`).join(", ")}` : "";
    }

    fillTable() {
      const body = this.section.querySelector("[data-rows] tbody"), head = this.section.querySelector("[data-rows] thead tr");
      if (!this.points.length) return;
      const cell = (kind, text) => { const made = document.createElement(kind); made.textContent = text; return made; };
      const names = this.shape.alone ? [this.section.querySelector("h2").textContent] : this.shape.lines(this.config);
      head.replaceChildren(...["From", ...names].map((name) => { const made = cell("th", name); made.scope = "col"; return made; }));
      body.replaceChildren(...merged(this.points).map((row) => {
        const line = document.createElement("tr"), first = cell("th", clock(row.t, true));
        first.scope = "row";
        line.append(first, ...this.shape.values(row).map((value) => cell("td", value === null ? "–" : this.shape.word(value))));
        return line;
      }));
    }
  }

  priqueue.charts = (config, points) => {
    const charts = [...document.querySelectorAll("[data-chart]")].map((section) => new Chart(section, config));
    let kept = points;
    const draw = () => charts.forEach((chart) => chart.set(kept));
    const renew = () => charts.forEach((chart) => chart.renew());
    new MutationObserver(renew).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renew);
    draw();
    return {
      get last() { return kept.length ? kept[kept.length - 1].t * 1000 : 0; },
      add(fresh) {
        if (!fresh.length) { charts.forEach((chart) => chart.plot && chart.plot.redraw(false)); return; }
        const first = fresh[fresh.length - 1].t - HOUR_S;
        kept = [...kept.filter((point) => point.t < fresh[0].t), ...fresh].filter((point) => point.t > first);
        draw();
      },
      range(seconds) { charts.forEach((chart) => { chart.rangeS = seconds; chart.renew(); }); },
    };
  };
})();

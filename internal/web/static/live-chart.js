// This script draws live charts with uPlot. An element with data-chart contains the chart as SVG,
// which stays for screen readers, and the data of the chart as JSON (chart/live.go). The script
// draws the chart again after an update of the page has changed the data.
(function () {
  "use strict";

  var DAY = 86400;
  var drawn = new WeakMap(); // by element: { plot, data, text, rows }
  var isLocal = /(^|; )assay_times=local(;|$)/.test(document.cookie);
  var forms = {
    second: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
    minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    day: { day: "numeric", month: "short" },
    month: { month: "short", year: "numeric" },
    exact: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  };
  var inks = { main: "updated", thin: "cancelled", ok: "updated", limited: "noquote" };

  function time(at, form) {
    var options = Object.assign({}, forms[form]);
    if (!isLocal) options.timeZone = "UTC";
    return new Date(at * 1000).toLocaleString("en-GB", options).replace("Sept", "Sep"); // as the server writes it
  }

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function ink(line) {
    if (line.class === "out") return color("--warn");
    return color("--seg-" + (inks[line.class] || line.class.toLowerCase()));
  }

  // rowsOf returns the data as uPlot needs it: the times of all lines, and for each line its value
  // at each of these times. A value holds until the next one.
  function rowsOf(data) {
    var all = new Set([data.from, data.to]);
    data.lines.forEach(function (line) { line.at.forEach(function (t) { if (t > data.from && t < data.to) all.add(t); }); });
    var times = Array.from(all).sort(function (a, b) { return a - b; });

    function held(line, values) {
      var last = -1;
      return times.map(function (t) {
        var before = last;
        while (last + 1 < line.at.length && line.at[last + 1] <= t) last++;
        if (line.dots) return last > before ? values[last] : undefined;
        return last < 0 ? null : values[last];
      });
    }

    var rows = [];
    data.lines.forEach(function (line) {
      var values = held(line, line.values), low = null;
      if (line.low) {
        low = held(line, line.low);
        rows.push({ edge: true, line: line, values: held(line, line.high) }, { edge: true, line: line, values: low });
      }
      rows.push({ line: line, values: values, low: low, high: low && rows[rows.length - 2].values });
    });
    rows.forEach(function (row) { row.drawn = row.values; });
    if (data.stacked) {
      rows.forEach(function (row, i) {
        if (i) row.drawn = row.values.map(function (v, k) { return v + rows[i - 1].drawn[k]; });
      });
      rows.reverse(); // the highest part is behind the others
    }
    return { times: times, rows: rows };
  }

  function columns(state) {
    return [state.rows.times].concat(state.rows.rows.map(function (row) { return row.drawn; }));
  }

  function seriesOf(row, stacked) {
    var out = { label: row.line.name, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } };
    if (row.edge) return Object.assign(out, { width: 0 });
    if (row.line.dots) {
      return Object.assign(out, { paths: function () { return null; }, stroke: function () { return ink(row.line); },
        points: { show: true, size: 9, width: 2, stroke: function () { return ink(row.line); }, fill: function () { return color("--surface"); } } });
    }
    if (stacked) return Object.assign(out, { width: 0, fill: function () { return ink(row.line); } });
    var thin = row.line.class === "thin";
    return Object.assign(out, { width: thin ? 1 : 2, stroke: function () { return ink(row.line) + (thin ? "99" : ""); } });
  }

  // ---- the values at the cursor ----
  function text(data, v) {
    return data.prefix + v.toLocaleString("en-US", { minimumFractionDigits: data.places, maximumFractionDigits: 6 }) + data.suffix;
  }

  // lines returns the name and value of each line at an index. Of many thin lines, it returns those
  // near y.
  function lines(state, index, y) {
    var shown = state.rows.rows.filter(function (row) {
      return !row.edge && row.values[index] != null && !(state.data.stacked && !row.values[index]);
    });
    var thin = shown.filter(function (row) { return row.line.class === "thin"; });
    thin.sort(function (a, b) { return Math.abs(a.values[index] - y) - Math.abs(b.values[index] - y); });
    var far = new Set(thin.slice(8));
    var out = [];
    shown.filter(function (row) { return !far.has(row); }).sort(function (a, b) {
      return state.data.stacked ? 0 : b.values[index] - a.values[index];
    }).forEach(function (row) {
      out.push([row.line.name, text(state.data, row.values[index])]);
      if (row.low && row.low[index] != null) out.push(["range", text(state.data, row.low[index]) + " – " + text(state.data, row.high[index])]);
    });
    return out;
  }

  function paragraph(parts) {
    var p = document.createElement("p");
    parts.forEach(function (part) {
      var span = document.createElement("span");
      span.textContent = part;
      p.append(span);
    });
    return p;
  }

  function showTip(state) {
    var plot = state.plot, tip = state.tip;
    tip.hidden = !(plot.cursor.left >= 0);
    if (tip.hidden) return;
    var x = plot.posToVal(plot.cursor.left, "x");
    var index = Math.max(0, state.rows.times.findLastIndex(function (t) { return t <= x; }));
    tip.replaceChildren.apply(tip, [paragraph([time(state.rows.times[index], "exact")])].concat(lines(state, index, plot.posToVal(plot.cursor.top, "y")).map(paragraph)));
    var width = tip.offsetWidth, edge = plot.over.offsetLeft, left = plot.cursor.left + 12;
    if (plot.cursor.left > plot.over.clientWidth / 2) left -= width + 24;
    tip.style.left = Math.max(-edge, Math.min(left, plot.width - edge - width)) + "px";
  }

  // ---- drawing ----
  function options(state, element) {
    var font = "12px " + getComputedStyle(element).fontFamily;
    var rows = state.rows.rows;
    var bands = [];
    rows.forEach(function (row, i) {
      if (row.edge && rows[i + 1].edge) bands.push({ series: [i + 1, i + 2], fill: function () { return ink(row.line) + "2e"; } });
    });
    var axis = { stroke: function () { return color("--soft"); }, font: font, ticks: { show: false } };
    return {
      width: element.clientWidth, height: 200, padding: [8, 28, 0, 0], bands: bands,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: function () { return [state.data.from, state.data.to]; } },
        y: { range: function () { return [state.data.ticks[state.data.ticks.length - 1].value, state.data.ticks[0].value]; } },
      },
      series: [{}].concat(rows.map(function (row) { return seriesOf(row, state.data.stacked); })),
      axes: [
        Object.assign({}, axis, {
          size: 26, space: 70, grid: { show: false },
          incrs: { day: [1, 2, 5, 10, 15], month: [30, 60, 90, 180, 360] }[state.data.form]?.map(function (n) { return n * DAY; }),
          values: function (_, splits) { return splits.map(function (t) { return time(t, state.data.form); }); },
        }),
        Object.assign({}, axis, {
          size: function (_, values) { return 14 + 7 * Math.max.apply(null, (values || [""]).map(function (v) { return v.length; })); },
          grid: { stroke: function () { return color("--line"); }, width: 1 },
          splits: function () { return state.data.ticks.map(function (t) { return t.value; }).reverse(); },
          values: function () { return state.data.ticks.map(function (t) { return t.text; }).reverse(); },
        }),
      ],
      hooks: { setCursor: [function () { if (state.tip) showTip(state); }] },
      tzDate: function (t) { return isLocal ? new Date(t * 1000) : uPlot.tzDate(new Date(t * 1000), "Etc/UTC"); },
    };
  }

  // shape identifies the lines of a chart. A chart of the same shape gets new values.
  function shape(state) {
    return JSON.stringify([state.data.form, state.rows.rows.map(function (row) { return [row.line.name, row.line.class, row.edge]; })]);
  }

  function draw(element) {
    var old = drawn.get(element);
    if (old && old.text === element.dataset.chart) return;
    var state = old || {}, before = old && shape(old);
    state.text = element.dataset.chart;
    state.data = JSON.parse(state.text);
    state.rows = rowsOf(state.data);
    drawn.set(element, state);
    if (old && shape(state) === before) return state.plot.setData(columns(state));
    if (old) state.plot.destroy();
    else sizes.observe(element);
    state.tip = null;
    state.plot = new uPlot(options(state, element), columns(state), element);
    state.plot.root.setAttribute("aria-hidden", "true");
    state.tip = document.createElement("div");
    state.tip.className = "chart-tip";
    state.tip.hidden = true;
    state.plot.over.append(state.tip);
  }

  var sizes = new ResizeObserver(function (entries) {
    entries.forEach(function (entry) {
      var plot = drawn.get(entry.target).plot;
      if (plot.width !== entry.target.clientWidth) plot.setSize({ width: entry.target.clientWidth, height: 200 });
    });
  });

  function all(f) { document.querySelectorAll("[data-chart]").forEach(f); }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    all(function (element) { drawn.get(element).plot.redraw(); });
  });
  document.addEventListener("assay:updated", function () { all(draw); });
  all(draw);
})();

// This script draws live charts with uPlot. A figure with data-live-chart contains a drawing of
// the server, which the chart replaces, and data-src, a URL of JSON:
//   {"times": [Unix seconds], "lines": [{"name": "...", "values": [number or null]}]}
// The attribute data-every contains the seconds between two requests.
(function () {
  "use strict";

  var inks = ["--seg-updated", "--seg-failed", "--seg-noquote", "--busy", "--seg-cancelled"];

  function ink(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function options(figure, data) {
    return {
      width: figure.clientWidth,
      height: 200,
      series: [{}].concat(data.lines.map(function (line, i) {
        return { label: line.name, stroke: function () { return ink(inks[i % inks.length]); }, width: 2 };
      })),
      axes: [0, 1].map(function () {
        return {
          stroke: function () { return ink("--soft"); },
          grid: { stroke: function () { return ink("--line"); }, width: 1 },
          ticks: { show: false },
        };
      }),
      tzDate: document.cookie.includes("assay_times=local") ? undefined : function (t) { return uPlot.tzDate(new Date(t * 1000), "Etc/UTC"); },
    };
  }

  function columns(data) {
    return [data.times].concat(data.lines.map(function (line) { return line.values; }));
  }

  function start(figure) {
    var chart = null;
    var every = (Number(figure.dataset.every) || 5) * 1000;

    function draw(data) {
      if (!chart || chart.series.length !== data.lines.length + 1) {
        if (chart) chart.destroy();
        figure.querySelectorAll("svg, .empty-line").forEach(function (e) { e.remove(); });
        chart = new uPlot(options(figure, data), columns(data), figure);
      } else {
        chart.setData(columns(data));
      }
    }

    function next() {
      if (!document.contains(figure)) return chart && chart.destroy();
      setTimeout(next, every);
      if (document.hidden && chart) return;
      fetch(figure.dataset.src, { headers: { "HX-Request": "true" } }).then(function (response) {
        if (!response.ok) throw new Error("status " + response.status);
        return response.json();
      }).then(draw).catch(function () {}); // the page itself shows a lost connection
    }

    new ResizeObserver(function () {
      if (chart) chart.setSize({ width: figure.clientWidth, height: 200 });
    }).observe(figure);
    next();
  }

  document.querySelectorAll("figure[data-live-chart]").forEach(start);
})();

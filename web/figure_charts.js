// Curves of a report's figures. Where they are drawn, a figure's picture is for paper alone.

/** An axis begins at 0, unless that is far from its values. */
function leastPlace(chart) {
  const places = (chart.lines || []).flatMap((line) => (line.points || []).map(([x]) => x));
  return !chart.x_is_log && 2 * Math.min(...places) < Math.max(...places) ? 0 : undefined;
}

function setUpCharts() {
  const data = document.getElementById('charts-data');
  if (!data || !canDrawCurves()) return;
  const charts = JSON.parse(data.textContent);
  for (const place of document.querySelectorAll('[data-chart]')) drawFigure(place, charts[Number(place.getAttribute('data-chart'))]);
}

function drawFigure(place, chart) {
  const figure = place.closest('figure');
  const curves = new CurveChart({
    title: figure.querySelector('h3').textContent, isInside: true, yText: numberText, xText: (x, isLong) => (isLong && chart.x_label ? `${numberText(x)} ${chart.x_label}` : numberText(x)),
    xTitle: chart.x_label, yTitle: chart.y_label, least: chart.y_has_zero ? 0 : undefined, xLeast: () => leastPlace(chart), isLogarithmicX: chart.x_is_log, xMarks: chart.x_marks,
  });
  curves.isLogarithmic = Boolean(chart.y_is_log);
  place.append(curves.root);
  figure.classList.add('has-chart');
  let colour = 0;
  curves.show((chart.lines || []).map((line, i) => ({
    key: `${i}`, name: String(line.name ?? ''), colour: line.is_dashed ? null : colour++, dash: line.is_dashed ? 1 : 0, marks: !line.is_dashed,
    points: (line.points || []).map(([x, y, half]) => ({ x, y, half })),
  })));
}

setUpTables();
setUpCommand();
setUpTimelines();
setUpCharts();
setUpFigures();
setUpFolds();
setUpTheme();
document.documentElement.dataset.ready = 'yes';

setUpTables();
setUpCommand();
setUpTimelines();
setUpFigures();
setUpFolds();
setUpTheme();
document.documentElement.dataset.ready = 'yes';

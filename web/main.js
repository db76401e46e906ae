setUpTables();
setUpCommand();
setUpTimelines();
setUpTheme();
document.documentElement.dataset.ready = 'yes';

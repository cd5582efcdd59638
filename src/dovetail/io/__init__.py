"""Everything that reads or writes a file: logs, nodes, sites, series of hours, schedules."""

"""The pages, one file each: functions that draw a `WebRequest`."""

"""What is in files, or a topic of Kafka, that nobody has described: `millrace new` makes a first script of it.

- `file_shape`: the format, and for csv the delimiter and whether there is a header
- `sampled_rows`: the rows of the files, columns of csv as text, read as a run would read them
- `topic_messages`: the oldest and newest messages of a topic, as bytes; `topic_shape`: their format;
  `sampled_messages`: the rows that they are
- `column_kinds`: the type of each column, its nulls, and the words that stand for null
- `time_choice`: which column is the time, and how it is written
- `nested_times`: times inside structs
- `time_profile`: how far rows come out of order, and how long nothing comes
- `key_choice`: which columns look like keys of updates or of groups
- `proposal`: all of this together; `script_text` is the script, `findings_text` what is said of it and how sure it is

In: a path, or the address of a topic. Out: a text of SQL, and findings. Only the commands import it.
"""

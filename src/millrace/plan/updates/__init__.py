"""Update queries (002): rows of an update key replace each other in queues.

- `update_keys`          the update key of a tree's rows; refuses a tree without update semantics
- `refusals`             why something has no update semantics, or that it is not supported yet
- `window_commitments`   which windows a queue commits to
- `queue_placement`      puts queues into the tree of a query
- `stored_key`           the columns that tell results apart in a store
- `queue_configuration`  the settings of queues, and how often their keys are read

`physical` puts the queues in; the language checks queries with it, and the hosts ask for the key of answers.
"""

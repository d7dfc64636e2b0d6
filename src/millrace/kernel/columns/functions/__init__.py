"""The scalar functions of SQL, each over whole columns; `scalar_functions` has the operators and puts them together.

- text_functions.py, text_patterns.py (regular expressions, LIKE), edit_distance.py (levenshtein), format_strings.py,
  encodings.py (digests, base 64, addresses), row_hashes.py (Murmur3, xxHash)
- number_functions.py: logarithms, trigonometry, bits
- calendar_functions.py (dates moved and counted), time_zones.py, time_patterns.py (texts read as times)
- array_functions.py, array_building.py, map_functions.py; those with an expression of their own are in `lambdas`
- distinct_arguments.py: functions for which there is no kernel, computed in Python once for each distinct value

In: Arrow arrays or scalars. Out: the same. To add one, add a line to the dictionary at the end of a file, and declare
it in `language/expressions/functions/`.
"""

from millrace.kernel.columns.functions.array_building import BUILDING_FUNCTIONS
from millrace.kernel.columns.functions.array_functions import ARRAY_FUNCTIONS
from millrace.kernel.columns.functions.calendar_functions import CALENDAR_FUNCTIONS
from millrace.kernel.columns.functions.distinct_arguments import Kernel
from millrace.kernel.columns.functions.encodings import ENCODING_FUNCTIONS
from millrace.kernel.columns.functions.format_strings import FORMAT_FUNCTIONS
from millrace.kernel.columns.functions.map_functions import MAP_FUNCTIONS
from millrace.kernel.columns.functions.number_functions import NUMBER_FUNCTIONS
from millrace.kernel.columns.functions.row_hashes import HASH_FUNCTIONS
from millrace.kernel.columns.functions.text_functions import TEXT_FUNCTIONS
from millrace.kernel.columns.functions.text_patterns import PATTERN_FUNCTIONS
from millrace.kernel.columns.functions.time_patterns import TIME_PATTERN_FUNCTIONS
from millrace.kernel.columns.functions.time_zones import ZONE_FUNCTIONS

SQL_FUNCTIONS: dict[str, Kernel] = {
    **TEXT_FUNCTIONS,
    **PATTERN_FUNCTIONS,
    **FORMAT_FUNCTIONS,
    **ENCODING_FUNCTIONS,
    **HASH_FUNCTIONS,
    **NUMBER_FUNCTIONS,
    **CALENDAR_FUNCTIONS,
    **ZONE_FUNCTIONS,
    **TIME_PATTERN_FUNCTIONS,
    **ARRAY_FUNCTIONS,
    **BUILDING_FUNCTIONS,
    **MAP_FUNCTIONS,
}
"""All functions of this room by name."""

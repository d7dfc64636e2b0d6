"""Texts: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

TEXTS = declared("""
lower(text STRING) STRING
    The text in lower case
    lower('Spark')
    also: lcase
upper(text STRING) STRING
    The text in upper case
    upper('Spark')
    also: ucase
initcap(text STRING) STRING
    Each word with its first letter in upper case and the others in lower case
    initcap('sPark sql')
length(text TEXT) INT
    How many characters a text has, or bytes
    length('Spark')
    also: len, char_length, character_length
octet_length(text TEXT) INT
    How many bytes a text has
    octet_length('é')
bit_length(text TEXT) INT
    How many bits a text has
    bit_length('é')
    means: octet_length(text) * 8
trim(text STRING) STRING
    The text without spaces at its ends, or without other characters
    trim('  Spark  ')
    forms: trim(BOTH 'xy' FROM text), trim(LEADING FROM text), trim(TRAILING 'x' FROM text)
btrim(text STRING[, characters STRING]) STRING
    The text without spaces, or given characters, at its ends
    btrim('xxSparkx', 'x')
    kernel: trim
ltrim(text STRING[, further STRING]) STRING
    The text without spaces at its start; of two arguments the first says which characters
    ltrim('  Spark')
    forms: ltrim('xy', text)
rtrim(text STRING[, further STRING]) STRING
    The text without spaces at its end; of two arguments the first says which characters
    rtrim('Spark  ')
    forms: rtrim('xy', text)
lpad(text STRING, length INT[, pad STRING]) STRING
    The text filled up at its start to a length, with spaces or another text, or cut off
    lpad('7', 3, '0')
rpad(text STRING, length INT[, pad STRING]) STRING
    The text filled up at its end to a length, with spaces or another text, or cut off
    rpad('7', 3, 'x')
substring(text TEXT, start INT[, length INT]) TEXT
    Part of a text from a place on, counted from 1, from the end if it is negative
    substring('Spark SQL', 7, 2)
    also: substr
    forms: substring(text FROM start FOR length)
left(text STRING, count INT) STRING
    The first characters of a text
    left('Spark', 3)
    means: substring(text, 1, count)
right(text STRING, count INT) STRING
    The last characters of a text
    right('Spark', 3)
substring_index(text STRING, delimiter STRING, count INT) STRING
    The text before so many delimiters, or after them, counted from the end, if the number is negative
    substring_index('www.apache.org', '.', 2)
split_part(text STRING, delimiter STRING, part INT) STRING
    A part of a text between delimiters, counted from 1, from the end if it is negative
    split_part('11.12.13', '.', 3)
overlay(text TEXT, replacement TEXT, start INT[, length INT]) TEXT
    The text with another one in the place of some of its characters
    overlay('Spark SQL', 'ANSI ', 7, 0)
    forms: overlay(text PLACING replacement FROM start FOR length)
replace(text STRING, searched STRING[, replacement STRING]) STRING
    The text with all occurrences of another one replaced, or removed
    replace('ABCabc', 'abc', 'DEF')
translate(text STRING, letters STRING, others STRING) STRING
    The text with each letter of the second argument replaced by the letter at the same place of the third, or removed
    translate('AaBbCc', 'abc', '123')
repeat(text STRING, count INT) STRING
    The text repeated that many times
    repeat('ab', 2)
reverse(value ANY) ANY
    A text or an array from its end
    reverse('Spark')
space(count INT) STRING
    A text of that many spaces
    space(2)
    means: repeat(' ', count)
concat(value ANY...) ANY
    The values one after the other: texts, bytes or arrays
    concat('Spark', 'SQL')
concat_ws(separator STRING[, value ANY...]) STRING
    Texts and elements of arrays that are not null, with a separator between them
    concat_ws('-', 'a', NULL, array('b', 'c'))
startswith(text STRING, part STRING) BOOLEAN
    True if the text starts with another one
    startswith('Spark SQL', 'Spark')
endswith(text STRING, part STRING) BOOLEAN
    True if the text ends with another one
    endswith('Spark SQL', 'SQL')
contains(text STRING, part STRING) BOOLEAN
    True if the text contains another one
    contains('Spark SQL', 'park')
locate(part STRING[, text STRING, start INT]) INT
    The place, from 1, at which a text occurs in another one; 0 if nowhere
    locate('bar', 'foobarbar', 5)
    also: position, charindex
    forms: position(part IN text)
instr(text STRING, part STRING) INT
    The place, from 1, at which another text occurs in the text; 0 if nowhere
    instr('SparkSQL', 'SQL')
    means: locate(part, text)
find_in_set(text STRING, texts STRING) INT
    The place, from 1, of a text among those between commas; 0 if nowhere
    find_in_set('ab', 'abc,b,ab,c,def')
elt(place INT, value ANY, other ANY...) ANY
    The value at a place, from 1
    elt(1, 'scala', 'java')
ascii(text STRING) INT
    The code of the first character; 0 for an empty text
    ascii('222')
chr(code BIGINT) STRING
    The character of a code, of which the lowest 8 bits count
    chr(65)
    also: char
levenshtein(one STRING, other STRING[, most INT]) INT
    How many characters must be changed, added or removed to turn one text into the other; -1 if more than most
    levenshtein('kitten', 'sitting')
soundex(text STRING) STRING
    A code of how an English word sounds
    soundex('Miller')
luhn_check(digits STRING) BOOLEAN
    True if the last digit is the check digit of the others
    luhn_check('8112189876')
format_string(pattern STRING[, value ANY...]) STRING
    The values written by a pattern of Java's
    format_string('Hello %s, %03d', 'World', 7)
    also: printf
format_number(number NUMBER, digits INT) STRING
    The number with commas and so many digits after the point
    format_number(12332.123456, 4)
like(text STRING, pattern STRING[, escape STRING]) BOOLEAN
    True if the text is like a pattern, in which % stands for any characters and _ for one
    like('Spark', '_park')
    forms: text LIKE pattern ESCAPE '/'
ilike(text STRING, pattern STRING[, escape STRING]) BOOLEAN
    As like, whatever the case
    ilike('Spark', '_PARK')
    forms: text ILIKE pattern
rlike(text STRING, pattern STRING) BOOLEAN
    True if a regular expression is found in the text
    rlike('Spark', '^S.*k$')
    also: regexp, regexp_like
    forms: text RLIKE pattern
split(text STRING, pattern STRING[, limit INT]) ARRAY<STRING>
    The parts of a text between what a regular expression matches
    split('oneAtwoBthreeC', '[ABC]', 2)
regexp_extract(text STRING, pattern STRING[, group INT]) STRING
    What a group of a regular expression matches, by default the first; empty if nothing does
    regexp_extract('100-200', '([0-9]+)-([0-9]+)', 1)
regexp_extract_all(text STRING, pattern STRING[, group INT]) ARRAY<STRING>
    All that a group of a regular expression matches
    regexp_extract_all('100-200, 300-400', '([0-9]+)-([0-9]+)', 1)
regexp_replace(text STRING, pattern STRING, replacement STRING[, start INT]) STRING
    The text with what a regular expression matches replaced; $1 stands for its first group
    regexp_replace('100-200', '([0-9]+)', 'num')
regexp_count(text STRING, pattern STRING) INT
    How often a regular expression matches
    regexp_count('Steven Jones and Stephen Smith', 'Ste(v|ph)en')
regexp_substr(text STRING, pattern STRING) STRING
    What a regular expression matches first; null if nothing
    regexp_substr('Steven Jones', 'Ste(v|ph)en')
regexp_instr(text STRING, pattern STRING[, group INT]) INT
    The place, from 1, at which a regular expression matches first; 0 if nowhere
    regexp_instr('user@spark.apache.org', '@[^.]*')
str_to_map(text STRING[, pairs STRING, parts STRING]) MAP<STRING, STRING>
    A map of texts that stand between delimiters, which are regular expressions
    str_to_map('a:1,b:2', ',', ':')
""")

ENCODINGS = declared("""
md5(value BINARY) STRING
    The MD5 digest in hexadecimal digits
    md5('Spark')
sha1(value BINARY) STRING
    The SHA-1 digest in hexadecimal digits
    sha1('Spark')
    also: sha
sha2(value BINARY, bits INT) STRING
    The SHA-2 digest of 224, 256, 384 or 512 bits in hexadecimal digits; null for other numbers
    sha2('Spark', 256)
crc32(value BINARY) BIGINT
    The cyclic redundancy check
    crc32('Spark')
hash(value ANY...) INT
    The Murmur3 hash of the values
    hash('Spark', array(123), 2)
xxhash64(value ANY...) BIGINT
    The xxHash of 64 bits of the values
    xxhash64('Spark', array(123), 2)
base64(value BINARY) STRING
    The bytes in base 64
    base64('Spark SQL')
unbase64(text STRING) BINARY
    The bytes that base 64 stands for
    unbase64('U3BhcmsgU1FM')
hex(value ANY) STRING
    A whole number, a text or bytes in hexadecimal digits
    hex(17)
unhex(text STRING) BINARY
    The bytes of hexadecimal digits; null for other text
    unhex('537061726B')
encode(text STRING, charset STRING) BINARY
    The bytes of a text in a charset
    encode('abc', 'UTF-8')
url_encode(text STRING) STRING
    The text as a part of an address
    url_encode('https://spark.apache.org')
url_decode(text STRING) STRING
    The text that a part of an address stands for
    url_decode('https%3A%2F%2Fspark.apache.org')
parse_url(url STRING, part STRING[, key STRING]) STRING
    A part of an address: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY, USERINFO, or of QUERY the value of a key
    parse_url('http://spark.apache.org/path?query=1', 'QUERY', 'query')
""")

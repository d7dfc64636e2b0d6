"""Numbers: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

NUMBERS = declared("""
abs(number NUMBER) NUMBER
    The number without its sign
    abs(-1)
negative(number NUMBER) NUMBER
    The number with the other sign
    negative(1)
sign(number NUMBER) DOUBLE
    -1.0, 0.0 or 1.0, as the number is negative, zero or positive
    sign(-40)
    also: signum
mod(number NUMBER, divisor NUMBER) NUMBER
    The remainder of a division, with the sign of the number; as number % divisor
    mod(7, 4)
    means: number % divisor
pmod(number NUMBER, divisor NUMBER) NUMBER
    The remainder of a division, positive if the divisor is
    pmod(-7, 4)
div(number NUMBER, divisor NUMBER) BIGINT
    The quotient cut off towards zero; as number div divisor
    div(7, 2)
    means: number div divisor
round(number NUMBER[, digits INT]) NUMBER
    The number rounded half up to so many digits after the point
    round(2.5)
bround(number NUMBER[, digits INT]) NUMBER
    The number rounded half to even to so many digits after the point
    bround(2.5)
rint(number DOUBLE) DOUBLE
    The nearest whole number, half to even
    rint(12.3456)
floor(number NUMBER) NUMBER
    The greatest whole number that is not above the number
    floor(-0.1)
ceil(number NUMBER) NUMBER
    The least whole number that is not below the number
    ceil(-0.1)
    also: ceiling
sqrt(number NUMBER) DOUBLE
    The square root
    sqrt(4)
cbrt(number DOUBLE) DOUBLE
    The cube root
    cbrt(27.0)
hypot(one DOUBLE, other DOUBLE) DOUBLE
    The square root of the sum of two squares
    hypot(3, 4)
power(base NUMBER, exponent NUMBER) DOUBLE
    The base raised to a power
    power(2, 3)
    also: pow
exp(number NUMBER) DOUBLE
    e raised to a power
    exp(0)
expm1(number DOUBLE) DOUBLE
    e raised to a power, less 1
    expm1(0)
ln(number NUMBER) DOUBLE
    The natural logarithm; null where there is none
    ln(1)
log(base NUMBER[, number NUMBER]) DOUBLE
    The logarithm of a number to a base; of one argument its natural logarithm; null where there is none
    log(10, 100)
log10(number DOUBLE) DOUBLE
    The logarithm to the base 10; null where there is none
    log10(10)
log2(number DOUBLE) DOUBLE
    The logarithm to the base 2; null where there is none
    log2(2)
log1p(number DOUBLE) DOUBLE
    The natural logarithm of the number and 1; null where there is none
    log1p(0)
e() DOUBLE
    Euler's number
    e()
pi() DOUBLE
    The ratio of a circle's circumference to its diameter
    pi()
sin(angle DOUBLE) DOUBLE
    The sine
    sin(0)
cos(angle DOUBLE) DOUBLE
    The cosine
    cos(0)
tan(angle DOUBLE) DOUBLE
    The tangent
    tan(0)
cot(angle DOUBLE) DOUBLE
    The cotangent
    cot(1)
sec(angle DOUBLE) DOUBLE
    The secant
    sec(0)
csc(angle DOUBLE) DOUBLE
    The cosecant
    csc(1)
asin(number DOUBLE) DOUBLE
    The inverse sine
    asin(0)
acos(number DOUBLE) DOUBLE
    The inverse cosine
    acos(1)
atan(number DOUBLE) DOUBLE
    The inverse tangent
    atan(0)
atan2(y DOUBLE, x DOUBLE) DOUBLE
    The angle between the x-axis and a point
    atan2(0, 1)
sinh(number DOUBLE) DOUBLE
    The hyperbolic sine
    sinh(0)
cosh(number DOUBLE) DOUBLE
    The hyperbolic cosine
    cosh(0)
tanh(number DOUBLE) DOUBLE
    The hyperbolic tangent
    tanh(0)
asinh(number DOUBLE) DOUBLE
    The inverse hyperbolic sine
    asinh(0)
acosh(number DOUBLE) DOUBLE
    The inverse hyperbolic cosine
    acosh(1)
atanh(number DOUBLE) DOUBLE
    The inverse hyperbolic tangent
    atanh(0)
degrees(angle DOUBLE) DOUBLE
    An angle in radians as degrees
    degrees(3.141592653589793)
radians(angle DOUBLE) DOUBLE
    An angle in degrees as radians
    radians(180)
factorial(number INT) BIGINT
    The factorial of a number from 0 to 20; null for others
    factorial(5)
width_bucket(number DOUBLE, low DOUBLE, high DOUBLE, count BIGINT) BIGINT
    Which of so many buckets of equal width, from 1, a number falls into; 0 or one more than there are outside
    width_bucket(5.3, 0.2, 10.6, 5)
nanvl(number DOUBLE, otherwise DOUBLE) DOUBLE
    The number, or another one where it is NaN
    nanvl(CAST('NaN' AS DOUBLE), 123)
try_add(one NUMBER, other NUMBER) NUMBER
    The sum; null where it does not fit its type
    try_add(2147483647, 1)
try_subtract(one NUMBER, other NUMBER) NUMBER
    The difference; null where it does not fit its type
    try_subtract(-2147483648, 1)
try_multiply(one NUMBER, other NUMBER) NUMBER
    The product; null where it does not fit its type
    try_multiply(2147483647, 2)
try_divide(number NUMBER, divisor NUMBER) NUMBER
    The quotient; null where the divisor is zero
    try_divide(3, 2)
    means: number / divisor
try_mod(number NUMBER, divisor NUMBER) NUMBER
    The remainder of a division; null where the divisor is zero
    try_mod(3, 2)
    means: number % divisor
shiftleft(number WHOLE, count INT) WHOLE
    The bits of a whole number moved to the left
    shiftleft(2, 1)
shiftright(number WHOLE, count INT) WHOLE
    The bits of a whole number moved to the right, with its sign
    shiftright(4, 1)
shiftrightunsigned(number WHOLE, count INT) WHOLE
    The bits of a whole number moved to the right, with zeros
    shiftrightunsigned(4, 1)
bit_count(number ANY) INT
    How many bits of a whole number, as 64 bits, are 1
    bit_count(7)
bit_get(number WHOLE, place INT) TINYINT
    The bit at a place, from 0, of a whole number
    bit_get(11, 0)
    also: getbit
bin(number BIGINT) STRING
    The whole number in binary digits
    bin(13)
conv(number STRING, given INT, wanted INT) STRING
    A number written to one base, written to another base
    conv('100', 2, 10)
""")

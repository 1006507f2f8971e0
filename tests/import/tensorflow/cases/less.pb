
7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:

LessLessx0x1*
T0
#
IdentityIdentityLess*
T0


7
x0Placeholder*
dtype0*
shape:
3
x1Placeholder*
dtype0*
shape
:

SubSubx0x1*
T0
"
IdentityIdentitySub*
T0

7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:

ModModx0x1*
T0
"
IdentityIdentityMod*
T0

7
x0Placeholder*
dtype0*
shape:
3
x1Placeholder*
dtype0*
shape
:
7
SquaredDifferenceSquaredDifferencex0x1*
T0
0
IdentityIdentitySquaredDifference*
T0
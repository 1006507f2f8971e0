
3
x0Placeholder*
dtype0*
shape
:
3
x1Placeholder*
dtype0*
shape
:

Atan2Atan2x1x0*
T0
$
IdentityIdentityAtan2*
T0

7
x0Placeholder*
dtype0*
shape:
3
x1Placeholder*
dtype0*
shape
:

AddV2AddV2x0x1*
T0
$
IdentityIdentityAddV2*
T0
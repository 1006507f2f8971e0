
3
x0Placeholder*
dtype0*
shape
:
/
x1Placeholder*
dtype0*
shape:

XlogyXlogyx0x1*
T0
$
IdentityIdentityXlogy*
T0

;
x0Placeholder*
dtype0*
shape:

TanTanx0*
T0
"
IdentityIdentityTan*
T0
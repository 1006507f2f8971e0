
;
x0Placeholder*
dtype0*
shape:

AbsAbsx0*
T0
"
IdentityIdentityAbs*
T0
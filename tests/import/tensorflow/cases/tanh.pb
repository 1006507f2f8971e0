
;
x0Placeholder*
dtype0*
shape:

TanhTanhx0*
T0
#
IdentityIdentityTanh*
T0
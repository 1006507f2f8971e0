
;
x0Placeholder*
dtype0*
shape:

CoshCoshx0*
T0
#
IdentityIdentityCosh*
T0
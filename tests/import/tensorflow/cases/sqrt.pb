
;
x0Placeholder*
dtype0*
shape:

SqrtSqrtx0*
T0
#
IdentityIdentitySqrt*
T0
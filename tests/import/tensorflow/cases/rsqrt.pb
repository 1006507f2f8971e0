
;
x0Placeholder*
dtype0*
shape:

RsqrtRsqrtx0*
T0
$
IdentityIdentityRsqrt*
T0
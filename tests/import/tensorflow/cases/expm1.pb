
;
x0Placeholder*
dtype0*
shape:

Expm1Expm1x0*
T0
$
IdentityIdentityExpm1*
T0
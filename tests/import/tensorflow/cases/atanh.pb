
;
x0Placeholder*
dtype0*
shape:

AtanhAtanhx0*
T0
$
IdentityIdentityAtanh*
T0

;
x0Placeholder*
dtype0*
shape:

Log1pLog1px0*
T0
$
IdentityIdentityLog1p*
T0

;
x0Placeholder*
dtype0*
shape:

AcoshAcoshx0*
T0
$
IdentityIdentityAcosh*
T0
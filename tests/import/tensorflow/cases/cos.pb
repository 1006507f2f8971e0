
;
x0Placeholder*
dtype0*
shape:

CosCosx0*
T0
"
IdentityIdentityCos*
T0